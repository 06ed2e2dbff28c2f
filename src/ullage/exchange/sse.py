r"""Server-sent events in bytes that may be cut anywhere.

    reader = Reader()
    for frame in reader.feed(data):
        frame.raw       the very bytes, to be sent on where nothing is changed
        frame.data      what its ``data:`` lines say

A frame ends at an empty line; lines end in ``\n``, ``\r\n`` or ``\r`` (WHATWG HTML, §9.2). The
bytes of all frames, and of `Reader.rest`, are those that were fed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["Frame", "Reader", "event"]

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r(?!\n)|\n\r\n|\r\n\n|\n\r(?!\n)|\r\n\r(?!\n)")


class Frame(Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        raw: its bytes, with the empty line that ends it.
        data: what its ``data:`` lines say, joined by newlines; None: it has none.
    """

    raw: bytes
    data: bytes | None


class Reader:
    """Takes bytes as they come, and gives each event once it is whole."""

    def __init__(self) -> None:
        self._held = b""
        self._seen = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The events that are whole with these bytes, in order."""
        raise NotImplementedError

    def rest(self) -> bytes:
        """What was fed and belongs to no whole event."""
        return self._held


def event(value: object, name: str = "") -> bytes:
    """The bytes of an event: its JSON on one line, behind its name if it has one."""
    raise NotImplementedError
