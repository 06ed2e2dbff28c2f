"""Digest: of an old tool output the lines that tell most, in their order.

A line earns by the names in it that no line chosen before it has (`ullage.stages.names`), and costs
its characters. The line that earns most for its length is taken first, and so on, until none earns
its price. That is one price for all outputs: of one that tells nothing new nothing stays, of one
full of new names a good part.

Figures are whole numbers and ties go to the earlier line, so a digest is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from ullage.stages.names import Known, names_in, spaced, worth_of
from ullage.stages.shorten import ends_of, safe_cut

__all__ = ["digest"]

_LINE_CHARS = 240
_GAP = "…"
_READ_CHARS = 24_000
_SCALE = 1 << 20
"""Worth for each character is reckoned in whole numbers, this many times."""


def digest(text: str, known: Known, *, price: int, most_chars: int) -> str:
    """The lines of a text that tell most of what is not known, or ``""`` if none does.

    A line of more than 240 characters is taken in pieces, and of a text of more than 24,000 the
    middle is passed over. ``…`` is where lines are left out.

    Args:
        text: the original.
        known: the names that are told elsewhere; those of this text are told from now on.
        price: what a line has to earn for each of its characters (`ullage.stages.names.WORTH`).
        most_chars: the most characters of lines.
    """
    lines = _lines(ends_of(text, _READ_CHARS, "\n"))
    words = spaced("\n".join(lines))
    names = names_in(words.split())
    worth = worth_of(names, known)
    known.told.update(names.values())
    if not worth:
        return ""
    chosen = _choose(lines, words.split("\n"), worth, price, most_chars)
    return "\n".join(_with_gaps(lines, chosen)) if chosen else ""


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


def _choose(
    lines: Sequence[str], words: Sequence[str], worth: Mapping[str, int], price: int, room: int
) -> list[int]:
    """The numbers of the lines that earn their price, by greedy cover, in order.

    What a line earns only falls as others are chosen, so it is reckoned anew when its turn comes.
    """
    of = {n: found for n, each in enumerate(words) if (found := worth.keys() & each.split())}
    price *= _SCALE
    queue = [(-_rate(lines[n], found, worth), n) for n, found in of.items()]
    queue = [each for each in queue if -each[0] >= price]
    heapify(queue)
    chosen, shown = list[int](), set[str]()
    while queue:
        rate, number = queue[0]
        now = -_rate(lines[number], of[number] - shown, worth)
        size = len(lines[number]) + 1
        if -now < price or size > room:
            heappop(queue)
        elif now != rate:
            heapreplace(queue, (now, number))
        else:
            heappop(queue)
            chosen.append(number)
            shown |= of[number]
            room -= size
    return sorted(chosen)


def _rate(line: str, names: set[str], worth: Mapping[str, int]) -> int:
    return sum(worth[name] for name in names) * _SCALE // (len(line) + 1)


def _with_gaps(lines: Sequence[str], chosen: Sequence[int]) -> Iterator[str]:
    last = -1
    for number in chosen:
        if number > last + 1:
            yield _GAP
        yield lines[number].rstrip()
        last = number
    if last + 1 < len(lines):
        yield _GAP
