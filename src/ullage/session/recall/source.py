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
        output: one at hand, which is one chunk and never copied; or what a store says of it.
    """

    def __init__(self, output: Output | Shape) -> None:
        self.ref = output.ref
        self._output = output
        self._chunks: dict[int, str] = {}
        if isinstance(output, Shape):
            sizes = [extent.chars for extent in output.chunks]
        elif output.text:
            self._chunks[0] = output.text
            sizes = [len(output.text)]
        else:
            sizes = []
        self.starts = [0, *accumulate(sizes)]
        self.chars = self.starts[-1]

    @cached_property
    def _shape(self) -> Shape:
        """What is at hand is measured when somebody asks."""
        if isinstance(self._output, Output):
            return Shape.of(self._output)
        return self._output

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
        counts = (extent.newlines for extent in self._shape.chunks)
        return [0, *accumulate(counts)]

    def pieces(self) -> Iterator[tuple[int, int, bool]]:
        """(start, stop, whether a newline is in it) of pieces that join to the whole."""
        for n in range(len(self.starts) - 1):
            has_newline = self._has_newline(n)
            end = self.starts[n + 1]
            for start in range(self.starts[n], end, PIECE_CHARS):
                stop = min(start + PIECE_CHARS, end)
                yield start, stop, has_newline

    def chunk(self, n: int) -> Steps[str]:
        """The text of a chunk; the last two are kept."""
        text = self._chunks.get(n)
        if text is None:
            text = yield Chunk(self.ref, n)
            # dictionaries keep their order: the first is the one fetched longest ago
            if len(self._chunks) > 1:
                oldest = next(iter(self._chunks))
                del self._chunks[oldest]
            self._chunks[n] = text
        return text

    def span(self, start: int, stop: int) -> Steps[str]:
        """The characters from ``start`` to before ``stop``."""
        start = max(start, 0)
        stop = min(stop, self.chars)
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
        count = number - self.newlines[n]
        low = 0
        high = len(text)
        # halving, at the speed of count
        while high - low > 64:
            middle = (low + high) // 2
            in_lower_half = text.count("\n", low, middle)
            if in_lower_half < count:
                low = middle
                count -= in_lower_half
            else:
                high = middle
        for _ in range(count):
            low = text.find("\n", low) + 1
        return self.starts[n] + low

    def newline_from(self, at: int) -> Steps[int]:
        """The first newline at or after ``at``; the length of the whole if there is none."""
        for n in range(self._chunk_at(at), len(self.starts) - 1):
            if not self._has_newline(n):
                continue
            text = yield from self.chunk(n)
            base = self.starts[n]
            position = text.find("\n", max(at - base, 0))
            if position >= 0:
                return base + position
        return self.chars

    def newline_before(self, at: int) -> Steps[int]:
        """The last newline before ``at``; -1 if there is none."""
        last = len(self.starts) - 2
        for n in range(min(self._chunk_at(at), last), -1, -1):
            if not self._has_newline(n):
                continue
            text = yield from self.chunk(n)
            base = self.starts[n]
            position = text.rfind("\n", 0, max(at - base, 0))
            if position >= 0:
                return base + position
        return -1

    def _chunk_at(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1

    def _has_newline(self, n: int) -> bool:
        return self.newlines[n + 1] > self.newlines[n]
