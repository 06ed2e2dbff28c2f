"""A sum over messages as they are shown, kept message by message.

The window knows which messages are new and which are shown differently since; a tally works
out only those, so a stage may ask for its total at every boundary.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Tally"]


class Tally:
    """One sum.

    Args:
        measure: what a message of this index adds, as it is shown now.
    """

    def __init__(self, measure: Callable[[int], int]) -> None:
        self._measure = measure
        self._each: list[int] = []
        self._total = 0
        self._outdated: set[int] = set()

    def outdate(self, index: int) -> None:
        """A message is shown differently from now on."""
        self._outdated.add(index)

    def total(self, size: int) -> int:
        """The sum over the first ``size`` messages; never fewer than at the last call."""
        for index in self._outdated:
            if index < len(self._each):
                self._total -= self._each[index]
                self._each[index] = self._measure(index)
                self._total += self._each[index]
        self._outdated.clear()
        new = [self._measure(index) for index in range(len(self._each), size)]
        self._each += new
        self._total += sum(new)
        return self._total

    def of_run(self, start: int, stop: int) -> int:
        """The sum over a run of messages that `total` has seen."""
        return sum(self._each[start:stop])
