"""What an engine is, and the one that needs no second process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")

TRIES = 3
"""How often a unit may cost the worker that has it before it is given up."""


class WorkerDied(Struct, frozen=True):
    """The outcome of a unit whose worker died at every try.

    Attributes:
        tries: how many workers it had.
    """

    tries: int


class Engine(Protocol):
    """Does work on units, in any order."""

    def map(
        self, function: Callable[[U], R], units: Iterable[tuple[T, U]]
    ) -> Iterator[tuple[T, R | WorkerDied]]:
        """What the function makes of each unit, as it comes.

        An exception of the function ends the map.

        Args:
            function: goes to the workers by pickling, as do units and results. A unit may be
                done twice, by two workers, so it should change nothing.
            units: drawn as there is room for them; the tag of each stays here.
        """


class LocalEngine:
    """An `Engine` in this process: the units one after the other."""

    def map(
        self, function: Callable[[U], R], units: Iterable[tuple[T, U]]
    ) -> Iterator[tuple[T, R]]:
        """See `Engine.map`."""
        for tag, unit in units:
            yield tag, function(unit)
