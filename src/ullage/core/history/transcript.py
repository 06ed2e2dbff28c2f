"""The history as values, in step with the chain: what is worked out once for each message.

A transcript only grows; a history that was changed or rewound gets a new one, which takes over
everything up to the change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, get_args

from ullage.core.history import canon
from ullage.core.history.authorship import Authorship
from ullage.core.history.measures import Fold, Folded, Measure, table_of
from ullage.core.history.pairing import At, Pairing
from ullage.core.history.parts import (
    Location,
    Mark,
    PlacedLeaf,
    content_of,
    has_bound_reasoning,
    leaf_at,
    leaves_of,
    loaded_tools,
    marks_of,
)
from ullage.core.redaction import Redact, redacted
from ullage.core.values.authors import KNOWN_USER_TOOLS
from ullage.core.values.edits import Address, without_surrogates
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    BlockFrame,
    Content,
    Message,
    Opaque,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)

__all__ = ["Location", "Mark", "PlacedLeaf", "Transcript", "leaves_of"]

T = TypeVar("T")
V = TypeVar("V")
_LOADERS = {Opaque, ToolResult}
"""The kinds of parts that may define tools."""
_ROWS = (
    "messages",
    "digests",
    "_closed",
    "chain",
    "_reply_ends",
    "_turn_starts",
)
"""The lists with a value for each message; some have one more, in front."""


class Transcript(Authorship):
    """Messages, digests and chain of one history, without leading system text.

    Attributes:
        messages: the parsed messages.
        digests: the digest of each, 16 bytes.
        chain: one longer: ``chain[i]`` is the chain before message ``i``. A message that is
            nothing but reasoning leaves it as it was: clients drop such messages.
        counts: tokens of each leaf that was counted.
        originals: the messages that redaction changed, as they came and are sent.
        user_tools: the tools whose results are the user's words, by their plain names.
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
        # before each message, and at the end: the newest message of the model, and where its
        # newest reply begins
        self._reply_ends: list[int] = [-1]
        self._turn_starts: list[int] = [-1]
        self._closed: list[bool] = []
        self._marked: dict[Mark, list[int]] = {
            mark: [] for mark in get_args(Mark)
        }
        self._by_id: dict[str, dict[str, tuple[At, ...]]] = {
            "call": {},
            "result": {},
        }
        self._pairs = Pairing()
        # how the pairs were at the fork that this history began at, and how long it was then
        self._fork = 0, Pairing()
        self._refs: dict[Location, str] = {}
        self._texts: dict[Location, Output] = {}
        self._measured: dict[Any, dict[int, Any]] = {}
        self._folded = Folded(self)
        self._programs: dict[int, set[int]] = {}
        self._answers: dict[int, set[int]] = {}
        # whether a frozen transcript reads the same lists and tables
        self._is_shared = False

    def __len__(self) -> int:
        return len(self.messages)

    # ── growing ──────────────────────────────────────────────────────────────────────

    def append(self, message: Message, digest: bytes) -> None:
        """Take in the next message.

        Args:
            message: the message, with its secrets.
            digest: its digest, 16 bytes.
        """
        index = len(self.messages)
        if self._redact is not None:
            message = self._without_secrets(index, message)
        kinds = {type(part) for part in message.parts}
        is_reply = message.role == "assistant"
        begins = is_reply and not (
            index and self.messages[-1].role == "assistant"
        )
        self.messages.append(message)
        self._extend_chain(digest, is_thought=kinds == {Reasoning})
        self._turn_starts.append(index if begins else self._turn_starts[-1])
        self._reply_ends.append(index if is_reply else self._reply_ends[-1])
        self._closed.append(not self._pairs.waiting)
        self._pairs.feed(index, message)
        for mark in marks_of(message, kinds, begins=begins):
            self._marked[mark].append(index)
        self._note_people(index)
        if self._has_user_words(index):
            self._marked["user_words"].append(index)
        if kinds & _LOADERS:
            self._note_loaded(index, message)
        self._note_parts(index, message)

    def _extend_chain(self, digest: bytes, *, is_thought: bool) -> None:
        index = len(self.digests)
        key = self.chain[-1]
        if not is_thought:
            key = canon.extend(key, digest)
        self.digests.append(digest)
        self.chain.append(key)
        self._lengths.setdefault(key, index + 1)
        self._alike[digest] = (*self._alike.get(digest, ()), index)

    def _note_loaded(self, index: int, message: Message) -> None:
        """Note which tools a message defines."""
        names = loaded_tools(message)
        if names:
            self.loaded.update(names)
            self._marked["loads"].append(index)

    def _note_parts(self, index: int, message: Message) -> None:
        """Note the ids of calls and results, and the marks that hang on single parts."""
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                self._note_id("call", part.id, (index, number))
            elif isinstance(part, ToolResult):
                self._note_id("result", part.call_id, (index, number))
                if self._is_late(index, number):
                    self._marked["late"].append(index)
            elif isinstance(part, Opaque) and part.kind == "compaction":
                self._marked["compacted"].append(index)

    def _note_id(self, kind: str, name: str, at: At) -> None:
        by_id = self._by_id[kind]
        name = without_surrogates(name)
        by_id[name] = (*by_id.get(name, ()), at)

    def _is_late(self, index: int, number: int) -> bool:
        """Whether nothing was open somewhere between a result and its call."""
        call = self.call_index(index, number)
        return call is not None and any(self._closed[call + 1 : index + 1])

    def refresh(self, index: int, message: Message) -> None:
        """Take a message's new wording: same digest, but markers or reasoning differ."""
        self._leave_to_readers()
        message = self._without_secrets(index, message)
        for number, item, _ in leaves_of(self.messages[index]):
            location = (index, number, item)
            self._refs.pop(location, None)
            self._texts.pop(location, None)
            self.counts.pop(location, None)
        self.messages[index] = message
        self._note_people(index)
        for call in message.calls:  # who made it may be said otherwise now
            for result in self._by_id["result"].get(
                without_surrogates(call.id), ()
            ):
                self._note_people(result[0])
        bound = {*self._marked["bound"]} - {index}
        if has_bound_reasoning(message):
            bound.add(index)
        self._marked["bound"] = sorted(bound)
        for values in self._measured.values():
            values.pop(index, None)
        self._folded.clear()

    def _without_secrets(self, index: int, message: Message) -> Message:
        self.originals.pop(index, None)
        if self._redact is None:
            return message
        clean = redacted(message, self._redact)
        if clean is not message:
            self.originals[index] = message
        return clean

    # ── forks and readers ────────────────────────────────────────────────────────────

    def upto(self, length: int) -> Transcript:
        """Another transcript of the first ``length`` messages, with all that is known of them."""
        fork = Transcript(self.chain[0], self._redact, self.user_tools)
        for name in _ROWS:
            row = getattr(self, name)
            in_front = len(row) - len(self)
            setattr(fork, name, row[: length + in_front])
        self._copy_tables(fork, length)
        fork.loaded = self._names_loaded(length)
        fork._marked = {
            mark: self.marked(mark, 0, length) for mark in self._marked
        }
        fork_length, pairs = self._fork
        if fork_length > length:
            fork_length = 0
            pairs = Pairing()
        fork._pairs = pairs.copy()
        for index in range(fork_length, length):
            fork._pairs.feed(index, fork.messages[index])
        fork._fork = length, fork._pairs.copy()
        return fork

    def _copy_tables(self, fork: Transcript, length: int) -> None:
        """Give a fork what the tables hold of its messages."""
        for name in ("counts", "_refs", "_texts"):
            table = getattr(self, name).copy()
            for location in [
                location for location in table if location[0] >= length
            ]:
                del table[location]
            setattr(fork, name, table)
        for name in ("originals", "_programs", "_answers"):
            setattr(fork, name, _below(getattr(self, name), length))
        for key, table in self._measured.items():
            fork._measured[key] = _below(table, length)
        self._copy_places(fork, length)

    def _copy_places(self, fork: Transcript, length: int) -> None:
        """Give a fork the tables by which its messages and their parts are looked up."""
        for key, key_length in self._lengths.items():
            if key_length <= length:
                fork._lengths[key] = key_length
        for digest, indices in self._alike.items():
            if indices[0] < length:
                fork._alike[digest] = indices[: bisect_left(indices, length)]
        for kind, by_id in self._by_id.items():
            for name, places in by_id.items():
                earlier = places[: bisect_left(places, (length,))]
                if earlier:
                    fork._by_id[kind][name] = earlier

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
        self.messages = self.messages.copy()
        self.originals = self.originals.copy()
        self._programs = self._programs.copy()
        self._answers = self._answers.copy()
        self._marked = self._marked.copy()
        self._is_shared = False

    def _names_loaded(self, length: int) -> set[str]:
        """The names of the tools that are defined among the first messages."""
        names = set[str]()
        for index in self.marked("loads", 0, length):
            names.update(loaded_tools(self.messages[index]))
        return names

    # ── places of the chain ──────────────────────────────────────────────────────────

    def find(self, key: bytes) -> int | None:
        """The length of the shortest history whose chain is ``key``, or None."""
        return self._lengths.get(key)

    def boundaries(self, after: int, upto: int | None = None) -> list[int]:
        """The lengths beyond ``after`` at which a request was, or is now to be, sent.

        A request was sent before each reply; a reply may be several assistant messages. The last
        is ``upto``, where a request is to be sent now: None for the whole history.
        """
        stop = len(self.messages) if upto is None else upto
        if stop <= after:
            return []
        return [*self.marked("begins", after + 1, stop), stop]

    def decision_key(self, length: int) -> bytes:
        """What a decision made at this length is keyed by: `decision_index` in the chain."""
        return self.chain[self.decision_index(length)]

    def decision_index(self, length: int) -> int:
        """Behind the last assistant message; before the model has spoken, ``length`` itself."""
        reply_end = self._reply_ends[length]
        return reply_end + 1 if reply_end >= 0 else length

    def decision_keys(self, after: int, length: int) -> list[bytes]:
        """The keys of every decision that may have been made beyond ``after``, up to ``length``.

        The last is that of ``length``. There are others where a request ended within what now
        counts as one turn: a reply that went on, or a user who did.
        """
        keys: dict[bytes, None] = {}
        for earlier in range(min(after + 1, length), length + 1):
            keys[self.decision_key(earlier)] = None
        return list(keys)

    def starts_turn(self, index: int) -> bool:
        """Whether a reply of the model begins with this message."""
        return self._turn_starts[index + 1] == index

    def turn_start(self, length: int) -> int:
        """Where the last reply before ``length`` begins; 0 if there is none."""
        return max(self._turn_starts[length], 0)

    def may_cut(self, index: int) -> bool:
        """Whether a history may begin again here: a reply begins, and no call is open."""
        return self._closed[index] and self.starts_turn(index)

    def may_split(self, index: int) -> bool:
        """Whether what is before this message may be parted from it.

        It may not within a reply, nor between a call and its result, nor behind a system
        message, which would then come before a summary: a reply follows it (A20).
        """
        if not self._closed[index]:
            return False
        is_reply = self.messages[index].role == "assistant"
        if is_reply and not self.starts_turn(index):
            return False
        return index == 0 or self.messages[index - 1].role != "system"

    def closed(self, length: int) -> bool:
        """Whether nothing before this length still waits for its answer."""
        if length < len(self.messages):
            return self._closed[length]
        return not self._pairs.waiting

    def newest_request(self, length: int) -> int | None:
        """The newest message below ``length`` in which the user says more than results."""
        return self._newest("asks", length)

    def newest_user_words(self, length: int) -> int | None:
        """The newest message below ``length`` with words of the user, a tool's answer or not."""
        return self._newest("user_words", length)

    def _newest(self, mark: Mark, length: int) -> int | None:
        indices = self._marked[mark]
        count = bisect_left(indices, length)
        return indices[count - 1] if count else None

    # ── which messages belong together ───────────────────────────────────────────────

    def reply(self, index: int, stop: int) -> range:
        """The messages below ``stop`` of the reply that an assistant message is part of."""
        if self.messages[index].role != "assistant":
            return range(index, index + 1)
        end = index + 1
        while end < stop and self.messages[end].role == "assistant":
            end += 1
        return range(self._turn_starts[index + 1], end)

    def inseparable(self, index: int, stop: int) -> set[int]:
        """The messages below ``stop`` that a message cannot be shown without.

        They are its whole reply, the calls that it answers and the results of its own calls, and
        of each of these the same again: a tool that the provider runs may be called in one reply
        and answered in the next.
        """
        group = set[int]()
        unread = [index]
        while unread:
            for member in self.reply(unread.pop(), stop):
                if member in group:
                    continue
                group.add(member)
                unread += (
                    linked for linked in self._linked(member) if linked < stop
                )
        return group

    def _linked(self, index: int) -> Iterator[int]:
        """The messages of the calls that a message answers, and of the results of its calls."""
        for number in range(len(self.messages[index].parts)):
            call = self._pairs.of((index, number))
            if call is not None:
                yield call[0]
            for result in self._pairs.results_of((index, number)):
                yield result[0]

    def result_for(self, index: int, number: int) -> Location | None:
        """Where the result of the call at (message, part) is, or None."""
        results = self._pairs.results_of((index, number))
        return (*results[0], 0) if results else None

    def newest_result(self, call_id: str, length: int) -> Location | None:
        """Where the newest result of a call id is in a history of this length."""
        results = self._by_id["result"].get(without_surrogates(call_id), ())
        count = bisect_left(results, (length,))
        return (*results[count - 1], 0) if count else None

    # ── leaves ───────────────────────────────────────────────────────────────────────

    def locate(self, address: Address) -> Location | None:
        """Where a leaf is in this history by its address; None where it is not here."""
        if address.ordinal < 0 or address.item < 0:
            return None
        if address.kind == "text":
            return self._locate_text(address)
        places = self._by_id.get(address.kind, {}).get(address.id, ())
        if address.ordinal >= len(places):
            return None
        return (*places[address.ordinal], address.item)

    def _locate_text(self, address: Address) -> Location | None:
        try:
            digest = bytes.fromhex(address.id)
        except ValueError:  # a record of a damaged store may say anything
            return None
        indices = self._alike.get(digest, ())
        if address.ordinal >= len(indices):
            return None
        return indices[address.ordinal], address.item, 0

    def address(self, location: Location) -> Address:
        """The address of the leaf at a location: it holds in every history with this leaf."""
        index, number, item = location
        part = self.messages[index].parts[number]
        if isinstance(part, ToolResult):
            return self._address("result", part.call_id, (index, number), item)
        if isinstance(part, ToolCall):
            return self._address("call", part.id, (index, number), 0)
        digest = self.digests[index]
        ordinal = bisect_left(self._alike[digest], index)
        return Address("text", digest.hex(), ordinal, number)

    def _address(
        self, kind: Literal["result", "call"], call_id: str, at: At, item: int
    ) -> Address:
        name = without_surrogates(call_id)
        ordinal = bisect_left(self._by_id[kind][name], at)
        return Address(kind, name, ordinal, item)

    def leaf(self, location: Location) -> Part | Content | None:
        """The leaf at a location, or None if the message is shorter than that."""
        return leaf_at(self.messages[location[0]], location)

    def original(self, location: Location) -> Part | Content | None:
        """The leaf at a location as it is sent where nothing is edited, secrets and all."""
        index = location[0]
        message = self.originals.get(index, self.messages[index])
        return leaf_at(message, location)

    def output(self, location: Location) -> Output | None:
        """What a leaf is set aside as; None if it may not be. Its ref is worked out once."""
        output = self._texts.get(location)
        if output is not None:
            return output
        content = content_of(self.leaf(location))
        if content is None:
            return None
        ref = self._refs.get(location) or canon.ref_of(*content)
        output = Output(ref, *content)
        if output.kind == "text":
            # the caller's own string; a block would be a copy of it
            self._texts[location] = output
        else:
            self._refs[location] = ref
        return output

    def results(self, index: int) -> Iterator[Location]:
        """Every item of every tool result in a message, but for the frames of blocks."""
        parts = self.messages[index].parts
        for number, item, leaf in leaves_of(self.messages[index]):
            is_result = isinstance(parts[number], ToolResult)
            if is_result and not isinstance(leaf, BlockFrame):
                yield index, number, item

    def tool_results(self, index: int) -> Iterator[Location]:
        """Of these the items that a tool wrote for the model (`may_shorten`)."""
        for location in self.results(index):
            if self.may_shorten(location[0], location[1]):
                yield location

    def outputs(self, index: int, number: int) -> Iterator[Output]:
        """What the leaves of a part are set aside as."""
        part = self.messages[index].parts[number]
        items = len(part.content) if isinstance(part, ToolResult) else 1
        for item in range(items):
            output = self.output((index, number, item))
            if output is not None:
                yield output

    # ── what is worked out once ──────────────────────────────────────────────────────

    def once(self, measure: Measure[T], index: int) -> T:
        """What a pure function makes of a message and what is before it; worked out once.

        Args:
            measure: the function.
            index: the message.

        Raises:
            ConfigError: it is a plain function. A `Measure` gives it a name.
        """
        values: dict[int, T] = table_of(self._measured, measure, dict)
        if index not in values:
            values[index] = measure(self, index)
        return values[index]

    def folded(self, fold: Fold[T], start: int, stop: int) -> T:
        """What a fold comes to over a range of messages. See `Folded.over`."""
        return self._folded.over(fold, start, stop)

    # ── marks ────────────────────────────────────────────────────────────────────────

    def marked(self, mark: Mark, start: int, stop: int) -> list[int]:
        """The messages of a range that have a mark, in order."""
        indices = self._marked[mark]
        return indices[
            bisect_left(indices, start) : bisect_left(indices, stop)
        ]

    def first(self, mark: Mark) -> int | None:
        """The first message that has a mark, or None."""
        return next(iter(self._marked[mark]), None)

    def count(self, mark: Mark, start: int, stop: int) -> int:
        """How many messages of a range have a mark."""
        indices = self._marked[mark]
        return bisect_left(indices, stop) - bisect_left(indices, start)

    def compaction(self, start: int, stop: int) -> int | None:
        """The newest message of a range that holds a compaction of the provider."""
        return next(reversed(self.marked("compacted", start, stop)), None)

    def loading(self, stop: int) -> list[int]:
        """The messages below ``stop`` that define tools which no later one defines again.

        The model may call what a search loaded as long as its definition stands in the request.
        What the system added is not among them: nothing may take its place anyway.

        Returns:
            Their indices, the newest first.
        """
        loading = list[int]()
        defined = set[str]()
        for index in reversed(self.marked("loads", 0, stop)):
            names = set(loaded_tools(self.messages[index]))
            is_needed = not names <= defined
            if is_needed and not self.messages[index].is_permanent:
                loading.append(index)
            defined |= names
        return loading


def _below(table: dict[int, V], length: int) -> dict[int, V]:
    """The entries of the first messages."""
    return {index: value for index, value in table.items() if index < length}
