"""The events of a stream that boto3 hands over within its reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def stream_in(reply: Any) -> Any:
    """The events that stand in a reply of boto3's, as an iterator; None of any other reply."""
    events = reply
    if isinstance(reply, Mapping):
        events = reply.get("stream")
    is_boto = type(events).__module__.startswith("botocore.")
    if is_boto and hasattr(events, "__iter__"):
        return _read(events)
    return None


def _read(stream: Any) -> Iterator[Any]:
    """The events of a stream of boto3's, which does not close itself."""
    try:
        yield from stream
    finally:
        stream.close()
