"""A sum over messages as they are shown, kept message by message.

The window knows which messages are new and which are shown differently since; a tally works
out only those, so a stage may ask for its sum at every boundary.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Tally"]


class Tally:
    """One sum.

    Args:
        measure: what a message of this index adds, as it is shown now.

    Attributes:
        measure: what a message adds.
        each: what each message adds, as of the last `to`.
        sum: of all of them.
    """

    def __init__(self, measure: Callable[[int], int]) -> None:
        self.measure = measure
        self._outdated: set[int] = set()
        self.each: list[int] = []
        self.sum = 0

    def copy(self) -> Tally:
        """The same sum so far, which goes on by itself."""
        other = Tally(self.measure)
        other._outdated, other.each, other.sum = {*self._outdated}, [*self.each], self.sum
        return other

    def outdate(self, index: int) -> None:
        """A message is shown differently from now on."""
        self._outdated.add(index)

    def to(self, size: int) -> Tally:
        """Brought up to date for the first ``size`` messages; never fewer than at the last call."""
        for index in self._outdated:
            if index < len(self.each):
                self.sum -= self.each[index]
                self.each[index] = self.measure(index)
                self.sum += self.each[index]
        self._outdated.clear()
        new = [self.measure(index) for index in range(len(self.each), size)]
        self.each += new
        self.sum += sum(new)
        return self

    def of_run(self, start: int, stop: int) -> int:
        """The sum over a run of messages that `to` has seen."""
        return sum(self.each[start:stop])
