"""How the workers of one proxy ask each other.

Whoever is asked for a page asks the others too, over sockets in a folder that only the proxy's own
user may enter: counters and conversations are where they were made, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from aiohttp import web
from blake3 import blake3
from msgspec import Struct

_PATIENCE_S = 2.0
_DECIDING_S = 60.0
"""So long a decision may take: it waits for the turn under way, which works on large histories."""
AUTHOR_HEADER = "X-Ullage-Author"
"""Between workers: who decides, percent-encoded."""
_URL = "http://sibling"


class Siblings(Struct, frozen=True):
    """The other workers of one proxy, each behind a socket.

    Attributes:
        folder: where they are; None: there is one worker.
        number: of this worker, from 1.
    """

    folder: Path | None = None
    number: int = 1

    @property
    def writer(self) -> str | None:
        """A name for the worker that whoever takes its place has too; None: nobody would."""
        if self.folder is None:
            return None
        return blake3(f"{self.folder} {self.number}".encode()).hexdigest(8)

    @contextlib.asynccontextmanager
    async def answering(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    ) -> Any:
        """Answer the others while the block lasts."""
        if self.folder is None:
            yield
            return
        socket = self._socket(self.number)
        socket.unlink(missing_ok=True)  # of a worker that died
        runner = web.ServerRunner(
            web.Server(answer, access_log=None), handle_signals=False
        )
        await runner.setup()
        await web.UnixSite(runner, socket).start()
        try:
            yield
        finally:
            await runner.cleanup()
            socket.unlink(missing_ok=True)

    async def ask(self, path: str) -> list[bytes]:
        """The answers of the other workers that give one."""
        replies = await asyncio.gather(
            *(_asked(item, path) for item in self._other_sockets())
        )
        return [body for status, body in replies if status == 200]

    async def ask_one(
        self, path: str, body: bytes, author: str
    ) -> tuple[int, bytes] | None:
        """The answer of the other worker that has what a decision is about; None: none has.

        One is asked after the other, so that no two of them decide.

        Args:
            path: of a conversation, and what is asked of it.
            body: of the request.
            author: who decides.
        """
        for item in self._other_sockets():
            status, answer = await _asked(item, path, body, author)
            if status not in (0, 404):
                return status, answer
        return None

    def _other_sockets(self) -> list[Path]:
        if self.folder is None:
            return []
        own = self._socket(self.number)
        return [
            item for item in sorted(self.folder.glob("*.sock")) if item != own
        ]

    async def ask_as(self, path: str, kind: Any) -> list[Any]:
        """The answers of the other workers, decoded."""
        return [
            msgspec.json.decode(reply, type=kind)
            for reply in await self.ask(path)
        ]

    def _socket(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{number}.sock"


ALONE = Siblings()
"""Of a proxy with one worker."""


async def _asked(
    socket: Path, path: str, body: bytes | None = None, author: str = ""
) -> tuple[int, bytes]:
    """The status and the body of a worker's answer; status 0: it gave none in time."""
    patience_s = _PATIENCE_S if body is None else _DECIDING_S
    timeout = aiohttp.ClientTimeout(total=patience_s)
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(socket)), timeout=timeout
            ) as client,
            client.request(
                "GET" if body is None else "POST",
                f"{_URL}{path}",
                data=body,
                headers={AUTHOR_HEADER: quote(author)},
            ) as reply,
        ):
            return reply.status, await reply.read()
    return 0, b""
