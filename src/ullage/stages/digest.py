"""Digest: of an old tool output the lines that say most, in their order.

What an agent uses again are identifiers, types, constants and paths (`frontier`, "Evidence"), and
these are made of capitals, ``_`` and ``/``. So lines are ranked by how many of these marks they
have for their length, which is counted in bytes for all lines at once. Only the best lines, twice
as many as fit, are parted into names. A line of which half the names are on no line chosen
before goes first, the others where room is left. The first and the last lines are asked first of
all. One line at the end lists identifiers of the lines that were left out.

Nothing depends on the order of a set: a digest is the same in every process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from operator import add, truediv

from ullage.stages.shorten import ends_of, safe_cut

__all__ = ["digest"]

_MARKS = b"\n_/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = bytes(set(range(256)).difference(_MARKS))
_ERROR, _ERROR_MARKS = b"rror", b"____"
"""A line that speaks of an error counts as if it had so many marks more."""
_NAME_MARKS = "_$.-/"
_LEAST_NAME_CHARS = 4
_MOST_NAME_CHARS = 60
_LINE_CHARS = 240
_LINE_COST_CHARS = 12
"""What a line costs beside its characters, so that none wins by being short."""
_EDGE_LINES = 2
_NEAR_TIMES = 2
_LINES_SHARE = 0.8
_GAP = "…"
_READ_CHARS = 24_000
_MOST_KNOWN = 20_000


class _Spaces(dict[int, str]):
    """What `str.translate` puts for a character: itself in names and line ends, else a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        put = char if char.isalnum() or char in f"\n{_NAME_MARKS}" else " "
        if len(self) < _MOST_KNOWN:
            self[code] = put
        return put


_SPACES = _Spaces()


def digest(text: str, chars: int) -> str:
    """The lines of a text that say most, and names from the others.

    A line of more than 240 characters is taken in pieces, and of a text of more than 24,000
    the middle is passed over. ``…`` is where lines are left out.

    Args:
        text: the original.
        chars: about how many characters the digest may have.
    """
    lines = _lines(ends_of(text, _READ_CHARS, "\n"))
    chosen, left = _choose(lines, _best(lines, _NEAR_TIMES * chars), int(chars * _LINES_SHARE))
    shown, last = list[str](), -1
    for number in chosen:
        if number > last + 1:
            shown.append(_GAP)
        shown.append(lines[number].rstrip())
        last = number
    if last + 1 < len(lines):
        shown.append(_GAP)
    names, room = _identifiers(left), chars - sum(map(len, shown))
    fits = bisect_right(list(accumulate(len(name) + 1 for name in names)), room)
    return "\n".join([*shown, f"[also: {' '.join(names[:fits])}]"] if fits else shown)


def _lines(text: str) -> list[str]:
    """The lines of a text, a long one in pieces."""
    lines = text.splitlines()
    if max(map(len, lines), default=0) <= _LINE_CHARS:
        return lines
    return [piece for line in lines for piece in _pieces(line)]


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _LINE_CHARS:
        stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
        stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
        yield line[start:stop]
        start = stop
    yield line[start:]


def _best(lines: Sequence[str], chars: int) -> list[int]:
    """The numbers of so many characters of lines: the edges, then those with the most marks."""
    spelled = "\n".join(lines).encode("utf-8", "surrogatepass").replace(_ERROR, _ERROR_MARKS)
    marks = map(len, spelled.translate(None, _OTHERS).split(b"\n"))
    costs = map(add, map(len, lines), repeat(_LINE_COST_CHARS))
    dense = list(map(truediv, marks, costs))
    middle = range(_EDGE_LINES, len(lines) - _EDGE_LINES)
    edges = [*range(len(lines))[:_EDGE_LINES], *range(len(lines))[_EDGE_LINES:][-_EDGE_LINES:]]
    best = []
    for number in (*edges, *sorted(middle, key=dense.__getitem__, reverse=True)):
        chars -= len(lines[number]) + 1
        if chars < 0:
            break
        best.append(number)
    return best


def _choose(lines: Sequence[str], best: Sequence[int], room: int) -> tuple[list[int], list[str]]:
    """Of the best lines those that fit, in order; and the names that are in none of them."""
    spaced = "\n".join([lines[number] for number in best]).translate(_SPACES).split("\n")
    chosen, shown = list[int](), set[str]()
    again, left = list[tuple[int, list[str]]](), list[str]()
    for number, names in zip(best, map(str.split, spaced), strict=False):
        new = [name for name in names if name not in shown]
        size = len(lines[number]) + 1
        if new and 2 * len(new) >= len(names) and size <= room:
            room -= size
            chosen.append(number)
            shown.update(new)
        elif new:
            again.append((number, new))
    for number, new in again:
        size = len(lines[number]) + 1
        if size <= room:
            room -= size
            chosen.append(number)
            shown.update(new)
        else:
            left += new
    return sorted(chosen), [name for name in left if name not in shown]


def _identifiers(names: Iterable[str]) -> list[str]:
    """Each name once that is no plain word; what is short first, paths and numbers last."""
    stripped = dict.fromkeys(name.strip(_NAME_MARKS) for name in dict.fromkeys(names))
    found = [name for name in stripped if not (name.isalpha() and name[1:].islower())]
    fits = [name for name in found if _LEAST_NAME_CHARS <= len(name) <= _MOST_NAME_CHARS]
    return sorted(fits, key=lambda name: (name[0].isdigit() or "/" in name, len(name)))
