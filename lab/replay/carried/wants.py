"""What the replies of a run need of its history: values of old results, and texts to be edited.

A *value* looks like an identifier: six characters or more, with a digit, one of ``_ / .``, or small
letters and capitals. It is wanted where a reply, in text or arguments, has it for the first time,
an earlier result holds it, and neither user, system nor an earlier reply said it. An *anchor* is
the old text of an edit that stands whole in the history, line numbers taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from ullage.core.values.messages import ToolResult
from ullage.tools.replay.evidence.atoms import Atom, atoms_of
from ullage.tools.replay.evidence.demands import (
    HeadText,
    MessageText,
    RunHistory,
    texts_of,
)

FAR_RESULTS = 4
"""A value is far if its newest source is so many results back, or more."""
_VALUE = re.compile(r"\w[\w./-]{4,}\w")
_MARKED = re.compile(r"[\d_./]|[a-z][A-Z]|[A-Z][a-z]+[A-Z]|[A-Z]{2}[a-z]")
_NUMBERED = re.compile(r"(?m)^ *\d+(?:\t|→|[:|] ?)")


class Value(Struct, frozen=True):
    """A value that a reply needs.

    Attributes:
        atom: the value.
        sources: the results that hold it, oldest first.
        source: the number of the message of the newest of them.
        is_far: whether that is far back.
    """

    atom: Atom
    sources: tuple[MessageText, ...]
    source: int
    is_far: bool


class Anchor(Struct, frozen=True):
    """The old text of an edit.

    Attributes:
        text: the text.
        holder: the newest text of the history that holds it whole, line numbers and all.
        source: the number of its message.
    """

    text: str
    holder: str
    source: int


class Wants(Struct, frozen=True):
    """What one reply needs.

    Attributes:
        values: the values it uses first.
        anchors: the old texts of its edits.
    """

    values: tuple[Value, ...]
    anchors: tuple[Anchor, ...]


def unnumbered(text: str) -> str:
    """A text without the line numbers that tools put before lines."""
    return _NUMBERED.sub("", text)


def wants_of(
    story: RunHistory, lengths: Sequence[int], head: HeadText
) -> list[Wants]:
    """What each reply of a run needs.

    Args:
        story: the whole run.
        lengths: how many messages came before each reply.
        head: what a request has outside its messages.
    """
    counts = (
        sum(isinstance(p, ToolResult) for p in each.parts)
        for each in story.parsed
    )
    results = [0, *accumulate(counts)]
    return [_wants(story, length, head, results) for length in lengths]


def _wants(
    story: RunHistory, length: int, head: HeadText, results: Sequence[int]
) -> Wants:
    pieces = [
        piece for message in story.reply(length) for piece in texts_of(message)
    ]
    texts = dict.fromkeys(
        text for piece in pieces for text in _looks_like_values(piece.plain)
    )
    found = (_value(story, text, length, head, results) for text in texts)
    calls = (piece.text for piece in pieces if piece.call_id)
    old = {
        atom.text
        for call in calls
        for atom in atoms_of(call)
        if atom.kind == "quote"
    }
    anchors = (_anchor(story, length, text) for text in sorted(old))
    return Wants(
        tuple(value for value in found if value is not None),
        tuple(anchor for anchor in anchors if anchor is not None),
    )


def _looks_like_values(text: str) -> Iterator[str]:
    return (found for found in _VALUE.findall(text) if _MARKED.search(found))


def _value(
    story: RunHistory,
    text: str,
    length: int,
    head: HeadText,
    results: Sequence[int],
) -> Value | None:
    atom = Atom(text, "path" if "/" in text else "identifier")
    places = story.before(atom, length)
    if (
        not places
        or any(piece.by != "tool" for _, piece in places)
        or head.text.holds(atom)
    ):
        return None
    source = places[-1][0]
    is_far = results[length] - results[source] >= FAR_RESULTS
    return Value(atom, tuple(piece for _, piece in places), source, is_far)


def _anchor(story: RunHistory, length: int, text: str) -> Anchor | None:
    """The old text of an edit, where the history holds it whole, line numbers taken off."""
    for index in range(length - 1, -1, -1):
        for piece in reversed(story.pieces[index]):
            forms = (
                piece.text,
                unnumbered(piece.text),
                unnumbered(piece.plain),
            )
            if any(text in form for form in forms):
                return Anchor(text, piece.text, index)
    return None
