"""Units done in this process, one after the other: one worker needs no second process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class Here:
    """See `Engine`."""

    def map(
        self, function: Callable[[U], R], units: Iterable[tuple[T, U]]
    ) -> Iterator[tuple[T, R]]:
        """See `Engine.map`."""
        for tag, unit in units:
            yield tag, function(unit)
