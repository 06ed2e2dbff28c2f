"""Digest: of an old tool output the lines that tell most, in their order.

A line earns by the names in it that no line chosen before it has (`ullage.policy.stages.names`),
and costs its characters. The line that earns most for its length is taken first, and so on, until
none earns its price. That is one price for all outputs: of one that tells nothing new nothing
stays, of one full of new names a good part.

Figures are whole numbers and ties go to the earlier line, so a digest is the same in every process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import NamedTuple

from ullage.policy.stages.names import (
    ALARMS,
    WORTH,
    KnownNames,
    names_in,
    words_in,
    worth_of,
)
from ullage.policy.stages.shorten import ends_of, safe_cut

_LINE_CHARS = 240
_READ_CHARS = 24_000
_NAMES_CHARS = 80  # beside a ref: by names a reader tells which one to open
_SCALE = 1 << 20
"""Worth for each character is reckoned in whole numbers, this many times."""
_MOST_LINES = 1 << 16
"""The rank of a line is lower, the more it earns for its length; of equals, the earlier it is."""


class RankedLines(NamedTuple):
    """What a text tells that is not known: enough to make digests of it at any price not lower.

    Attributes:
        lines: its lines, a long one in pieces.
        worth: of each word that holds a name.
        names: of each line that earns the price or as a new name does, its words and their worth.
        ranks: of each of these lines.
    """

    lines: Sequence[str]
    worth: Mapping[str, int]
    names: Mapping[int, Mapping[str, int]]
    ranks: Sequence[int]

    def digest(self, price: int, most_chars: int) -> str:
        """What follows a ref: a few names, and the lines that earn their price."""
        chosen, shown = _choose(self, price, most_chars)
        told = (self.lines[number].rstrip() for number in chosen)
        lines = "\n".join([":", *told]) if chosen else ""
        return f"{self._others(shown)}{lines}"

    def _others(self, shown: Set[str]) -> str:
        """Names that nothing else in the view tells, nor a chosen line; of most lines first."""
        new = (
            {word for word, worth in self.worth.items() if worth == WORTH}
            - ALARMS
            - shown
        )
        told = chain.from_iterable(self.names.values())
        counts = Counter(filter(new.__contains__, told)) if new else {}
        listed = " ".join(
            [*sorted(sorted(new), key=counts.__getitem__, reverse=True), ""]
        )
        return (
            f", with {kept}"
            if (kept := listed[: _NAMES_CHARS + 1].rpartition(" ")[0])
            else ""
        )


def read(text: str, known: KnownNames, price: int) -> RankedLines:
    """What a text tells that is not known; its names are known from now on.

    A line of more than 240 characters is taken in pieces, and of a text of more than 24,000 the
    middle is passed over. The price is the least that a digest is made at.
    """
    lines = _lines(ends_of(text, _READ_CHARS, "\n"))
    words = words_in(" \n ".join(lines))
    names = names_in(words)
    worth = worth_of(names, known)
    known.outputs.update(names.values())
    number, line, found, ranks = (
        0,
        dict[str, int](),
        dict[int, dict[str, int]](),
        list[int](),
    )
    for word in filter({*names, "\n"}.__contains__, words):
        if word != "\n":
            line[word] = worth[word]
            continue
        if line:
            size, earned = len(lines[number]) + 1, sum(line.values())
            if earned >= WORTH or earned >= price * size:
                ranks.append(number - earned * _SCALE // size * _MOST_LINES)
                found[number], line = line, {}
            else:
                line.clear()
        number += 1
    return RankedLines(lines, worth, found, ranks)


def _lines(text: str) -> list[str]:
    """The lines of a text, a long one in pieces."""
    lines = text.splitlines()
    is_short = max(map(len, lines), default=0) <= _LINE_CHARS
    return lines if is_short else [piece for line in lines for piece in _pieces(line)]


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _LINE_CHARS:
        stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
        stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
        yield line[start:stop]
        start = stop
    yield line[start:]


def _choose(reading: RankedLines, price: int, room: int) -> tuple[list[int], set[str]]:
    """The numbers of the lines that earn their price, by greedy cover, in order; and their words.

    What a line earns only falls as others are chosen, so it is reckoned anew when its turn comes.
    """
    lines, names = reading.lines, reading.names
    queue, too_low = [*reading.ranks], (1 - price * _SCALE) * _MOST_LINES
    heapify(queue)
    chosen, shown = list[int](), set[str]()
    while queue and queue[0] < too_low:
        number = queue[0] % _MOST_LINES
        line, size, rank = names[number], len(lines[number]) + 1, queue[0]
        if not shown.isdisjoint(line):
            earned = 0
            for word in line:
                earned += 0 if word in shown else line[word]
            rank = number - earned * _SCALE // size * _MOST_LINES
        if rank >= too_low or size > room:
            heappop(queue)
        elif rank > queue[0]:
            heapreplace(queue, rank)
        else:
            heappop(queue)
            chosen.append(number)
            shown.update(line)
            room -= size
    return sorted(chosen), shown
