"""One output, read in parts: from a store chunk by chunk, or from a string at hand.

The readers below `ullage.session.recall` are written once, over this. They are generators of
effects; over a string at hand they ask for nothing. At any time two chunks are held and no more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from ullage.core.values.effects import Chunk, Output, Shape, Steps

PIECE_CHARS = 1 << 18
"""A text is looked through in pieces of so many characters."""


class OutputReader:
    """The text of one output, whose chunks are fetched when they are needed.

    Args:
        found: an output at hand, which is one chunk and never copied; or what a store says of it.
    """

    def __init__(self, output: Output | Shape) -> None:
        self.ref = output.ref
        self._found = output
        if isinstance(output, Output):
            self._held = {0: output.text} if output.text else {}
            chars = list(map(len, self._held.values()))
        else:
            self._held = {}
            chars = [extent.chars for extent in output.chunks]
        self.starts = [0, *accumulate(chars)]
        self.chars = self.starts[-1]

    @cached_property
    def _shape(self) -> Shape:
        """What is at hand is measured when somebody asks."""
        return (
            Shape.of(self._found)
            if isinstance(self._found, Output)
            else self._found
        )

    @property
    def size_bytes(self) -> int:
        """Its length in UTF-8."""
        return self._shape.size_bytes

    @property
    def line_count(self) -> int:
        """How many lines it has; a newline at its very end opens one more."""
        return self.newlines[-1] + 1

    @cached_property
    def newlines(self) -> list[int]:
        """How many newlines come before each chunk, and how many there are in all."""
        return [
            0,
            *accumulate(extent.newlines for extent in self._shape.chunks),
        ]

    def pieces(self) -> Iterator[tuple[int, int, bool]]:
        """(start, stop, whether a newline is in it) of pieces that join to the whole."""
        for n in range(len(self.starts) - 1):
            has_newline = self.newlines[n + 1] > self.newlines[n]
            for start in range(
                self.starts[n], self.starts[n + 1], PIECE_CHARS
            ):
                yield (
                    start,
                    min(start + PIECE_CHARS, self.starts[n + 1]),
                    has_newline,
                )

    def chunk(self, n: int) -> Steps[str]:
        """The text of a chunk; the last two are kept."""
        text = self._held.get(n)
        if text is None:
            text = yield Chunk(self.ref, n)
            # dictionaries keep their order: the first is the one fetched longest ago
            if len(self._held) > 1:
                del self._held[next(iter(self._held))]
            self._held[n] = text
        return text

    def span(self, start: int, stop: int) -> Steps[str]:
        """The characters from ``start`` to before ``stop``."""
        start, stop = max(start, 0), min(stop, self.chars)
        parts = []
        n = self._chunk_at(start)
        while start < stop:
            text = yield from self.chunk(n)
            base = self.starts[n]
            parts.append(text[start - base : stop - base])
            n += 1
            start = self.starts[n]
        return "".join(parts)

    def line_start(self, number: int) -> Steps[int]:
        """The character after the first ``number`` newlines, of which there are so many."""
        if number == 0:
            return 0
        n = max(bisect_right(self.newlines, number - 1) - 1, 0)
        text = yield from self.chunk(n)
        low, high, count = 0, len(text), number - self.newlines[n]
        while high - low > 64:  # halving, at the speed of count
            middle = (low + high) // 2
            here = text.count("\n", low, middle)
            if here < count:
                low, count = middle, count - here
            else:
                high = middle
        for _ in range(count):
            low = text.find("\n", low) + 1
        return self.starts[n] + low

    def newline_from(self, at: int) -> Steps[int]:
        """The first newline at or after ``at``; the length of the whole if there is none."""
        for n in range(self._chunk_at(at), len(self.starts) - 1):
            if self.newlines[n + 1] > self.newlines[n]:
                text = yield from self.chunk(n)
                position = text.find("\n", max(at - self.starts[n], 0))
                if position >= 0:
                    return self.starts[n] + position
        return self.chars

    def newline_before(self, at: int) -> Steps[int]:
        """The last newline before ``at``; -1 if there is none."""
        for n in range(self._chunk_at(at), -1, -1):
            if (
                n < len(self.starts) - 1
                and self.newlines[n + 1] > self.newlines[n]
            ):
                text = yield from self.chunk(n)
                position = text.rfind("\n", 0, max(at - self.starts[n], 0))
                if position >= 0:
                    return self.starts[n] + position
        return -1

    def _chunk_at(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1
