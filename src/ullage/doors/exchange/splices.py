"""A changed body, written around the messages that it shares with the client's.

    client   {"messages": [ m0 , m1 , m2 , m3 ]}
                           └────────┘   └──┘
    sent     {"messages": [ m0 , m1 , x  , m3 ], "tools": …}

Most messages of a view are the client's own. Their bytes are copied from the client's body, and
only what is new is written: to write every message again takes time in proportion to the whole
history, at each request. A message is copied only if it would be written as the very same bytes,
so what is sent is the same either way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Raw

from ullage.doors.exchange.bodies import write

_LEAST_BYTES = 512
"""Messages that are shorter on average are written as fast as they are looked up."""


class MessagePlaces(NamedTuple):
    """Where the messages of a body stand in it.

    Attributes:
        ends: of each message, where it ends.
        compact: of each message, 1 if its bytes, and the comma before it, are as we would write
            them; else 0.
    """

    ends: array[int]
    compact: bytes

    def up_to(self, count: int) -> MessagePlaces:
        """The places of the first messages.

        Args:
            count: how many.
        """
        return MessagePlaces(self.ends[:count], self.compact[:count])


NO_PLACES = MessagePlaces(array("Q"), b"")


class MessageBytes(NamedTuple):
    """The bytes of the messages of a client's body.

    Attributes:
        body: the client's.
        start: where its first message stands.
        places: of all its messages.
    """

    body: bytes
    start: int
    places: MessagePlaces

    def written(
        self, outgoing: Mapping[str, Any], key: str, messages: Sequence[Any]
    ) -> bytes:
        """A body, as `ullage.doors.exchange.bodies.write` writes it.

        Args:
            outgoing: what it is to say.
            key: the name of its list of messages.
            messages: those of the client's body, as the very objects that they are in it.

        Raises:
            TypeError, ValueError, RecursionError: see `ullage.doors.exchange.bodies.Write`.
        """
        items = outgoing.get(key)
        count = len(messages)
        if (
            type(items) is not list
            or count != len(self.places.ends)
            or len(self.body) < count * _LEAST_BYTES
        ):
            return write(outgoing)
        around = {**outgoing, key: [*self._pieces(items, messages)]}
        try:
            return write(around)
        except TypeError:
            # the standard library writes what msgspec cannot, and it cannot write copied bytes
            return write(outgoing)

    def _pieces(
        self, items: Sequence[Any], messages: Sequence[Any]
    ) -> Iterator[Any]:
        """The items of a list: bytes for those that follow each other in the client's body too."""
        indices = {id(message): at for at, message in enumerate(messages)}
        compact = self.places.compact
        start = stop = 0
        for item in items:
            index = indices.get(id(item))
            is_copied = index is not None and compact[index]
            if is_copied and index == stop and start < stop:
                stop += 1
                continue
            if start < stop:
                yield self._copied(start, stop)
            if is_copied and index is not None:
                start = index
                stop = index + 1
            else:
                start = stop = 0
                yield item
        if start < stop:
            yield self._copied(start, stop)

    def _copied(self, start: int, stop: int) -> Raw:
        """The bytes of messages that follow each other, with the commas between them."""
        ends = self.places.ends
        first = ends[start - 1] + len(b",") if start else self.start
        return Raw(self.body[first : ends[stop - 1]])
