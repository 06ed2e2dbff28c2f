"""What was said by whom in a run, and where a value is in it.

Every text is read once: its plain form and its words are kept, and a value is looked for only
in the texts that hold its rarest word.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.replay.evidence.texts import Atom, holds, plain, quotes, words
from ullage.values.messages import Message, Reasoning, Text, ToolCall, ToolResult
from ullage.wires import Format

Speaker: TypeAlias = Literal["user", "model", "tool"]
"""By whom; the system says what it says as the user does."""
_QUOTE_WORDS = 50


class Piece(Struct, frozen=True, gc=False):
    """One text of a message, as on the wire and without JSON escapes (``plain``).

    It is the text of a part, or of an item within a tool result; of arguments and results
    ``call_id`` says of which call.
    """

    by: Speaker
    text: str
    plain: str
    part: int
    item: int = 0
    call_id: str = ""

    def holds(self, atom: Atom) -> bool:
        """Whether a value occurs in it; a quote as it was sent."""
        return quotes(self.text, atom.text) if atom.kind == "quote" else holds(self.plain, atom)


def said(message: Message) -> Iterator[Piece]:
    """Every text of a message that a model reads: not ids, names or other fields."""
    mine: Speaker = "model" if message.role == "assistant" else "user"
    for number, part in enumerate(message.parts):
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield Piece(mine, text, plain(text), number)
            case ToolCall(id=name, arguments=text):
                yield Piece(mine, text, plain(text), number, 0, name)
            case ToolResult(call_id=name, content=content):
                for item, leaf in enumerate(content):
                    if isinstance(leaf, Text):
                        yield Piece("tool", leaf.text, plain(leaf.text), number, item, name)


class Story:
    """The messages of a run, read once.

    Attributes:
        messages: the raw messages, in order.
        parsed: each as its format reads it.
        pieces: the texts of each message.
    """

    def __init__(self, wire: Format, messages: Sequence[Any] = ()) -> None:
        self.wire = wire
        self.messages: list[Any] = []
        self.parsed: list[Message] = []
        self.pieces: list[tuple[Piece, ...]] = []
        self._places: dict[int, int] = {}
        self._with_word: dict[str, list[int]] = {}
        self._holding: dict[Atom, tuple[int, list[tuple[int, Piece]]]] = {}
        for raw in messages:
            self.add(raw)

    def add(self, raw: Any) -> Message:
        """Take in the next message; as its format reads it.

        Raises:
            FormatError: it is not what its format says it is.
        """
        index = len(self.messages)
        message = self.wire.parse(raw, f"messages[{index}]")
        pieces = tuple(said(message))
        self.messages.append(raw)
        self._places[id(raw)] = index
        self.parsed.append(message)
        self.pieces.append(pieces)
        for word in {word for piece in pieces for word in words(piece.plain)}:
            self._with_word.setdefault(word, []).append(index)
        return message

    def reply(self, length: int) -> Iterator[Message]:
        """The messages of the reply that begins behind so many messages."""
        return takewhile(lambda message: message.role == "assistant", self.parsed[length:])

    def place_of(self, raw: Any) -> int | None:
        """Where this very object is among the messages, or None."""
        return self._places.get(id(raw))

    def before(self, atom: Atom, length: int) -> list[tuple[int, Piece]]:
        """Every text among the first ``length`` messages that holds an atom, in order."""
        found = self._all(atom)
        return found[: bisect_left(found, length, key=lambda place: place[0])]

    def _all(self, atom: Atom) -> list[tuple[int, Piece]]:
        known, found = self._holding.get(atom, (0, []))
        if known < len(self.messages):
            for index in self._candidates(atom, known):
                found += [(index, piece) for piece in self.pieces[index] if piece.holds(atom)]
            self._holding[atom] = (len(self.messages), found)
        return found

    def _candidates(self, atom: Atom, known: int) -> Sequence[int]:
        """The messages from ``known`` on that hold the rarest word of an atom."""
        inside = words(plain(atom.text))
        if atom.kind == "quote":  # the first and the last may be parts of words
            inside = inside[1:-1][:_QUOTE_WORDS]
        if not inside:
            return range(known, len(self.messages))
        rarest = min((self._with_word.get(word, []) for word in inside), key=len)
        return rarest[bisect_left(rarest, known) :]
