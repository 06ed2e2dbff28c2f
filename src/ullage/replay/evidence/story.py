"""A run as it is told: what was said by whom, where it may be cut, and where a word stands.

A story only grows, a message at a time, so that what is judged can be shown any beginning of
it. Every text is read once: its plain form and its words are kept, and a value is looked for
only in the texts that hold its rarest word.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.history.transcript import Transcript
from ullage.replay.evidence.texts import Atom, holds, plain, quotes, words
from ullage.values.messages import Message, Reasoning, Text, ToolCall, ToolResult
from ullage.wires import Format

__all__ = ["Piece", "Said", "Story", "said"]

Said: TypeAlias = Literal["told", "own", "result"]
"""By whom: the user or the system; the model; a tool."""
_QUOTE_WORDS = 50


class Piece(Struct, frozen=True, gc=False):
    """One text of a message.

    Attributes:
        by: who said it.
        text: as on the wire.
        plain: without JSON escapes.
        part: the number of its part in the message.
        item: the number of the item within a tool result.
        call_id: the id of the call whose arguments or result this is, or ``""``.
    """

    by: Said
    text: str
    plain: str
    part: int
    item: int = 0
    call_id: str = ""


def said(message: Message) -> Iterator[Piece]:
    """Every text of a message that a model reads: not ids, names or other fields."""
    mine: Said = "own" if message.role == "assistant" else "told"
    for number, part in enumerate(message.parts):
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield Piece(mine, text, plain(text), number)
            case ToolCall(id=name, arguments=text):
                yield Piece(mine, text, plain(text), number, 0, name)
            case ToolResult(call_id=name, content=content):
                for item, leaf in enumerate(content):
                    if isinstance(leaf, Text):
                        yield Piece("result", leaf.text, plain(leaf.text), number, item, name)


class Story:
    """The messages of a run, read once.

    Attributes:
        messages: the raw messages, in order.
        parsed: each as its format reads it.
        pieces: the texts of each message.
        results: where each tool result stands: message and part.
        origins: the index of each message in the recorded run; -1 if it was not recorded.
        told: the messages in which the user or the system says something.
    """

    def __init__(self, wire: Format, messages: Sequence[Any] = ()) -> None:
        """Begin with these messages."""
        self.wire = wire
        self.messages: list[Any] = []
        self.parsed: list[Message] = []
        self.pieces: list[tuple[Piece, ...]] = []
        self.results: list[tuple[int, int]] = []
        self.origins: list[int] = []
        self.told: list[int] = []
        self._recorded = 0
        self._places: dict[int, int] = {}
        self._transcript = Transcript(b"")
        self._fixed: list[bool] = []
        self._with_word: dict[str, list[int]] = {}
        self._holding: dict[Atom, tuple[int, list[tuple[int, Piece]]]] = {}
        self.extend(messages)

    def extend(self, messages: Sequence[Any], *, recorded: bool = True) -> None:
        """Take in the next messages; not ``recorded`` are those put in by who judges."""
        for raw in messages:
            self.origins.append(self._recorded if recorded else -1)
            self._recorded += recorded
            index = len(self.messages)
            message = self.wire.parse(raw, f"messages[{index}]")
            pieces = tuple(said(message))
            self.messages.append(raw)
            self._places[id(raw)] = index
            self.parsed.append(message)
            self.pieces.append(pieces)
            if any(piece.by == "told" for piece in pieces):
                self.told.append(index)
            kinds = ((number, isinstance(p, ToolResult)) for number, p in enumerate(message.parts))
            self.results += [(index, number) for number, is_result in kinds if is_result]
            self._transcript.append(message, index.to_bytes(16, "big"))
            speaks = message.role in ("system", "user") and not message.results
            self._fixed.append(speaks)
            for word in {word for piece in pieces for word in words(piece.plain)}:
                self._with_word.setdefault(word, []).append(index)

    def place_of(self, raw: Any) -> int | None:
        """Where this very object stands among the messages, or None."""
        return self._places.get(id(raw))

    def blocks(self, length: int) -> list[tuple[int, int]]:
        """The first ``length`` messages in runs that may be parted from one another.

        A call is never parted from its results, nor one message of a reply from the next.
        """
        cuts = [i for i in range(1, length) if self._transcript.seam(i)]
        edges = [0, *cuts, length]
        return [(a, b) for a, b in pairwise(edges) if a < b]

    def is_fixed(self, index: int) -> bool:
        """Whether the user or the system says this, and nobody else anything in it."""
        return self._fixed[index]

    def call_for(self, index: int, part: int) -> ToolCall | None:
        """The call that the result in this part answers."""
        return self._transcript.call_for(index, part)

    def before(self, atom: Atom, length: int) -> list[tuple[int, Piece]]:
        """Every text among the first ``length`` messages that holds an atom, in order."""
        found = self._all(atom)
        return found[: bisect_left(found, length, key=lambda place: place[0])]

    def _all(self, atom: Atom) -> list[tuple[int, Piece]]:
        known, found = self._holding.get(atom, (0, []))
        if known < len(self.messages):
            holding = _holds_quote if atom.kind == "quote" else _holds
            for index in self._candidates(atom, known):
                found += [(index, piece) for piece in self.pieces[index] if holding(piece, atom)]
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


def _holds(piece: Piece, atom: Atom) -> bool:
    return holds(piece.plain, atom)


def _holds_quote(piece: Piece, atom: Atom) -> bool:
    return quotes(piece.text, atom.text)
