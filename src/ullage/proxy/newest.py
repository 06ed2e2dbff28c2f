"""The newest request of the conversations used last: what a page of one is made of.

It is content, so it is kept in memory alone, and no more of it than a setting says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

__all__ = ["Newest", "NewestRequests"]


class Newest(Struct, frozen=True):
    """A request with the whole history.

    Attributes:
        wire: the name of its wire.
        model: that it asks.
        request: as it was fitted: with the turns that its client never saw.
        size_bytes: of its JSON as it came.
    """

    wire: str
    model: str
    request: Mapping[str, Any]
    size_bytes: int


class NewestRequests:
    """The newest request of each conversation, by its key.

    Args:
        most_bytes: the most that is kept of all of them.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Newest] = OrderedDict()

    def put(self, key: str, newest: Newest) -> None:
        """Keep the request of a conversation in the place of the one before."""
        self._drop(key)
        self._kept[key] = newest
        self._bytes += newest.size_bytes
        while self._bytes > self._most:
            self._drop(next(iter(self._kept)))

    def get(self, key: str) -> Newest | None:
        """The request of a conversation, if it is still there."""
        return self._kept.get(key)

    def _drop(self, key: str) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._bytes -= old.size_bytes
