"""What of a reply's wants stands in a view: values, their lines, anchors whole, passages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from lab.replay.carried.wants import Value, unnumbered
from ullage.tools.replay.evidence.atoms import Atom, places, words
from ullage.tools.replay.evidence.demands import RunHistory, texts_of

_NEAR_CHARS = 30
_MOST_PLACES = 20


class Read(NamedTuple):
    """A message as it is sent.

    Attributes:
        raw: the message; held, so that no other object gets its identity.
        sent: its JSON.
        text: all a model reads of it, without escapes.
        wire: the same as it stands on the wire: an edit quotes that.
        spoken: its words alone, a space between two of them.
    """

    raw: Any
    sent: bytes
    text: str
    wire: str
    spoken: str = ""


class View:
    """A view as a model reads it.

    Attributes:
        messages: each message.
        text: all of them.
    """

    def __init__(self, messages: Sequence[Read]) -> None:
        self.messages = messages
        self.text = "\n".join([each.text for each in messages])
        self._unnumbered: str | None = None
        self._spoken: str | None = None

    def shows(self, value: Value) -> bool:
        """Whether the value stands anywhere."""
        return value.atom.text in self.text

    def shows_line(self, value: Value) -> bool:
        """Whether it stands with 30 characters to either side, as far as its line goes."""
        return any(
            line in self.text
            for piece in value.sources
            for line in lines_around(piece.plain, value.atom)
        )

    def shows_whole(self, anchor: str) -> bool:
        """Whether the old text of an edit stands whole, line numbers taken off."""
        if anchor in self.text:
            return True
        if self._unnumbered is None:
            wire = "\n".join([each.wire for each in self.messages])
            self._unnumbered = "\n".join(
                [unnumbered(self.text), unnumbered(wire), wire]
            )
        return anchor in self._unnumbered

    def says(self, passage: str) -> bool:
        """Whether these words stand in a row, whatever is between two of them."""
        if self._spoken is None:
            self._spoken = "\n".join(
                [f" {each.spoken} " for each in self.messages]
            )
        return f" {passage} " in self._spoken


def lines_around(text: str, atom: Atom) -> list[str]:
    """A value with 30 characters to either side, as far as its line goes, where it stands."""
    found = []
    for at in islice(places(text, atom), _MOST_PLACES):
        stop = at + len(atom.text)
        begin = max(text.rfind("\n", 0, at) + 1, at - _NEAR_CHARS)
        end = text.find("\n", stop)
        found.append(
            text[
                begin : min(len(text) if end < 0 else end, stop + _NEAR_CHARS)
            ]
        )
    return found


class Reader:
    """Reads the messages of a run's views, each once."""

    def __init__(self, story: RunHistory) -> None:
        self._story = story
        self._read: dict[int, Read] = {}

    def view(self, messages: Sequence[Any]) -> View:
        """A view of these messages."""
        return View([self.read(raw) for raw in messages])

    def read(self, raw: Any) -> Read:
        """One message."""
        found = self._read.get(id(raw))
        if found is None:
            place = self._story.place_of(raw)
            pieces = (
                tuple(texts_of(self._story.wire.parse(raw, "view")))
                if place is None
                else self._story.pieces[place]
            )
            text = "\n".join([piece.plain for piece in pieces])
            wire = "\n".join([piece.text for piece in pieces])
            spoken = " ".join(words(text))
            found = Read(raw, msgspec.json.encode(raw), text, wire, spoken)
            self._read[id(raw)] = found
        return found
