"""The history as values, in step with the chain: what is worked out once for each message.

A transcript only grows; a history that was changed or rewound gets a new one, which takes over
everything up to the change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Set
from typing import Any, Literal, TypeVar, get_args

from ullage.core.history import canon
from ullage.core.history.measures import Fold, Folded, Measure, table_of
from ullage.core.history.pairing import At, Pairing
from ullage.core.redaction import Redact, redacted
from ullage.core.values.authors import KNOWN_USER_TOOLS, Author, Reader, plain_tool_name
from ullage.core.values.edits import Address, whole
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    Content,
    Frame,
    Media,
    Message,
    Opaque,
    Part,
    Passage,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

Location = tuple[int, int, int]
"""Where a leaf is: message index, part index, item index."""

Leaf = tuple[int, int, Part | Content]
"""Part index, item index within the part, and what is there."""


def leaves_of(message: Message) -> Iterator[Leaf]:
    """Everything a message holds, in wire order: each part, or each item of a result."""
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            for item, content in enumerate(part.content):
                yield number, item, content
        else:
            yield number, 0, part


T = TypeVar("T")
_HOLDING = {Opaque, ToolResult}
"""The kinds of parts that may define tools."""
Mark = Literal[
    "begins", "pinned", "bound", "asks", "words", "media", "compacted", "late", "loads"
]
"""What a message is known for: begins a reply, stays, holds bound reasoning, is the user's turn to
speak, holds words of the user (an answer to a tool as well), holds media, a compaction of the
provider, a result that may be parted from its call, tools that a search loaded."""

_SPEAKERS: dict[Role, Author] = {
    "user": "user",
    "system": "system",
    "assistant": "model",
}


class Transcript:
    """Messages, digests and chain of one history, without leading system text.

    Attributes:
        messages: the parsed messages.
        digests: the digest of each, 16 bytes.
        chain: one longer: ``chain[i]`` is the chain before message ``i``. A message that is
            nothing but reasoning leaves it as it was: clients drop such messages.
        counts: tokens of each leaf that was counted.
        originals: the messages that redaction changed, as they came and are sent.
        user_tools: as given.
        loaded: the names of the tools that are defined among the messages.

    Args:
        root: the chain before the first message.
        redact: takes secrets out of each text, or None.
        user_tools: the tools whose results are the user's words, by their plain names.
    """

    def __init__(
        self,
        root: bytes,
        redact: Redact | None = None,
        user_tools: frozenset[str] = KNOWN_USER_TOOLS,
    ) -> None:
        self.messages: list[Message] = []
        self.originals: dict[int, Message] = {}
        self.loaded: set[str] = set()
        self._redact = redact
        self.user_tools = user_tools
        self.digests: list[bytes] = []
        self.chain: list[bytes] = [root]
        self.counts: dict[Location, int] = {}
        self._lengths: dict[bytes, int] = {root: 0}
        self._alike: dict[bytes, tuple[int, ...]] = {}
        self._said: list[int] = [-1]
        self._turns: list[int] = [-1]
        self._closed: list[bool] = []
        self._marked: dict[Mark, list[int]] = {mark: [] for mark in get_args(Mark)}
        self._spots: dict[str, dict[str, tuple[At, ...]]] = {"call": {}, "result": {}}
        self._pairs = Pairing()
        self._fed = 0, Pairing()  # how they were at the fork that this began at
        self._refs: dict[Location, str] = {}
        self._texts: dict[Location, Output] = {}
        self._made: dict[Any, dict[int, Any]] = {}
        self._folded = Folded(self)
        self._programs: dict[
            int, set[int]
        ] = {}  # by message, the parts that a program reads
        self._answers: dict[
            int, set[int]
        ] = {}  # and the results that are the user's words
        self._is_shared = (
            False  # whether a frozen transcript reads the same lists and tables
        )

    def __len__(self) -> int:
        return len(self.messages)

    def append(self, message: Message, digest: bytes) -> None:
        """Take in the next message."""
        index, last, marked = len(self.messages), self.chain[-1], self._marked
        message = (
            message if self._redact is None else self._without_secrets(index, message)
        )
        speaks, kinds = message.role == "assistant", {*map(type, message.parts)}
        begins = speaks and not (index and self.messages[-1].role == "assistant")
        self.messages.append(message)
        self.digests.append(digest)
        self.chain.append(last if kinds == {Reasoning} else canon.extend(last, digest))
        self._lengths.setdefault(self.chain[-1], index + 1)
        self._alike[digest] = (*self._alike.get(digest, ()), index)
        self._turns.append(index if begins else self._turns[-1])
        self._said.append(index if speaks else self._said[-1])
        self._closed.append(not self._pairs.waiting)
        self._pairs.feed(index, message)
        for mark in _marks(message, kinds, begins=begins):
            marked[mark].append(index)
        self._note_people(index)
        if self._holds_words(index):
            marked["words"].append(index)
        if kinds & _HOLDING and (loads := _loads(message)):
            self.loaded.update(loads)
            marked["loads"].append(index)
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                self._note("call", part.id, (index, number))
            elif isinstance(part, ToolResult):
                self._note("result", part.call_id, (index, number))
                home = self.home(index, number)
                if home is not None and any(self._closed[home + 1 : index + 1]):
                    marked["late"].append(index)
            elif isinstance(part, Opaque) and part.kind == "compaction":
                marked["compacted"].append(index)

    def upto(self, length: int) -> Transcript:
        """Another transcript of the first ``length`` messages, with all that is known of them."""
        other = Transcript(self.chain[0], self._redact, self.user_tools)
        other.originals = {
            index: it for index, it in self.originals.items() if index < length
        }
        for row in ("messages", "digests", "_closed", "chain", "_said", "_turns"):
            known = getattr(self, row)
            setattr(other, row, known[: length + len(known) - len(self)])
        for table in ("counts", "_refs", "_texts"):
            setattr(other, table, spots := getattr(self, table).copy())
            for spot in [spot for spot in spots if spot[0] >= length]:
                del spots[spot]
        for people in ("_programs", "_answers"):
            known = getattr(self, people).items()
            setattr(other, people, {index: it for index, it in known if index < length})
        other.loaded = self._names_loaded(length)
        other._marked = {mark: self.marked(mark, 0, length) for mark in self._marked}
        other._lengths = {key: at for key, at in self._lengths.items() if at <= length}
        for kind, spots in self._spots.items():
            parts = (
                (name, at[: bisect_left(at, (length,))]) for name, at in spots.items()
            )
            other._spots[kind] = {name: at for name, at in parts if at}
        alike = self._alike.items()
        other._alike = {
            key: at[: bisect_left(at, length)] for key, at in alike if at[0] < length
        }
        fed, pairs = self._fed if self._fed[0] <= length else (0, Pairing())
        other._pairs = pairs.copy()
        for index in range(fed, length):
            other._pairs.feed(index, other.messages[index])
        other._fed = length, other._pairs.copy()
        for make, made in self._made.items():
            other._made[make] = {
                index: it for index, it in made.items() if index < length
            }
        return other

    def share(self) -> None:
        """A frozen transcript reads the same lists and tables from now on."""
        self._is_shared = True

    def _leave_to_readers(self) -> None:
        """Go on with copies of what `refresh` writes to, where a frozen transcript reads it.

        A list of pointers is copied here, once a turn that words a message anew: such a turn
        has compared every message already, which takes far longer.
        """
        if not self._is_shared:
            return
        self.messages, self.originals = self.messages.copy(), self.originals.copy()
        self._programs, self._answers = self._programs.copy(), self._answers.copy()
        self._marked = self._marked.copy()
        self._is_shared = False

    def _names_loaded(self, length: int) -> set[str]:
        """The names of the tools that are defined among the first messages."""
        indices = self.marked("loads", 0, length)
        return {name for index in indices for name in _loads(self.messages[index])}

    def _note(self, kind: str, name: str, at: At) -> None:
        spots, name = self._spots[kind], whole(name)
        spots[name] = (*spots.get(name, ()), at)

    def refresh(self, index: int, message: Message) -> None:
        """Take a message's new wording: same digest, but markers or reasoning differ."""
        self._leave_to_readers()
        message = self._without_secrets(index, message)
        for number, item, _ in leaves_of(self.messages[index]):
            for table in (self._refs, self._texts, self.counts):
                table.pop((index, number, item), None)
        self.messages[index] = message
        self._note_people(index)
        for call in message.calls:  # who made it may be said otherwise now
            for answer in self._spots["result"].get(whole(call.id), ()):
                self._note_people(answer[0])
        others = {*self._marked["bound"]} - {index}
        self._marked["bound"] = sorted(
            {*others, index} if _is_bound(message) else others
        )
        for made in self._made.values():
            made.pop(index, None)
        self._folded.clear()

    def _without_secrets(self, index: int, message: Message) -> Message:
        self.originals.pop(index, None)
        found = message if self._redact is None else redacted(message, self._redact)
        if found is not message:
            self.originals[index] = message
        return found

    def find(self, key: bytes) -> int | None:
        """The length of the shortest history whose chain is ``key``, or None."""
        return self._lengths.get(key)

    def boundaries(self, after: int, upto: int | None = None) -> list[int]:
        """The lengths beyond ``after`` at which a request was, or is now to be, sent.

        A request was sent before each reply; a reply may be several assistant messages. The last
        is ``upto``, where a request is to be sent now: None for the whole history.
        """
        stop = len(self.messages) if upto is None else upto
        return [*self.marked("begins", after + 1, stop), stop] if stop > after else []

    def decision_key(self, length: int) -> bytes:
        """What a decision made at this length is keyed by: `decision_index` in the chain."""
        return self.chain[self.decision_index(length)]

    def decision_index(self, length: int) -> int:
        """Behind the last assistant message; before the model has spoken, ``length`` itself."""
        said = self._said[length]
        return said + 1 if said >= 0 else length

    def decision_keys(self, after: int, length: int) -> list[bytes]:
        """The keys of every decision that may have been made beyond ``after``, up to ``length``.

        The last is that of ``length``. There are others where a request ended within what now
        counts as one turn: a reply that went on, or a user who did.
        """
        places = map(self.decision_index, range(min(after + 1, length), length + 1))
        return list(dict.fromkeys([self.chain[place] for place in places]))

    def starts_turn(self, index: int) -> bool:
        """Whether a reply of the model begins with this message."""
        return self._turns[index + 1] == index

    def turn_start(self, length: int) -> int:
        """Where the last reply before ``length`` begins; 0 if there is none."""
        return max(self._turns[length], 0)

    def may_cut(self, index: int) -> bool:
        """Whether a history may begin anew here: a reply begins, and no call is open."""
        return self._closed[index] and self.starts_turn(index)

    def may_split(self, index: int) -> bool:
        """Whether what is before this message may be parted from it.

        It may not within a reply, nor between a call and its result, nor behind a system
        message, which would then come before a summary: a reply follows it (A20).
        """
        leads = index > 0 and self.messages[index - 1].role == "system"
        is_within = self.messages[index].role == "assistant" and not self.starts_turn(
            index
        )
        return self._closed[index] and not is_within and not leads

    def newest_asked(self, length: int) -> int | None:
        """The newest message below ``length`` in which the user says more than results."""
        before = bisect_left(self._marked["asks"], length)
        return self._marked["asks"][before - 1] if before else None

    def newest_words(self, length: int) -> int | None:
        """The newest message below ``length`` with words of the user, a tool's answer or not."""
        before = bisect_left(self._marked["words"], length)
        return self._marked["words"][before - 1] if before else None

    def closed(self, length: int) -> bool:
        """Whether nothing before this length still waits for its answer."""
        return (
            self._closed[length]
            if length < len(self.messages)
            else not self._pairs.waiting
        )

    def reply(self, index: int, stop: int) -> range:
        """The messages below ``stop`` of the reply that an assistant message is part of."""
        if self.messages[index].role != "assistant":
            return range(index, index + 1)
        end = index + 1
        while end < stop and self.messages[end].role == "assistant":
            end += 1
        return range(self._turns[index + 1], end)

    def together(self, index: int, stop: int) -> set[int]:
        """The messages below ``stop`` that a message cannot be shown without.

        They are its whole reply, the calls that it answers and the results of its own calls, and
        of each of these the same again: a tool that the provider runs may be called in one reply
        and answered in the next.
        """
        found, unread = set[int](), [index]
        while unread:
            for at in self.reply(unread.pop(), stop):
                if at not in found:
                    found.add(at)
                    unread += (other for other in self._linked(at) if other < stop)
        return found

    def _linked(self, index: int) -> Iterator[int]:
        """The messages of the calls that a message answers, and of the results of its calls."""
        for number in range(len(self.messages[index].parts)):
            place = (index, number)
            if (call := self._pairs.of(place)) is not None:
                yield call[0]
            yield from (result[0] for result in self._pairs.results_of(place))

    def call_for(self, index: int, number: int) -> ToolCall | None:
        """The call that the result at (message, part) belongs to."""
        found = self._pairs.of((index, number))
        part = self.messages[found[0]].parts[found[1]] if found else None
        return part if isinstance(part, ToolCall) else None

    def author(self, index: int, number: int) -> Author:
        """Who wrote a part: as its wire's table says, or the name of a tool that asks the user."""
        message = self.messages[index]
        part = message.parts[number]
        if isinstance(part, ToolResult):
            return "user" if number in self._answers.get(index, ()) else part.author
        if isinstance(part, ToolCall):
            return part.author
        if isinstance(part, Opaque) and part.author is not None:
            return part.author
        return _SPEAKERS.get(message.role, "tool")

    def reader(self, index: int, number: int) -> Reader:
        """Who reads a part. Whoever made a call reads its result."""
        return "program" if number in self._programs.get(index, ()) else "model"

    def has_program(self, index: int) -> bool:
        """Whether a program reads something in a message."""
        return index in self._programs

    def _note_people(self, index: int) -> None:
        """Note which parts of a message a program reads, and which results the user wrote."""
        programs, answers = set[int](), set[int]()
        for number, part in enumerate(self.messages[index].parts):
            if isinstance(part, ToolResult):
                if self._is_answer(index, number, part):
                    answers.add(number)
                call = self._pairs.of((index, number))
                if part.reader == "program" or (
                    call and self.reader(*call) == "program"
                ):
                    programs.add(number)
            elif isinstance(part, ToolCall):
                if part.author == "program":
                    programs.add(number)
            elif isinstance(part, Opaque) and part.reader == "program":
                programs.add(number)
        for table, numbers in ((self._programs, programs), (self._answers, answers)):
            table.pop(index, None)
            if numbers:
                table[index] = numbers

    def _is_answer(self, index: int, number: int, result: ToolResult) -> bool:
        """Whether the user wrote a result: its wire says so, or its tool is one that asks."""
        call = self.call_for(index, number)
        name = result.name if call is None else call.name
        return result.author == "user" or plain_tool_name(name) in self.user_tools

    def _holds_words(self, index: int) -> bool:
        numbers = range(len(self.messages[index].parts))
        return any(self.words(index, number) for number in numbers)

    def words(self, index: int, number: int) -> str:
        """The words of the user in a part; ``""`` where it holds none."""
        part = self.messages[index].parts[number]
        if isinstance(part, Passage):
            return ""  # the user hands it over: others wrote it
        if isinstance(part, Text):
            return (
                part.text
                if self.messages[index].role == "user" and part.text.strip()
                else ""
            )
        if isinstance(part, Opaque):
            return part.words
        if not isinstance(part, ToolResult) or self.author(index, number) != "user":
            return ""
        texts = [item.text for item in part.content if isinstance(item, Text)]
        return "\n".join(text for text in texts if text.strip())

    def may_shorten(self, index: int, number: int) -> bool:
        """Whether a part is a tool's result for the model: neither the user's nor a program's."""
        if not isinstance(self.messages[index].parts[number], ToolResult):
            return False
        return (
            self.author(index, number) != "user"
            and self.reader(index, number) == "model"
        )

    def home(self, index: int, number: int) -> int | None:
        """The message of the call that the result at (message, part) belongs to."""
        found = (
            self._pairs.of((index, number)) if self.call_for(index, number) else None
        )
        return found[0] if found else None

    def result_for(self, index: int, number: int) -> Location | None:
        """Where the result of the call at (message, part) is, or None."""
        results = self._pairs.results_of((index, number))
        return (*results[0], 0) if results else None

    def newest_result(self, call_id: str, length: int) -> Location | None:
        """Where the newest result of a call id is in a history of this length."""
        found = self._spots["result"].get(whole(call_id), ())
        before = bisect_left(found, (length,))
        return (*found[before - 1], 0) if before else None

    def locate(self, place: Address) -> Location | None:
        """Where a place is in this history, or None."""
        if place.ordinal < 0 or place.item < 0:
            return None
        if place.kind == "text":
            try:
                digest = bytes.fromhex(place.id)
            except ValueError:  # a record of a damaged store may say anything
                return None
            alike = self._alike.get(digest, ())
            return (
                (alike[place.ordinal], place.item, 0)
                if place.ordinal < len(alike)
                else None
            )
        found = self._spots.get(place.kind, {}).get(place.id, ())
        return (
            (*found[place.ordinal], place.item) if place.ordinal < len(found) else None
        )

    def leaf(self, spot: Location) -> Part | Content | None:
        """What is at a spot, or None if the message is shorter than that."""
        return _leaf(self.messages[spot[0]], spot)

    def sent(self, spot: Location) -> Part | Content | None:
        """The leaf at a spot as it is sent where nothing is edited, secrets and all."""
        return _leaf(self.originals.get(spot[0], self.messages[spot[0]]), spot)

    def output(self, spot: Location) -> Output | None:
        """What the leaf at a spot is set aside as, or None. Its ref is worked out once."""
        output = self._texts.get(spot)
        kept = None if output else _set_aside(self.leaf(spot))
        if kept is None:
            return output
        output = Output(self._refs.get(spot) or canon.ref_of(*kept), *kept)
        if (
            output.kind == "text"
        ):  # the caller's own string; a block would be a copy of it
            self._texts[spot] = output
        else:
            self._refs[spot] = output.ref
        return output

    def results(self, index: int) -> Iterator[Location]:
        """Every item of every tool result in a message, but for the frames of blocks."""
        parts = self.messages[index].parts
        for number, item, leaf in leaves_of(self.messages[index]):
            if isinstance(parts[number], ToolResult) and not isinstance(leaf, Frame):
                yield index, number, item

    def tool_results(self, index: int) -> Iterator[Location]:
        """Of these the items that a tool wrote for the model (`may_shorten`)."""
        for spot in self.results(index):
            if self.may_shorten(spot[0], spot[1]):
                yield spot

    def outputs(self, index: int, number: int) -> Iterator[Output]:
        """What the leaves of a part are set aside as."""
        part = self.messages[index].parts[number]
        for item in range(len(part.content) if isinstance(part, ToolResult) else 1):
            output = self.output((index, number, item))
            if output is not None:
                yield output

    def once(self, measure: Measure[T], index: int) -> T:
        """What a pure function makes of a message and what is before it; worked out once.

        Raises:
            ConfigError: it is a plain function. A `Measure` gives it a name.
        """
        made: dict[int, T] = table_of(self._made, measure, dict)
        if index not in made:
            made[index] = measure(self, index)
        return made[index]

    def folded(self, fold: Fold[T], start: int, stop: int) -> T:
        """What a fold comes to over a range of messages. See `Folded.over`."""
        return self._folded.over(fold, start, stop)

    def loading(self, stop: int) -> list[int]:
        """The messages below ``stop`` that define tools which no later one defines anew.

        The model may call what a search loaded as long as its definition stands in the request.
        What the system added is not among them: nothing may take its place anyway.
        """
        found, later = list[int](), set[str]()
        for index in reversed(self.marked("loads", 0, stop)):
            names = set(_loads(self.messages[index]))
            if not names <= later and not self.messages[index].is_pinned:
                found.append(index)
            later |= names
        return found

    def compaction(self, start: int, stop: int) -> int | None:
        """The newest message of a range that holds a compaction of the provider."""
        return next(reversed(self.marked("compacted", start, stop)), None)

    def marked(self, mark: Mark, start: int, stop: int) -> list[int]:
        """The messages of a range that are known for this, in order."""
        at = self._marked[mark]
        return at[bisect_left(at, start) : bisect_left(at, stop)]

    def first(self, mark: Mark) -> int | None:
        """The first message that is known for this, or None."""
        return next(iter(self._marked[mark]), None)

    def count(self, mark: Mark, start: int, stop: int) -> int:
        """How many messages of a range are known for this."""
        at = self._marked[mark]
        return bisect_left(at, stop) - bisect_left(at, start)

    def place(self, spot: Location) -> Address:
        """The address of the leaf at a spot."""
        index, number, item = spot
        part = self.messages[index].parts[number]
        if isinstance(part, ToolResult):
            return self._address("result", part.call_id, (index, number), item)
        if isinstance(part, ToolCall):
            return self._address("call", part.id, (index, number), 0)
        digest = self.digests[index]
        return Address(
            "text", digest.hex(), bisect_left(self._alike[digest], index), number
        )

    def _address(
        self, kind: Literal["result", "call"], name: str, at: At, item: int
    ) -> Address:
        name = whole(name)
        return Address(kind, name, bisect_left(self._spots[kind][name], at), item)


def _leaf(message: Message, spot: Location) -> Part | Content | None:
    _, number, item = spot
    part = message.parts[number] if number < len(message.parts) else None
    if isinstance(part, ToolResult):
        return part.content[item] if item < len(part.content) else None
    return part


def _set_aside(
    leaf: Part | Content | None,
) -> tuple[str, Literal["text", "block"]] | None:
    """The text a leaf is kept as, and of what kind; None if it may not be set aside."""
    match leaf:
        case Text(text=text) | ToolCall(arguments=text) | Frame(text=text):
            return text, "text"
        case Media(block=block) if block is not None:
            return canon.canonical_json(block), "block"
        case Media(kind=kind, mime=mime, data=data):
            return canon.canonical_json(
                {"kind": kind, "mime": mime, "data": data}
            ), "block"
        case Opaque(text=text):
            return text, "block"
        case _:
            return None


def _marks(message: Message, kinds: Set[type], *, begins: bool) -> Iterator[Mark]:
    """What a message is known for as soon as it is there, by the kinds of its parts."""
    if begins:
        yield "begins"
    if message.is_pinned:
        yield "pinned"
    if Reasoning in kinds and _is_bound(message):
        yield "bound"
    if message.role == "user" and ToolResult not in kinds:
        yield "asks"
    if kinds & {Media, ToolResult} and any(
        isinstance(it, Media) for *_, it in leaves_of(message)
    ):
        yield "media"


def _loads(message: Message) -> list[str]:
    """The tools that are defined in a message."""
    found: list[str] = []
    for _, _, leaf in leaves_of(message):
        if isinstance(leaf, Opaque):
            found += leaf.loads
    return found


def _is_bound(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and part.bound for part in message.parts)
