"""A mapping that is never changed, and of which the next one costs only what is new in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Layers(Generic[K, V]):
    """An immutable mapping in layers: what is in a newer layer stands for what is in an older one.

    A new layer is merged into the one below where that is less than twice as large. So there are
    few layers, and an entry is copied a logarithmic number of times, whoever holds older mappings.

    Args:
        layers: dicts, the oldest first. Nobody may write to them any more.
    """

    __slots__ = ("_layers",)

    def __init__(self, layers: tuple[Mapping[K, V], ...] = ()) -> None:
        self._layers = layers

    def with_changes(self, changes: Mapping[K, V]) -> Layers[K, V]:
        """This mapping with some entries added or replaced.

        Args:
            changes: the entries. Nobody may write to them any more.
        """
        if not changes:
            return self
        older = list(self._layers)
        newest = changes
        while older and len(older[-1]) < 2 * len(newest):
            newest = {**older.pop(), **newest}
        return Layers((*older, newest))

    def merged(self) -> dict[K, V]:
        """All of it as one dict of the caller's own; takes time in proportion to its size."""
        merged: dict[K, V] = {}
        for layer in self._layers:
            merged.update(layer)
        return merged
