"""The connections of clients: bounded in number, and in what they may leave unsaid.

A client that connects and says nothing, or half of a request's head, holds a descriptor. There are
as many of those as the system gives a process, and each request needs one more, to its upstream.
So connections that wait for a request are closed when their place is needed, the one that has
waited longest first; and a head has to come within a time and a size.

Whatever goes wrong here is logged by its type alone: what a client sent stands in the words of
aiohttp's own errors.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from aiohttp import web

from ullage.doors.proxy.answers import failure
from ullage.doors.proxy.quiet import log_error

Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

# two of what the loop reads at once may come before a request is handled
_HEAD_BYTES = 1 << 20
_KEPT_S = 75.0
_LOOK_S = 1.0
_OWN_DESCRIPTORS = 32
_LEAST = 8
_MOST = 16_384
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nX-Ullage: error\r\n"
    b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)


def most_connections() -> int:
    """How many connections a worker takes, by the descriptors that it may open.

    Each may need one more for its upstream, and the process has some of its own.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST
    return min(max((soft - _OWN_DESCRIPTORS) // 2, _LEAST), _MOST)


def raise_descriptors() -> None:
    """Let this process open as many descriptors as it may let itself, up to what it can use."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * _MOST + _OWN_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        # some systems have a lower one besides
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Connections:
    """The connections of one worker.

    Args:
        most: how many there may be.
        head_s: how long the head of a request may take from its first byte on.
    """

    def __init__(self, most: int, head_s: float) -> None:
        self._most = most
        self._head_s = head_s
        # in the order in which they began to wait
        self._open: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Take a connection in; whether there was a place for it, or one could be made."""
        if len(self._open) >= self._most:
            waiting = next(
                (
                    candidate
                    for candidate in self._open
                    if not candidate.is_busy
                ),
                None,
            )
            if waiting is None:
                return False
            self.drop(waiting)
        self._open[connection] = None
        return True

    def waits(self, connection: Connection) -> None:
        """A connection waits for its next request from now on."""
        if self._open.pop(connection, connection) is None:
            self._open[connection] = None

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        self._open.pop(connection, None)
        connection.force_close()

    def remove(self, connection: Connection) -> None:
        """A connection is closed."""
        self._open.pop(connection, None)

    @contextlib.asynccontextmanager
    async def looked_after(self) -> AsyncIterator[None]:
        """Close connections that wait for too long, while the block lasts."""
        task = asyncio.create_task(self._look_after())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _look_after(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_LOOK_S, self._head_s / 4))
            now = loop.time()
            late = [
                candidate
                for candidate in self._open
                if candidate.is_late(now, self._head_s, _KEPT_S)
            ]
            for connection in late:
                self.drop(connection)


class Connection(web.RequestHandler):
    """One connection of a client.

    Attributes:
        is_busy: whether a request of it is being answered.
    """

    def __init__(
        self, manager: web.Server, connections: Connections, **settings: Any
    ) -> None:
        super().__init__(manager, **settings)
        self.is_busy = False
        self._connections = connections
        self._clock = asyncio.get_running_loop().time
        self._waits_since_s = self._clock()
        self._head_began_s: float | None = None
        self._head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        if not self._connections.add(self):
            transport.write(_FULL)
            transport.close()
            self._force_close = True
            return
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come: of a head, unless a request is being answered."""
        if not self.is_busy:
            if self._head_began_s is None:
                self._head_began_s = self._clock()
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self._connections.drop(self)
                return
        super().data_received(data)

    def begins(self) -> None:
        """A request begins to be answered."""
        self.is_busy = True
        self._head_began_s = None
        self._head_bytes = 0

    def ends(self) -> None:
        """It is answered; the next one may come."""
        self.is_busy = False
        self._waits_since_s = self._clock()
        self._connections.waits(self)

    def is_late(self, now_s: float, head_s: float, kept_s: float) -> bool:
        """Whether a head, or its first byte, has taken too long to come."""
        if self.is_busy:
            return False
        if self._head_began_s is not None:
            return now_s - self._head_began_s > head_s
        return now_s - self._waits_since_s > kept_s

    def log_exception(self, *args: Any, **fields: Any) -> None:
        """Log a bug in ullage, or a request that cannot be read."""
        log_error("a request failed", fields.get("exc_info"))

    def log_debug(self, *args: Any, **fields: Any) -> None:
        """Nothing: aiohttp's words may be the client's."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that cannot be read, or that met a bug in ullage."""
        if status >= 500:
            self.log_exception(exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError(
                "a reply is under way: it cannot become an error"
            )
        words = (
            "the proxy failed."
            if status >= 500
            else "this is no HTTP request."
        )
        return failure(status, words, Connection="close")


class BoundedServer(web.Server):
    """An HTTP server whose connections are bounded.

    Args:
        answer: answers a request.
        connections: those of this worker.
        settings: of aiohttp's `RequestHandler`.
    """

    def __init__(
        self, answer: Handler, connections: Connections, **settings: Any
    ) -> None:
        async def answered(request: web.BaseRequest) -> web.StreamResponse:
            connection: Any = request.protocol
            connection.begins()
            try:
                return await answer(request)
            finally:
                connection.ends()

        # who is gone cancels the upstream
        super().__init__(answered, handler_cancellation=True)
        self._connections_of_clients = connections
        self._settings = settings

    def __call__(self) -> Connection:
        """What serves a connection."""
        loop = asyncio.get_running_loop()
        return Connection(
            self, self._connections_of_clients, loop=loop, **self._settings
        )
