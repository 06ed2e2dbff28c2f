"""Server-sent events, as MCP streams them: messages, and where to go on if a stream breaks off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

_LONGEST_WAIT_S = 60.0


class Blocks(Protocol):
    """The body of a response (`aiohttp.StreamReader`)."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Its bytes as they come."""


@dataclass(slots=True)
class StreamPosition:
    """How far a stream has been read.

    Attributes:
        last_event_id: the id of its last event; "" if it has none, and cannot be taken up again.
        wait_s: how long the server asks to wait before that.
    """

    last_event_id: str = ""
    wait_s: float = 1.0


async def events(
    stream: Blocks,
    most_bytes: int,
    position: StreamPosition,
    tell: Callable[[str], None],
) -> AsyncIterator[bytes]:
    """The data of a stream's events.

    Args:
        stream: the body of a response.
        most_bytes: an event that is longer is left out, and reported.
        position: kept up to date.
        tell: called with a line about what is left out.
    """
    pending = b""
    lines = []
    size = 0
    number = position.last_event_id
    async for block in stream.iter_any():
        *whole, pending = (
            (pending + block).replace(b"\r\n", b"\n").split(b"\n")
        )
        for line in whole:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                lines.append(value)
                size += len(value)
            elif field == b"id":
                number = value.decode("utf-8", "replace")
            elif field == b"retry" and value.isdigit():
                position.wait_s = min(int(value) / 1_000, _LONGEST_WAIT_S)
            elif not line:
                position.last_event_id = (
                    number  # with the end of the event, and not before
                )
                if size > most_bytes:
                    tell(
                        f"an event of {size:,} bytes was left out: over {most_bytes:,}"
                    )
                elif size:
                    yield b"\n".join(lines)
                lines = []
                size = 0
