"""Request bodies: read as far as they may be held, decoded where they are to be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ullage.doors.exchange.values import TooLong
from ullage.doors.proxy.decoding import Decoder, Undecodable, decoder_of

if TYPE_CHECKING:
    from aiohttp import StreamReader


class BodyBudget:
    """How many bytes of bodies a worker holds at once, of at most so many."""

    def __init__(self, most: int) -> None:
        self.bytes = 0
        self._most = most

    def take(self, count: int) -> bool:
        """Hold so many more, if there is room for them."""
        fits = self.bytes + count <= self._most
        self.bytes += count if fits else 0
        return fits

    def give(self, count: int) -> None:
        """Hold so many less."""
        self.bytes -= count


_PART_BYTES = 256 << 10


class Body:
    """A request's body: what was read of it, and what is still to come.

    Args:
        data: what was read.
        rest: where the rest comes from, None if that is all.
        idle_s: how long the client may be silent in between.

    Attributes:
        data: what was read.
        is_whole: whether that is all of it.
        is_silent: whether the client fell silent before its end.
    """

    def __init__(
        self, data: bytes, rest: StreamReader | None, idle_s: float
    ) -> None:
        self.data = data
        self.is_whole = rest is None
        self.is_silent = False
        self._rest = rest
        self._idle_s = idle_s

    async def parts(self) -> AsyncIterator[bytes]:
        """All of it, as it comes.

        Raises:
            TimeoutError: the client fell silent.
        """
        for start in range(0, len(self.data), _PART_BYTES):
            # in one piece, it would hold up the loop
            yield self.data[start : start + _PART_BYTES]
        while part := await self._next():
            yield part

    async def _next(self) -> bytes:
        if self._rest is None:
            return b""
        try:
            async with asyncio.timeout(self._idle_s):
                return await self._rest.readany()
        except TimeoutError:
            self.is_silent = True
            raise


async def read_body(
    stream: StreamReader, most: int, budget: BodyBudget, idle_s: float
) -> Body:
    """Read a body, but no more of it than may be held.

    What was read is counted in ``budget``; whoever is done with the body gives it back.

    Args:
        stream: where it comes from.
        most: the most bytes of one body.
        budget: those of all.
        idle_s: how long the client may be silent.

    Raises:
        TimeoutError: the client fell silent.
    """
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(idle_s) as silence:
            while part := await stream.readany():
                silence.reschedule(loop.time() + idle_s)
                parts.append(part)
                if size + len(part) > most or not budget.take(len(part)):
                    budget.give(size)
                    return Body(b"".join(parts), stream, idle_s)
                size += len(part)
    except BaseException:
        budget.give(size)
        raise
    return Body(b"".join(parts), None, idle_s)


def decoded(data: bytes, encoding: str, most: int) -> bytes | None:
    """A body as it was before it was compressed; None if it cannot be known, or is over ``most``.

    Args:
        data: the bytes.
        encoding: ``Content-Encoding``: gzip, deflate, zstd, identity, or several of them.
        most: the most bytes it may become, so that a small body cannot fill the memory.
    """
    for name in reversed(
        [word.strip().lower() for word in encoding.split(",")]
    ):
        if name in ("", "identity"):
            continue
        decoder = decoder_of(name)
        try:
            plain = None if decoder is None else whole(decoder, data, most)
        except (TooLong, Undecodable):
            return None
        if plain is None:
            return None
        data = plain
    return data


def whole(decoder: Decoder, data: bytes, most: int) -> bytes:
    """All that a compressed body becomes.

    Args:
        decoder: of its encoding.
        data: the whole of it.
        most: the most bytes it may become.

    Raises:
        TooLong: it becomes more.
        Undecodable: it is not what its encoding says, or breaks off.
    """
    pieces = []
    size = 0
    for piece in decoder.feed(data):
        size += len(piece)
        if size > most:
            raise TooLong
        pieces.append(piece)
    decoder.end()
    return b"".join(pieces)
