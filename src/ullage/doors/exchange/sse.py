r"""Server-sent events in bytes that may be cut anywhere.

    reader = SseReader()
    for frame in reader.feed(data):
        frame.raw       the very bytes, to be sent on where nothing is changed
        frame.data      what its ``data:`` lines say

A frame ends at an empty line; lines end in ``\n``, ``\r\n`` or ``\r`` (WHATWG HTML, §9.2). The
bytes of all frames, and of `SseReader.rest`, are those that were fed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ullage.doors.exchange import bodies
from ullage.doors.exchange.frames import (
    MOST_EVENT_BYTES,
    EventFrame,
    EventTooLong,
    Framing,
)

_LINE = re.compile(rb"\r\n|\n|\r")
_EMPTY_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_MARK = b"\xef\xbb\xbf"


class SseReader:
    """See `ullage.doors.exchange.frames.FrameReader`."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[EventFrame]:
        """See `Reader.feed`."""
        frames = list[EventFrame]()
        self._held += data
        while match := _EMPTY_LINE.search(self._held, self._searched):
            raw = bytes(self._held[: match.end()])
            del self._held[: match.end()]
            self._searched = 0
            frames.append(EventFrame(raw, _data(raw)))
        if len(self._held) > MOST_EVENT_BYTES:
            raise EventTooLong
        self._searched = max(
            len(self._held) - 3, 0
        )  # an empty line may be half here
        return frames

    def rest(self) -> bytes:
        """See `Reader.rest`."""
        rest = bytes(self._held)
        self._held = bytearray()
        self._searched = 0
        return rest


def _data(raw: bytes) -> bytes | None:
    lines = _LINE.split(raw.removeprefix(_MARK))
    values = [
        line[5:].removeprefix(b" ")
        for line in lines
        if line.startswith(b"data:")
    ]
    return b"\n".join(values) if values else None


def written(event: Mapping[str, Any]) -> bytes:
    """An event as bytes, under the name that its ``type`` says, if it has one.

    So it is with the Messages and Responses formats; the events of others have neither.
    """
    kind = event.get("type")
    name = f"event: {kind}\n".encode() if isinstance(kind, str) else b""
    return name + b"data: " + bodies.write(event) + b"\n\n"


SSE = Framing("text/event-stream", SseReader, written)
