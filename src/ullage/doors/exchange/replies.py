"""Replies of upstreams: refusals, errors under any status, events of an array; and our errors."""

from __future__ import annotations

from typing import Any

from ullage.doors.exchange import bodies
from ullage.wires import wire_named


def refusal(status: int, body: bytes) -> dict[str, Any]:
    """An answer, in the form in which it is asked whether the request was too long."""
    return {"status_code": status, "body": body}


def is_error(wire: str, value: Any) -> bool:
    """Whether a body or an event says that there is no reply, whatever its status."""
    return isinstance(value, dict) and wire_named(wire).http.is_error(value)


def is_opening(wire: str, event: Any) -> bool:
    """Whether an event of a stream comes before all content."""
    return isinstance(event, dict) and wire_named(wire).http.is_opening(event)


def error_of(wire: str, status: int, message: str) -> dict[str, Any]:
    """An error of ours, in the shape of the wire."""
    return wire_named(wire).http.error(status, message)


def error_event(wire: str, status: int, body: bytes) -> dict[str, Any]:
    """A refusal as an event of a stream that has begun already."""
    value = bodies.read(body)
    if isinstance(value, dict) and is_error(wire, value):
        return value
    return error_of(
        wire, status, f"the answer could not be gone on with (status {status})"
    )


def events_of(body: bytes) -> list[Any]:
    """The events of a stream that comes as the items of one JSON array, which may be cut off."""
    body = body.rstrip()
    if not body.endswith(b"]"):
        body = body.rstrip(b", \r\n") + b"]"
    events = bodies.read(body)
    return events if isinstance(events, list) else []
