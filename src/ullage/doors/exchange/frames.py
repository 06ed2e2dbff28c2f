"""The frames in which the events of a stream come, and how they are told by the content type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct


class EventFrame(Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        raw: its bytes, to be sent on where nothing is changed.
        data: what it says, as JSON text; None: nothing, or nothing that is an event of the wire.
    """

    raw: bytes
    data: bytes | None


MOST_EVENT_BYTES = 64 << 20
"""No event is as long: a stream that goes on for longer without the end of one is given up."""


class EventTooLong(Exception):
    """An event of a stream has no end within `MOST_EVENT_BYTES`."""


class FrameReader(Protocol):
    """Takes bytes as they come, cut anywhere, and gives each event once it is whole."""

    def feed(self, data: bytes) -> list[EventFrame]:
        """The events that are whole with these bytes, in order.

        Raises:
            EventTooLong: the next one goes on for too long.
        """

    def rest(self) -> bytes:
        """What was fed and belongs to no whole event. It is given once."""


class Framing(NamedTuple):
    """One way to send events.

    Attributes:
        content_type: how the header of that name begins.
        reader: makes a reader for a stream.
        written: an event as bytes.
    """

    content_type: str
    reader: Callable[[], FrameReader]
    written: Callable[[Mapping[str, Any]], bytes]
