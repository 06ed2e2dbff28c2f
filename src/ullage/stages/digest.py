"""Digest: of an old tool output the lines that tell most, in their order.

A line tells what it names and no line before it named, by its length. Identifiers count for
more than words and paths, for they are what an agent uses again (`frontier`, "Evidence");
what is named three times for more than what is named once; definitions and errors for more
than other lines. The first and the last lines stay. One line at the end names what the lines
left out name. So what was read long ago stands in the view in the line that gave it, at a
fraction of its tokens.

Scores are whole numbers, and names are taken in the order of the text: a digest comes out the
same in every process, whatever its hash seed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from ullage.stages.shorten import ERRORS, safe_cut

__all__ = ["digest"]

_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[.\-/:][\w$]+)*|\d[\w.]{3,}")
_MARK = re.compile(r"[^A-Za-z]|(?<=.)[A-Z]")
"""In an identifier, and in no plain word: a mark, a digit, a capital within."""
_DEFINES = frozenset(("class", "const", "def", "enum", "export", "fn", "func", "function")) | {
    "impl",
    "interface",
    "public",
    "struct",
    "type",
}
_WORTH_OF_IDENTIFIER, _WORTH_OF_OTHERS = 10, 3
_MARKED_TIMES = 1.5
"""What a definition or an error counts for."""
_OFTEN = 3
_LEAST_NAME_CHARS, _MOST_NAME_CHARS = 4, 60
_COUNTED_CHARS = 20
"""A name is worth its characters, but no more than these."""
_LINE_CHARS = 240
_LINE_COST_CHARS = 12
"""What a line costs beside its characters, so that none wins by being short."""
_EDGE_LINES = 2
_LINES_SHARE = 0.8
_GAP = "…"
_READ_CHARS = 40_000
"""Of a longer text the digest is made of its beginning and its end."""


class _Line(Struct, frozen=True, gc=False):
    """A line of the original: its place, its names, and what it tells by its length."""

    number: int
    text: str
    names: Sequence[str]
    worth: float


def digest(text: str, chars: int) -> str:
    """The lines of a text that tell most, and names from the others.

    A line of more than 240 characters is taken in pieces, and of a text of more than 40,000
    the middle is passed over. Where lines are left out stands ``…``.

    Args:
        text: the original.
        chars: about how many characters the digest may have.
    """
    pieces = list(_pieces(text))
    named = [[n for n in _NAME.findall(piece) if len(n) >= _LEAST_NAME_CHARS] for piece in pieces]
    counts = Counter(chain.from_iterable(named))
    lines = _weighed(pieces, named, counts)
    chosen = _choose(lines, int(chars * _LINES_SHARE))
    shown, last = list[str](), -1
    for number in chosen:
        if number > last + 1:
            shown.append(_GAP)
        shown.append(pieces[number])
        last = number
    if last + 1 < len(pieces):
        shown.append(_GAP)
    told = set(chain.from_iterable(named[number] for number in chosen))
    names = " ".join(_names(counts, told, chars - sum(map(len, shown))))
    return "\n".join([*shown, f"[also: {names}]"] if names else shown)


def _pieces(text: str) -> Iterator[str]:
    if len(text) > _READ_CHARS:
        yield from _pieces(text[: safe_cut(text, _READ_CHARS * 2 // 3)])
        text = text[safe_cut(text, len(text) - _READ_CHARS // 3) :]
    for line in text.splitlines():
        start = 0
        while len(line) - start > _LINE_CHARS:
            stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
            stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
            yield line[start:stop]
            start = stop
        yield line[start:] if start else line


def _weighed(
    pieces: Sequence[str], named: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> list[_Line]:
    worth_of = {name: _worth(name, count) for name, count in counts.items()}
    lines, known = [], set[str]()
    for number, (piece, names) in enumerate(zip(pieces, named, strict=True)):
        new = set(names) - known
        known |= new
        worth = sum(map(worth_of.__getitem__, new)) / (len(piece) + _LINE_COST_CHARS)
        if not _DEFINES.isdisjoint(piece.split(None, 3)[:3]) or ERRORS.search(piece):
            worth *= _MARKED_TIMES
        lines.append(_Line(number, piece, names, worth))
    return lines


def _choose(lines: Sequence[_Line], room: int) -> list[int]:
    """The numbers of the lines that fit: the edges first, then what tells most."""
    edges = {*range(_EDGE_LINES), *range(len(lines) - _EDGE_LINES, len(lines))}
    chosen = []
    for line in sorted(lines, key=lambda line: (line.number not in edges, -line.worth)):
        cost = len(line.text) + 1
        tells = line.worth > 0 or line.number in edges
        if tells and cost <= room and line.text.strip():
            room -= cost
            chosen.append(line.number)
    return sorted(chosen)


def _names(counts: Mapping[str, int], told: set[str], room: int) -> Iterator[str]:
    """Identifiers of the lines left out: the frequent first, of them the short; paths last."""
    left = [n for n in counts if n not in told and len(n) <= _MOST_NAME_CHARS and _MARK.search(n)]
    for name in sorted(left, key=lambda n: ("/" in n, -min(counts[n], _OFTEN), len(n))):
        room -= len(name) + 1
        if room < 0:
            return
        yield name


def _worth(name: str, count: int) -> int:
    is_identifier = "/" not in name and _MARK.search(name)
    worth = _WORTH_OF_IDENTIFIER if is_identifier else _WORTH_OF_OTHERS
    return worth * min(len(name), _COUNTED_CHARS) * (2 if count >= _OFTEN else 1)
