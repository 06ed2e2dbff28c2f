"""What an answer's bytes say: whether it is a refusal, what it reports, and what we answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ullage.exchange import bodies

__all__ = ["error_body", "events_of", "is_error", "is_opening", "refusal"]

_OPENINGS = frozenset(
    ("message_start", "ping", "response.created", "response.in_progress", "response.queued")
)
_HEAD_BYTES, _CHECK_BYTES = 12, 4


def refusal(status: int, body: bytes) -> dict[str, Any]:
    """An answer, in the form in which it is asked whether the request was too long."""
    return {"status_code": status, "body": body}


def is_error(value: Any) -> bool:
    """Whether a body or an event says that there is no reply, whatever its status."""
    if not isinstance(value, dict):
        return False
    return bool(value.get("error")) or value.get("type") in ("error", "response.failed")


def is_opening(event: Any) -> bool:
    """Whether an event of a stream comes before all content."""
    return isinstance(event, dict) and event.get("type") in _OPENINGS


def error_body(wire: str, status: int, message: str) -> bytes:
    """An error of ours, in the shape of the wire."""
    error: dict[str, Any] = {"type": "ullage_error", "message": message}
    if wire == "anthropic":
        return bodies.write({"type": "error", "error": error})
    if wire == "gemini":
        error = {"code": status, "message": message, "status": "FAILED_PRECONDITION"}
    return bodies.write({"error": error})


def events_of(content_type: str, body: bytes) -> list[Any]:
    """The events of a stream that is no stream of server-sent events, after it was read.

    Amazon's binary frames hold one event each; a JSON array holds them as its items. What was cut
    off is left out.
    """
    if "vnd.amazon.eventstream" in content_type:
        return [event for payload in _payloads(body) if (event := _inner(payload)) is not None]
    found = bodies.read(body if body.rstrip().endswith(b"]") else body.rstrip(b", \r\n") + b"]")
    return found if isinstance(found, list) else []


def _payloads(body: bytes) -> Iterator[bytes]:
    """What each of Amazon's frames holds.

    A frame is its length, the length of its headers, a checksum (4 bytes each, big-endian), the
    headers, the payload, and a checksum (AWS SDK for Java, "Event stream encoding").
    """
    at = 0
    while at + _HEAD_BYTES <= len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        headers = int.from_bytes(body[at + 4 : at + 8], "big")
        if size < _HEAD_BYTES + headers + _CHECK_BYTES or at + size > len(body):
            return
        yield body[at + _HEAD_BYTES + headers : at + size - _CHECK_BYTES]
        at += size


def _inner(payload: bytes) -> Any:
    value = bodies.read(payload)
    if not isinstance(value, Mapping):
        return None
    packed = value.get("bytes")
    if not isinstance(packed, str):
        return value
    try:
        return json.loads(base64.b64decode(packed))
    except ValueError:
        return None
