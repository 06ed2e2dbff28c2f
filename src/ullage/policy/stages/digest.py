"""Digest: of an old tool output the lines that tell most, in their order.

A line earns by the names in it that no line chosen before it has (`ullage.policy.stages.names`),
and costs its characters. The line that earns most for its length is taken first, and so on, until
none earns its price. That is one price for all outputs: of one that tells nothing new nothing
stays, of one full of new names a good part.

Figures are whole numbers and ties go to the earlier line, so a digest is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heapreplace
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
        """What follows a ref: a few names, and the lines that earn their price.

        Args:
            price: what a line has to earn for each of its characters.
            most_chars: the most characters of all lines.
        """
        chosen, words = _choose(self, price, most_chars)
        names = self._other_names(words)
        if not chosen:
            return names
        lines = "\n".join(self.lines[number].rstrip() for number in chosen)
        return f"{names}:\n{lines}"

    def _other_names(self, words: Set[str]) -> str:
        """Names that nothing else in the view tells, nor a chosen line; of most lines first.

        Args:
            words: those of the chosen lines.
        """
        unknown = {
            word for word, worth in self.worth.items() if worth == WORTH
        }
        unknown -= ALARMS
        unknown -= words
        if not unknown:
            return ""
        counts = dict.fromkeys(sorted(unknown), 0)
        for line in self.names.values():
            for word in line:
                if word in counts:
                    counts[word] += 1
        by_count = sorted(counts, key=counts.__getitem__, reverse=True)
        # whole words alone: a space ends each, the last one too
        listed = " ".join([*by_count, ""])
        listed = listed[: _NAMES_CHARS + 1]
        names = listed.rpartition(" ")[0]
        return f", with {names}" if names else ""


def read(text: str, known: KnownNames, price: int) -> RankedLines:
    """What a text tells that is not known; its names are known from now on.

    A line of more than 240 characters is taken in pieces, and of a text of more than 24,000 the
    middle is passed over. The price is the least that a digest is made at.
    """
    lines = _lines(ends_of(text, _READ_CHARS, "\n"))
    words = words_in(" \n ".join(lines))
    names = names_in(words)
    worth = worth_of(names, known)
    # from here on the same names earn less in any other output
    known.outputs.update(names.values())
    names_by_line = dict[int, Mapping[str, int]]()
    ranks = list[int]()
    number = 0
    line = dict[str, int]()
    for word in words:
        if word in names:
            line[word] = worth[word]
            continue
        if word != "\n":
            continue
        if line:
            size = len(lines[number]) + 1
            earned = sum(line.values())
            # one new name is listed beside the ref even where its line is too long
            if earned >= WORTH or earned >= price * size:
                ranks.append(_rank(number, earned, size))
                names_by_line[number] = line
            line = {}
        number += 1
    return RankedLines(lines, worth, names_by_line, ranks)


def _rank(number: int, earned: int, size: int) -> int:
    """The rank of a line; its number is the remainder by `_MOST_LINES`."""
    return number - earned * _SCALE // size * _MOST_LINES


def _lines(text: str) -> list[str]:
    """The lines of a text, a long one in pieces."""
    lines = text.splitlines()
    longest = max(map(len, lines), default=0)
    if longest <= _LINE_CHARS:
        return lines
    pieces = list[str]()
    for line in lines:
        pieces += _pieces(line)
    return pieces


def _pieces(line: str) -> Iterator[str]:
    """A line in pieces, each ending at a space where one stands in its second half."""
    start = 0
    while len(line) - start > _LINE_CHARS:
        latest = start + _LINE_CHARS
        stop = line.rfind(" ", start + _LINE_CHARS // 2, latest)
        if stop <= 0:
            stop = safe_cut(line, latest)
        yield line[start:stop]
        start = stop
    yield line[start:]


def _choose(
    ranked: RankedLines, price: int, room: int
) -> tuple[list[int], set[str]]:
    """The numbers of the lines that earn their price, by greedy cover, in order; and their words.

    What a line earns only falls as others are chosen, so it is reckoned anew when its turn comes.
    """
    queue = [*ranked.ranks]
    heapify(queue)
    too_low = (1 - price * _SCALE) * _MOST_LINES
    chosen = list[int]()
    chosen_words = set[str]()
    while queue and queue[0] < too_low:
        rank = queue[0]
        number = rank % _MOST_LINES
        words = ranked.names[number]
        size = len(ranked.lines[number]) + 1
        # a line that shares no word with those chosen earns what it did
        if not chosen_words.isdisjoint(words):
            earned = 0
            for word, worth in words.items():
                if word not in chosen_words:
                    earned += worth
            rank = _rank(number, earned, size)
        if rank >= too_low or size > room:
            heappop(queue)
        elif rank > queue[0]:
            heapreplace(queue, rank)
        else:
            heappop(queue)
            chosen.append(number)
            chosen_words.update(words)
            room -= size
    return sorted(chosen), chosen_words
