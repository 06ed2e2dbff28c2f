"""A server behind a URL: MCP's streamable HTTP, spoken for a client on pipes.

Each frame is a POST; its answer is one JSON message or a stream of events. Up to 2025-11-25 there
is a session, a GET on which the server tells of itself, and streams that are taken up again where
they broke off; from 2026-07-28 on every request stands for itself and says in its headers what it
is (`ullage.doors.mcp.headers`). Needs aiohttp (the extra ``proxy``).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.doors.mcp.events import StreamPosition, events
from ullage.doors.mcp.frames import (
    Id,
    RpcMessage,
    UnreadableFrame,
    batch_of,
    compact,
    failure,
    fields_of,
    rpc_message_of,
    value_of,
)
from ullage.doors.mcp.headers import Marked, marked_in, request_headers
from ullage.doors.mcp.stdio import Pipe, tell

if TYPE_CHECKING:
    import aiohttp

    from ullage.doors.mcp.frames import FramePiece

ACCEPTED = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}

_STREAM = "text/event-stream"
_CONNECT_S = 30
_GOODBYE_S = 3
_TRIES = 3
_ENDING = {
    getattr(signal, name, None)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
}
_FAILED = -32000


class Remote:
    """A server behind a URL. The contract is `ullage.doors.mcp.forwarding.Link`.

    Args:
        url: where it is.
        headers: sent with every request.

    Raises:
        ConfigError: aiohttp is not installed.
    """

    code: int = 0

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        try:
            import aiohttp  # noqa: F401
        except ImportError:
            raise ConfigError(
                "url",
                "aiohttp is not installed",
                f"Run {install_remedy('mcp', 'proxy')}.",
            ) from None
        self._url = url
        self._headers = {**ACCEPTED, **headers}
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._version = self._session_id = ""
        self._lists: set[Id] = set()
        self._marked: dict[str, Marked] = {}
        self._parts: list[bytes] = []
        self._most_bytes = 0
        self._take: Callable[[bytes], None] = lambda frame: None
        self._http: aiohttp.ClientSession | None = None

    # ── from other threads ───────────────────────────────────────────────────────────────

    def send(self, frame: bytes) -> None:
        """`Link.send`."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._begin, frame)

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """`Link.pass_on`: a request has to be whole."""
        self._parts.append(piece.data)
        if piece.is_end:
            whole = b"".join(self._parts)
            self._parts = []
            self.send(whole)

    def close(self) -> None:
        """`Link.close`."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)

    def signal(self, number: int) -> None:
        """`Link.signal`: it is far, so this only ends the session with it."""
        if number in _ENDING:
            self.code = -number
            self.close()

    def receive(
        self, take: Callable[[bytes], None], client: Pipe, most_bytes: int
    ) -> str:
        """`Link.receive`."""
        self._take = take
        self._most_bytes = most_bytes
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()
        return "the connection was closed"

    # ── in the loop ──────────────────────────────────────────────────────────────────────

    async def _serve(self) -> None:
        """Until the client is gone: then what runs is given a moment, and the session ended."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with aiohttp.ClientSession(timeout=timeout) as self._http:
            await self._over.wait()
            running = [*self._running.values()]
            if running:
                await asyncio.wait(running, timeout=_GOODBYE_S)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._session_id:
                with suppress(aiohttp.ClientError, TimeoutError, OSError):
                    headers = {**self._headers, **self._session()}
                    async with asyncio.timeout(_GOODBYE_S):
                        await self._http.delete(self._url, headers=headers)

    def _begin(self, frame: bytes) -> None:
        message = rpc_message_of(frame)
        request_id = _cancelled(message)
        if (
            request_id is not None
            and request_id in self._running
            and not self._session_id
        ):
            self._running[
                request_id
            ].cancel()  # without a session, to hang up is to cancel
            return
        id = message.id if message and message.method is not UNSET else None
        task = self._started(
            self._post(frame, message, id if isinstance(id, Id) else None)
        )
        if isinstance(id, Id):
            if message and message.method == "tools/list":
                self._lists.add(id)
            self._running[id] = task
            task.add_done_callback(lambda _: self._running.pop(id, None))

    def _started(self, steps: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _post(
        self, frame: bytes, message: RpcMessage | None, id: Id | None
    ) -> None:
        import aiohttp

        assert self._http is not None
        headers = {
            **self._headers,
            **self._session(),
            **request_headers(message, self._marked),
        }
        reason = "the stream ended"
        position = StreamPosition()
        try:
            posted = self._http.post(
                self._url,
                data=frame.strip(),
                headers=headers,
                allow_redirects=False,
            )
            async with posted as response:
                if await self._taken(response, id, position):
                    return
                if response.status >= 300 or id is None:
                    reason = f"HTTP {response.status}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = type(error).__name__
        if (
            id is not None
            and position.last_event_id
            and await self._taken_up(id, position)
        ):
            return
        if id is not None:
            self._take(
                failure(
                    id, _FAILED, f"ullage mcp: {reason} before it was answered"
                )
            )
        elif reason.startswith("HTTP 2"):
            if message and message.method == "notifications/initialized":
                self._started(self._listen())
        else:
            tell(f"a message did not reach the server: {reason}")

    async def _taken_up(self, id: Id, position: StreamPosition) -> bool:
        """Go on with a stream that broke off; whether the answer came."""
        import aiohttp

        failed = 0
        while failed < _TRIES:
            await asyncio.sleep(position.wait_s)
            reached = position.last_event_id
            failed += 1
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with self._again(position) as response:
                    if (
                        response.status < 500
                        and response.content_type != _STREAM
                    ):
                        return False
                    if await self._taken(response, id, position):
                        return True
            failed = failed if position.last_event_id == reached else 0
        return False

    async def _listen(self) -> None:
        """The stream on which a server of a session tells of itself, again and again."""
        import aiohttp

        position = StreamPosition()
        while True:
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with self._again(position) as response:
                    if (
                        response.status >= 400
                        or response.content_type != _STREAM
                    ):
                        return  # it has none
                    await self._taken(response, None, position)
            await asyncio.sleep(position.wait_s)

    def _again(
        self, position: StreamPosition
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open a stream of the session, from its last event on."""
        assert self._http is not None
        headers = {**self._headers, **self._session(), "Accept": _STREAM}
        headers |= (
            {"Last-Event-ID": position.last_event_id}
            if position.last_event_id
            else {}
        )
        return self._http.get(
            self._url, headers=headers, allow_redirects=False
        )

    async def _taken(
        self,
        response: aiohttp.ClientResponse,
        id: Id | None,
        position: StreamPosition,
    ) -> bool:
        """Give on what a response holds; whether the answer to its request was among it."""
        self._session_id = response.headers.get(
            "Mcp-Session-Id", self._session_id
        )
        if response.content_type == "application/json":
            return self._give(await response.read(), id)
        is_answered = False
        if response.content_type == _STREAM:
            async for data in events(
                response.content, self._most_bytes, position, tell
            ):
                is_answered |= self._give(data, id)
        return is_answered

    def _give(self, data: bytes, id: Id | None) -> bool:
        """Give each message on as one line; whether one of them answers a request."""
        is_answered = False
        for part in batch_of(data) or [data]:
            frame = part.strip()
            message = rpc_message_of(frame)
            if message is None:
                continue
            if b"\n" in frame or b"\r" in frame:
                frame = compact(frame)
            if message.method is UNSET and isinstance(message.id, Id):
                is_answered |= message.id == id
                self._learn(message, message.id)
            self._take(frame + b"\n")
        return is_answered

    def _learn(self, answer: RpcMessage, id: Id) -> None:
        """Remember what later requests have to repeat in their headers."""
        is_list = id in self._lists
        self._lists.discard(id)
        if answer.result is UNSET:
            return
        with suppress(UnreadableFrame, AttributeError):
            if is_list:
                self._marked |= marked_in(answer.result)
            elif not self._version:
                agreed = value_of(
                    fields_of(answer.result).get("protocolVersion", b"null")
                )
                self._version = agreed if isinstance(agreed, str) else ""

    def _session(self) -> dict[str, str]:
        headers = {
            "Mcp-Session-Id": self._session_id,
            "MCP-Protocol-Version": self._version,
        }
        return {name: value for name, value in headers.items() if value}


def _cancelled(message: RpcMessage | None) -> Id | None:
    """The id of the request that a notification cancels."""
    if message is None or message.method != "notifications/cancelled":
        return None
    with suppress(UnreadableFrame):
        request_id = value_of(
            fields_of(message.params or b"{}").get("requestId", b"null")
        )
        return request_id if isinstance(request_id, Id) else None
    return None
