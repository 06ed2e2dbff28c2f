"""What was said by whom in a run, and what a call demands of it: values only a tool could give.

A value in the arguments of call ``t`` is a *demand* if it is in an earlier result and
nobody else has said it: not the system, the tools' schemas or the user, not the model itself
before. Values the model has written before are the *re-use* series, kept apart. All others
are never scored (`metrics` M1).

Every text is read once: its plain form and its words are kept, and a value is looked for only
in the texts that hold its rarest word.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.doors.host import (
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    answered_by_user,
)
from ullage.policy import Transcript
from ullage.tools.replay.evidence.atoms import (
    Atom,
    atoms_of,
    holds,
    plain,
    quotes,
    words,
)
from ullage.wires import Format

Speaker: TypeAlias = Literal["user", "model", "tool"]
"""By whom; the system says what it says as the user does."""
_QUOTE_WORDS = 50


class MessageText(Struct, frozen=True, gc=False):
    """One text of a message, as on the wire and without JSON escapes (``plain``).

    Of arguments and results ``call_id`` says of which call.
    """

    by: Speaker
    text: str
    plain: str
    part: int
    call_id: str = ""

    def holds(self, atom: Atom) -> bool:
        """Whether a value occurs in it; a quote as it was sent."""
        return (
            quotes(self.text, atom.text)
            if atom.kind == "quote"
            else holds(self.plain, atom)
        )


def texts_of(message: Message) -> Iterator[MessageText]:
    """Every text of a message that a model reads: not ids, names or other fields."""
    mine: Speaker = "model" if message.role == "assistant" else "user"
    for number, part in enumerate(message.parts):
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield MessageText(mine, text, plain(text), number)
            case Opaque(words=text) if text:
                yield MessageText("user", text, plain(text), number)
            case ToolCall(id=name, arguments=text):
                yield MessageText(mine, text, plain(text), number, name)
            case ToolResult(call_id=name, content=content):
                for leaf in content:
                    if isinstance(leaf, Text):
                        yield MessageText(
                            "tool", leaf.text, plain(leaf.text), number, name
                        )


def texts_in(transcript: Transcript, index: int) -> Iterator[MessageText]:
    """The texts of a message within a history, each by the one who really speaks.

    What the user answered through a tool is the user's, and what a program reads no model does.
    """
    for piece in texts_of(transcript.messages[index]):
        if transcript.reader(index, piece.part) == "model":
            is_users = transcript.author(index, piece.part) == "user"
            yield replace(piece, by="user") if is_users else piece


class RunHistory:
    """The messages of a run, read once.

    Attributes:
        messages: the raw messages, in order.
        parsed: each as its format reads it.
        pieces: the texts of each message.
        transcript: the same, read as a session reads them.

    Args:
        wire: the format of the messages.
        messages: the raw messages.
        user_tools: tools by which the user answers, as of `ullage.Session`.
    """

    def __init__(
        self,
        wire: Format,
        messages: Sequence[Any] = (),
        *,
        user_tools: tuple[str, ...] = (),
    ) -> None:
        self.wire = wire
        self.transcript = Transcript(
            b"", user_tools=answered_by_user(user_tools)
        )
        self.messages: list[Any] = []
        self.parsed: list[Message] = []
        self.pieces: list[tuple[MessageText, ...]] = []
        self._places: dict[int, int] = {}
        self._with_word: dict[str, list[int]] = {}
        self._holding: dict[
            Atom, tuple[int, list[tuple[int, MessageText]]]
        ] = {}
        for raw in messages:
            self.add(raw)

    def add(self, raw: Any) -> Message:
        """Take in the next message; as its format reads it.

        Raises:
            FormatError: it is not what its format says it is.
        """
        index = len(self.messages)
        message = self.wire.parse(raw, f"messages[{index}]")
        self.transcript.append(message, index.to_bytes(16, "big"))
        pieces = tuple(texts_in(self.transcript, index))
        self.messages.append(raw)
        self._places[id(raw)] = index
        self.parsed.append(message)
        self.pieces.append(pieces)
        for word in {word for piece in pieces for word in words(piece.plain)}:
            self._with_word.setdefault(word, []).append(index)
        return message

    def reply(self, length: int) -> Iterator[Message]:
        """The messages of the reply that begins behind so many messages."""
        return takewhile(
            lambda message: message.role == "assistant", self.parsed[length:]
        )

    def place_of(self, raw: Any) -> int | None:
        """Where this very object is among the messages, or None."""
        return self._places.get(id(raw))

    def before(self, atom: Atom, length: int) -> list[tuple[int, MessageText]]:
        """Every text among the first ``length`` messages that holds an atom, in order."""
        places = self._all(atom)
        return places[
            : bisect_left(places, length, key=lambda place: place[0])
        ]

    def _all(self, atom: Atom) -> list[tuple[int, MessageText]]:
        searched, places = self._holding.get(atom, (0, []))
        if searched < len(self.messages):
            for index in self._candidates(atom, searched):
                places += [
                    (index, piece)
                    for piece in self.pieces[index]
                    if piece.holds(atom)
                ]
            self._holding[atom] = (len(self.messages), places)
        return places

    def _candidates(self, atom: Atom, start: int) -> Sequence[int]:
        """The messages from ``start`` on that hold the rarest word of an atom."""
        inside = words(plain(atom.text))
        if (
            atom.kind == "quote"
        ):  # the first and the last may be parts of words
            inside = inside[1:-1][:_QUOTE_WORDS]
        if not inside:
            return range(start, len(self.messages))
        rarest = min(
            (self._with_word.get(word, []) for word in inside), key=len
        )
        return rarest[bisect_left(rarest, start) :]


Use: TypeAlias = Literal["first", "reuse"]
Sources: TypeAlias = tuple[tuple[int, MessageText], ...]
"""The texts that hold a value, oldest first, each with the number of its message."""
BUCKETS = ("1", "2-3", "4-10", "11-30", ">30")
_UPPER = (1, 3, 10, 30)


def bucket_of(age: int) -> str:
    """The bucket of an age in calls."""
    return BUCKETS[sum(age > upper for upper in _UPPER)]


class Demand(Struct, frozen=True):
    """One value one call needs from the history.

    Attributes:
        call: the number of the call, from 0.
        use: its first use, or one the model has written before.
        age: calls between the latest text that holds it and this one; 1 is the newest.
        weight: 1 over the number of demands of the same use in this call.
        sources: the texts that hold it, oldest first, with their message: of a first use
            tool results; of a re-use everything said.
    """

    call: int
    atom: Atom
    use: Use
    age: int
    weight: float
    sources: Sources

    @property
    def is_far(self) -> bool:
        """Whether it is of the headline: age 4 or more."""
        return self.age >= 4


Demands: TypeAlias = Sequence[Sequence[Demand]]
"""What the calls of a run demand, by call."""


class HeadText(Struct, frozen=True):
    """What a request has outside its messages, for the question who said a value first.

    Attributes:
        text: system text and tool schemas, in one.
        enums: by tool, its name and the values its schema allows.
    """

    text: MessageText
    enums: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, wire: Format, request: Mapping[str, Any]) -> HeadText:
        """The head of a request."""
        whole = {**request, wire.key: []}
        tools = {wire.tool_name(tool): tool for tool in wire.tools(whole)}
        enums = {
            name: frozenset({name, *_enums(tool)})
            for name, tool in tools.items()
        }
        text = "\n".join(wire.head(whole).texts)
        return cls(MessageText("user", text, plain(text), 0), enums)

    def allows(self, tool: str, atom: Atom) -> bool:
        """Whether an atom is the tool's name, or a value its schema lists."""
        return atom.text == tool or atom.text in self.enums.get(tool, ())


def demands_of(
    story: RunHistory,
    lengths: Sequence[int],
    head: HeadText,
    common: Set[str] = frozenset(),
) -> Demands:
    """The demands of every call of a run."""
    classes = (classes_of(story, length, head, common) for length in lengths)
    return [
        list(_demands_of_call(number, call_classes, lengths))
        for number, call_classes in enumerate(classes)
    ]


def classes_of(
    story: RunHistory,
    length: int,
    head: HeadText,
    common: Set[str] = frozenset(),
) -> dict[Atom, tuple[str, Sources]]:
    """The class of every value in the arguments of one reply; of demands, the sources.

    One of ``first`` and ``reuse``, which are demands; ``given`` by the user or the system,
    ``schema``, ``common``, ``generated``.
    """
    classes: dict[Atom, tuple[str, Sources]] = {}
    for call in (
        call for message in story.reply(length) for call in message.calls
    ):
        for atom in sorted(atoms_of(call.arguments)):
            if atom not in classes:
                classes[atom] = _class(
                    atom, call.name, story, length, head, common
                )
    return classes


def _demands_of_call(
    number: int,
    classes: Mapping[Atom, tuple[str, Sources]],
    lengths: Sequence[int],
) -> Iterator[Demand]:
    uses: tuple[Use, ...] = ("first", "reuse")
    for use in uses:
        values = [
            (atom, sources)
            for atom, (kind, sources) in classes.items()
            if kind == use
        ]
        for atom, sources in values:
            age = number - bisect_right(lengths, sources[-1][0]) + 1
            yield Demand(number, atom, use, age, 1 / len(values), sources)


def _class(
    atom: Atom,
    tool: str,
    story: RunHistory,
    length: int,
    head: HeadText,
    common: Set[str],
) -> tuple[str, Sources]:
    places = story.before(atom, length)
    if head.text.holds(atom) or any(piece.by == "user" for _, piece in places):
        return "given", ()
    if head.allows(tool, atom):
        return "schema", ()
    if not places:
        return "generated", ()
    if atom.text in common:
        return "common", ()
    if any(piece.by == "model" for _, piece in places):
        return "reuse", tuple(places)
    return "first", tuple(places)


def _enums(value: Any) -> Iterator[str]:
    """Every value that a schema lists, anywhere in it."""
    if isinstance(value, Mapping):
        listed = value.get("enum")
        yield from (item for item in listed or () if isinstance(item, str))
        for item in value.values():
            yield from _enums(item)
    elif isinstance(value, list):
        for item in value:
            yield from _enums(item)
