r"""Lines of JSON, an event each (``application/x-ndjson``), in bytes that may be cut anywhere.

A line ends in ``\n``; one of nothing but white space is no event. The bytes of all frames, and of
`LineReader.rest`, are those that were fed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.doors.exchange import bodies
from ullage.doors.exchange.frames import (
    MOST_EVENT_BYTES,
    EventFrame,
    EventTooLong,
    Framing,
)


class LineReader:
    """See `ullage.doors.exchange.frames.FrameReader`."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[EventFrame]:
        """See `Reader.feed`."""
        frames = list[EventFrame]()
        self._held += data
        while (end := self._held.find(b"\n", self._searched) + 1) > 0:
            raw = bytes(self._held[:end])
            del self._held[:end]
            self._searched = 0
            frames.append(EventFrame(raw, raw.strip() or None))
        if len(self._held) > MOST_EVENT_BYTES:
            raise EventTooLong
        self._searched = len(self._held)
        return frames

    def rest(self) -> bytes:
        """See `Reader.rest`."""
        rest = bytes(self._held)
        self._held = bytearray()
        self._searched = 0
        return rest


def written(event: Mapping[str, Any]) -> bytes:
    """An event as a line."""
    return bodies.write(event) + b"\n"


LINES = Framing("application/x-ndjson", LineReader, written)
