"""Amazon's binary event stream, as Bedrock sends the events of Anthropic's models.

    total length, length of the headers, checksum of these    4 bytes each, big-endian
    headers                                                   names and typed values
    payload                                                   {"bytes": base64 of an event's JSON}
    checksum of all that                                      4 bytes

Checksums are CRC-32. A frame whose payload holds no ``bytes`` tells of an error; it is passed on.
Source: Amazon Transcribe, "Event stream encoding"; Bedrock, "InvokeModelWithResponseStream".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from ullage.exchange import bodies
from ullage.exchange.frames import MOST_EVENT_BYTES, EventTooLong, Frame, Framing

_PRELUDE_BYTES, _CHECKSUM_BYTES, _MOST_BYTES = 12, 4, 25 << 20
_TEXT = b"\x07"


class AmazonReader:
    """See `ullage.exchange.frames.Reader`. What is no frame is held to the end."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """See `Reader.feed`."""
        frames = list[Frame]()
        self._held += data
        while len(self._held) >= _PRELUDE_BYTES:
            size, headers = _number(self._held[:4]), _number(self._held[4:8])
            least = _PRELUDE_BYTES + headers + _CHECKSUM_BYTES
            if not least <= size <= _MOST_BYTES or len(self._held) < size:
                break
            raw = bytes(self._held[:size])
            del self._held[:size]
            frames.append(Frame(raw, _event(raw[_PRELUDE_BYTES + headers : -_CHECKSUM_BYTES])))
        if len(self._held) > MOST_EVENT_BYTES:
            raise EventTooLong
        return frames

    def rest(self) -> bytes:
        """See `Reader.rest`."""
        rest, self._held = bytes(self._held), bytearray()
        return rest


def _number(raw: bytes | bytearray) -> int:
    return int.from_bytes(raw, "big")


def _event(payload: bytes) -> bytes | None:
    value = bodies.read(payload)
    packed = value.get("bytes") if isinstance(value, dict) else None
    try:
        return base64.b64decode(packed) if isinstance(packed, str) else None
    except ValueError:
        return None


def written(event: Mapping[str, Any]) -> bytes:
    """An event as a frame."""
    payload = bodies.write({"bytes": base64.b64encode(bodies.write(event)).decode()})
    size = _PRELUDE_BYTES + len(_HEADERS) + len(payload) + _CHECKSUM_BYTES
    prelude = size.to_bytes(4, "big") + len(_HEADERS).to_bytes(4, "big")
    body = prelude + crc32(prelude).to_bytes(4, "big") + _HEADERS + payload
    return body + crc32(body).to_bytes(4, "big")


def _header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + _TEXT + len(value).to_bytes(2, "big") + value


_HEADERS = (
    _header(b":event-type", b"chunk")
    + _header(b":content-type", b"application/json")
    + _header(b":message-type", b"event")
)

AMAZON = Framing("application/vnd.amazon.eventstream", AmazonReader, written)
