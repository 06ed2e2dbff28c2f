"""Amazon's binary event stream, as Bedrock sends the events of its models.

    total length, length of the headers, checksum of these    4 bytes each, big-endian
    headers                                                   names and typed values
    payload                                                   JSON
    checksum of all that                                      4 bytes

Checksums are CRC-32. The payload of Anthropic's events is ``{"bytes": base64 of an event}``. Those
of Converse are named by a header: an event is ``{NAME: payload}`` here, and so is an exception.

A frame that tells of an error in a stream of Anthropic's is passed on.
Source: Amazon Transcribe, "Event stream encoding"; Bedrock, "InvokeModelWithResponseStream" and
"ConverseStream".
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from ullage.doors.exchange import bodies
from ullage.doors.exchange.frames import (
    MOST_EVENT_BYTES,
    EventFrame,
    EventTooLong,
    Framing,
)

_PRELUDE_BYTES = 12
_CHECKSUM_BYTES = 4
_MOST_BYTES = 25 << 20
_TEXT = b"\x07"


class AmazonReader:
    """See `ullage.doors.exchange.frames.FrameReader`. What is no frame is held to the end."""

    def __init__(self) -> None:
        self._held = bytearray()

    def _event(self, headers: bytes, payload: bytes) -> bytes | None:
        """The event in a frame, as JSON; None if it holds none."""
        value = bodies.read(payload)
        packed = value.get("bytes") if isinstance(value, dict) else None
        try:
            return (
                base64.b64decode(packed) if isinstance(packed, str) else None
            )
        except ValueError:
            return None

    def feed(self, data: bytes) -> list[EventFrame]:
        """See `Reader.feed`."""
        frames = list[EventFrame]()
        self._held += data
        while len(self._held) >= _PRELUDE_BYTES:
            size = _number(self._held[:4])
            headers = _number(self._held[4:8])
            least = _PRELUDE_BYTES + headers + _CHECKSUM_BYTES
            if not least <= size <= _MOST_BYTES or len(self._held) < size:
                break
            raw = bytes(self._held[:size])
            del self._held[:size]
            start = _PRELUDE_BYTES + headers
            event = self._event(
                raw[_PRELUDE_BYTES:start], raw[start:-_CHECKSUM_BYTES]
            )
            frames.append(EventFrame(raw, event))
        if len(self._held) > MOST_EVENT_BYTES:
            raise EventTooLong
        return frames

    def rest(self) -> bytes:
        """See `Reader.rest`."""
        rest = bytes(self._held)
        self._held = bytearray()
        return rest


def _number(raw: bytes | bytearray) -> int:
    return int.from_bytes(raw, "big")


class NamedReader(AmazonReader):
    """Reads events whose names are headers. Bedrock pads a payload with a field ``p``."""

    def _event(self, headers: bytes, payload: bytes) -> bytes | None:
        named = _NAME.search(headers)
        if named is None:
            return None
        size = int.from_bytes(named[1], "big")
        start = named.end()
        return b'{"%b":%b}' % (headers[start : start + size], payload)


_NAME = re.compile(rb":(?:event|exception)-type\x07(..)", re.DOTALL)
"""Before the name of an event: it is a text, of so many bytes."""


def written(event: Mapping[str, Any]) -> bytes:
    """An event of Anthropic's as a frame."""
    payload = {"bytes": base64.b64encode(bodies.write(event)).decode()}
    return _frame("event", "chunk", payload)


def written_by_name(event: Mapping[str, Any]) -> bytes:
    """An event that is named by a header as a frame; an error of ours as an exception."""
    if "__type" in event:
        return _frame(
            "exception", _EXCEPTION, {"message": event.get("message")}
        )
    name, payload = next(iter(event.items()))
    kind = "exception" if name.endswith("Exception") else "event"
    return _frame(kind, name, payload)


_EXCEPTION = "modelStreamErrorException"
"""The exception that a client is to retry after: the answer broke off."""


def _frame(kind: str, name: str, payload: Mapping[str, Any]) -> bytes:
    data = bodies.write(payload)
    headers = _header(f":{kind}-type", name)
    headers += _header(":content-type", "application/json")
    headers += _header(":message-type", kind)
    size = _PRELUDE_BYTES + len(headers) + len(data) + _CHECKSUM_BYTES
    prelude = size.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    body = prelude + crc32(prelude).to_bytes(4, "big") + headers + data
    return body + crc32(body).to_bytes(4, "big")


def _header(name: str, value: str) -> bytes:
    written = value.encode()
    size = len(written).to_bytes(2, "big")
    return bytes([len(name)]) + name.encode() + _TEXT + size + written


_CONTENT_TYPE = "application/vnd.amazon.eventstream"
AMAZON = Framing(_CONTENT_TYPE, AmazonReader, written)
"""Events as bytes, of Anthropic's models."""
AMAZON_NAMED = Framing(_CONTENT_TYPE, NamedReader, written_by_name)
"""Events that are named by a header, of Converse."""
