"""Digest: of an old tool output the lines that tell most, in their order.

A line earns by the names in it that no line chosen before it has (`ullage.stages.names`), and costs
its characters. The line that earns most for its length is taken first, and so on, until none earns
its price. That is one price for all outputs: of one that tells nothing new nothing stays, of one
full of new names a good part.

Figures are whole numbers and ties go to the earlier line, so a digest is the same in every process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain, pairwise
from typing import NamedTuple

from ullage.stages.names import ALARMS, WORTH, Known, names_in, spaced, worth_of
from ullage.stages.shorten import ends_of, safe_cut

_LINE_CHARS = 240
_GAP = "…"
_READ_CHARS = 24_000
_NAMES_CHARS = 80  # beside a ref: by names a reader tells which one to open
_LINE_END = ";"
"""Stands for a line end among words. No word has it: `spaced` puts a space there."""
_SCALE = 1 << 20
"""Worth for each character is reckoned in whole numbers, this many times."""


class Reading(NamedTuple):
    """What a text tells that is not known: enough to make digests of it at any price.

    Attributes:
        lines: its lines, a long one in pieces.
        worth: of each word that holds a name.
        names: of each line that has any, these words, and what each is worth.
    """

    lines: Sequence[str]
    worth: Mapping[str, int]
    names: Mapping[int, Mapping[str, int]]

    def digest(self, price: int, most_chars: int) -> str:
        """What follows a ref: a few names, and the lines that earn their price, ``…`` between."""
        chosen = _choose(self, price, most_chars)
        lines = "\n".join([":", *_with_gaps(self.lines, chosen)]) if chosen else ""
        return f"{self._others(chosen)}{lines}"

    def _others(self, chosen: Sequence[int]) -> str:
        """Names that nothing else in the view tells, nor a chosen line; of most lines first."""
        counts = Counter(chain.from_iterable(self.names.values()))
        shown = ALARMS.union(*(self.names[number] for number in chosen))
        new = sorted(word for word in counts.keys() - shown if self.worth[word] == WORTH)
        listed = " ".join([*sorted(new, key=counts.__getitem__, reverse=True), ""])
        return f", with {kept}" if (kept := listed[: _NAMES_CHARS + 1].rpartition(" ")[0]) else ""


def read(text: str, known: Known) -> Reading:
    """What a text tells that is not known; its names are known from now on.

    A line of more than 240 characters is taken in pieces, and of a text of more than 24,000 the
    middle is passed over.
    """
    lines = _lines(ends_of(text, _READ_CHARS, "\n"))
    words = spaced("\n".join(lines)).replace("\n", f" {_LINE_END} ").split()
    names = names_in(words, known.plain)
    worth = worth_of(names, known)
    known.told.update(names.values())
    return Reading(lines, worth, _by_line(words, worth))


def _by_line(words: Sequence[str], worth: Mapping[str, int]) -> dict[int, dict[str, int]]:
    """Of the words that have a worth, those in each line, and it."""
    number, line, found = 0, dict[str, int](), dict[int, dict[str, int]]()
    for word in filter((worth.keys() | {_LINE_END}).__contains__, words) if worth else ():
        if word != _LINE_END:
            line[word] = worth[word]
        else:
            if line:
                found[number], line = line, {}
            number += 1
    return found | {number: line} if line else found


def _lines(text: str) -> list[str]:
    """The lines of a text, a long one in pieces."""
    lines = list[str]()
    for line in text.splitlines():
        start = 0
        while len(line) - start > _LINE_CHARS:
            stop = line.rfind(" ", start + _LINE_CHARS // 2, start + _LINE_CHARS)
            stop = stop if stop > 0 else safe_cut(line, start + _LINE_CHARS)
            lines.append(line[start:stop])
            start = stop
        lines.append(line[start:])
    return lines


def _choose(reading: Reading, price: int, room: int) -> list[int]:
    """The numbers of the lines that earn their price, by greedy cover, in order.

    What a line earns only falls as others are chosen, so it is reckoned anew when its turn comes.
    """
    lines, names, worth = reading.lines, reading.names, reading.worth.__getitem__
    queue = list[tuple[int, int]]()
    for number, found in names.items():
        earned, size = sum(found.values()), len(lines[number]) + 1
        if earned >= price * size:
            queue.append((-(earned * _SCALE // size), number))
    heapify(queue)
    chosen, shown = list[int](), set[str]()
    while queue:
        rate, number = queue[0]
        size = len(lines[number]) + 1
        now = sum(map(worth, names[number].keys() - shown)) * _SCALE // size
        if now < price * _SCALE or size > room:
            heappop(queue)
        elif now != -rate:
            heapreplace(queue, (-now, number))
        else:
            heappop(queue)
            chosen.append(number)
            shown.update(names[number])
            room -= size
    return sorted(chosen)


def _with_gaps(lines: Sequence[str], chosen: Sequence[int]) -> Iterator[str]:
    for last, number in pairwise([-1, *chosen, len(lines)]):
        if number > last + 1:
            yield _GAP
        if number < len(lines):
            yield lines[number].rstrip()
