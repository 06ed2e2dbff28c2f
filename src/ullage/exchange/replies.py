"""What an answer's bytes say: whether it is a refusal, what it reports, and what we answer."""

from __future__ import annotations

from typing import Any

from ullage.exchange import bodies

_OPENINGS = frozenset(
    ("message_start", "ping", "response.created", "response.in_progress", "response.queued")
)


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


def error_of(wire: str, status: int, message: str) -> dict[str, Any]:
    """An error of ours, in the shape of the wire."""
    error: dict[str, Any] = {"type": "ullage_error", "message": message}
    if wire == "anthropic":
        return {"type": "error", "error": error}
    if wire == "gemini":
        error = {"code": status, "message": message, "status": "FAILED_PRECONDITION"}
    return {"error": error}


def error_event(wire: str, status: int, body: bytes) -> dict[str, Any]:
    """A refusal as an event of a stream that has begun already."""
    value = bodies.read(body)
    if isinstance(value, dict) and is_error(value):
        return value
    return error_of(wire, status, f"the answer could not be gone on with (status {status})")


def events_of(body: bytes) -> list[Any]:
    """The events of a stream that comes as the items of one JSON array, which may be cut off."""
    whole = body.rstrip()
    found = bodies.read(whole if whole.endswith(b"]") else whole.rstrip(b", \r\n") + b"]")
    return found if isinstance(found, list) else []
