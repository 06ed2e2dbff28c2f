"""A reply that comes as a stream, put together from its events: the loop acts on whole replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.errors import FormatError
from ullage.splice.dialect import Stream
from ullage.splice.dialects import dialect_of
from ullage.wires import Format
from ullage.wires.base import plain

__all__ = ["Gathered", "is_stream"]


def is_stream(reply: Any) -> bool:
    """Whether what a call gave are events that are still to come; no reply is an iterator."""
    return hasattr(reply, "__next__") or hasattr(reply, "__anext__")


class Gathered:
    """The reply of one stream.

    Args:
        wire: its format.
        request: what was sent.
        events: the stream, the SDK's own or any iterator of events.
    """

    def __init__(self, wire: Format, request: Mapping[str, Any], events: Any) -> None:
        dialect = dialect_of(wire, owns=lambda call: False)  # nothing is hidden from the loop
        self._stream: Stream = dialect.stream(dialect, request)
        self._events = events

    def read(self) -> dict[str, Any]:
        """Read it to its end.

        Raises:
            FormatError: it ended before the reply did.
        """
        for event in self._events:
            self._take(event)
        return self._reply()

    async def aread(self) -> dict[str, Any]:
        """`read` in an event loop."""
        async for event in self._events:
            self._take(event)
        return self._reply()

    def _take(self, event: Any) -> None:
        self._stream.feed(dict(plain(event, "stream")))

    def _reply(self) -> dict[str, Any]:
        found = self._stream.reply()
        if found is None:
            raise FormatError(
                "stream", "it ended before the reply did", "Run the turn again: nothing was added."
            )
        return found
