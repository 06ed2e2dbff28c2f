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

__all__ = ["Frame", "Reader"]

_LINE = re.compile(rb"\r\n|\n|\r")
_EMPTY_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_MARK = b"\xef\xbb\xbf"


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
        self._held = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The events that are whole with these bytes, in order."""
        self._held += data
        while found := _EMPTY_LINE.search(self._held, self._searched):
            raw = bytes(self._held[: found.end()])
            del self._held[: found.end()]
            self._searched = 0
            yield Frame(raw, _data(raw))
        self._searched = max(len(self._held) - 3, 0)  # an empty line may be half here

    def rest(self) -> bytes:
        """What was fed and belongs to no whole event. It is given once."""
        rest, self._held, self._searched = bytes(self._held), bytearray(), 0
        return rest


def _data(raw: bytes) -> bytes | None:
    lines = _LINE.split(raw.removeprefix(_MARK))
    said = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    return b"\n".join(said) if said else None
