"""A server behind a URL: MCP's streamable HTTP, spoken for a client on pipes.

Each frame is a POST; its answer is one JSON message or a stream of events. Up to 2025-11-25 there
is a session, and a GET on which the server tells of itself; from 2026-07-28 on every request stands
for itself and says in its headers what it is. Needs aiohttp (the extra ``ullage[proxy]``).
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ullage.errors import ConfigError
from ullage.mcp.frames import (
    Envelope,
    Id,
    Unreadable,
    compact,
    envelope_of,
    failure,
    fields_of,
    value_of,
)
from ullage.mcp.stdio import Pipe, tell
from ullage.mcp.tools import version_of

if TYPE_CHECKING:
    import aiohttp

    from ullage.mcp.frames import Piece

__all__ = ["ACCEPTED", "Remote", "events"]

ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Whose name a stateless request says in its headers."""
_PLAIN = re.compile(r"(?!=\?base64\?)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CONNECT_S, _GOODBYE_S, _AGAIN_S = 30, 3, 1
_FAILED = -32000


class Remote:
    """A server behind a URL. The contract is `ullage.mcp.forwarding.Link`.

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
                "url", "aiohttp is not installed", "Install ullage[mcp,proxy]."
            ) from None
        self._url = url
        self._headers = {**ACCEPTED, **headers}
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._version = self._session_id = ""
        self._parts: list[bytes] = []
        self._most_bytes = 0
        self._take: Callable[[bytes], None] = lambda frame: None
        self._http: aiohttp.ClientSession | None = None

    # ── from other threads ───────────────────────────────────────────────────────────────

    def send(self, frame: bytes) -> None:
        """`Link.send`."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._begin, frame)

    def pass_on(self, piece: Piece, is_inside: bool) -> None:
        """`Link.pass_on`: a request has to be whole."""
        self._parts.append(piece.data)
        if piece.is_end:
            whole, self._parts = b"".join(self._parts), []
            self.send(whole)

    def close(self) -> None:
        """`Link.close`."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)

    def receive(self, take: Callable[[bytes], None], client: Pipe, most_bytes: int) -> str:
        """`Link.receive`."""
        self._take, self._most_bytes = take, most_bytes
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
        message = envelope_of(frame)
        wanted = _cancelled(message)
        if wanted is not None and wanted in self._running and not self._session_id:
            self._running[wanted].cancel()  # without a session, to hang up is to cancel
            return
        id = message.id if message and message.method is not UNSET else None
        task = self._started(self._post(frame, message, id if isinstance(id, Id) else None))
        if isinstance(id, Id):
            self._running[id] = task
            task.add_done_callback(lambda _: self._running.pop(id, None))

    def _started(self, steps: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _post(self, frame: bytes, message: Envelope | None, id: Id | None) -> None:
        import aiohttp

        assert self._http is not None
        headers = {**self._headers, **self._session(), **_said(message)}
        why = "the stream ended"
        try:
            posted = self._http.post(
                self._url, data=frame.strip(), headers=headers, allow_redirects=False
            )
            async with posted as response:
                if await self._taken(response, id):
                    return
                if response.status >= 300 or id is None:
                    why = f"HTTP {response.status}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = type(error).__name__
        if id is not None:
            self._take(failure(id, _FAILED, f"ullage mcp: {why} before it was answered"))
        elif why.startswith("HTTP 2"):
            if message and message.method == "notifications/initialized":
                self._started(self._listen())
        else:
            tell(f"a message did not reach the server: {why}")

    async def _taken(self, response: aiohttp.ClientResponse, id: Id | None) -> bool:
        """Give on what a response holds; whether the answer to its request was among it."""
        self._session_id = response.headers.get("Mcp-Session-Id", self._session_id)
        if response.content_type == "application/json":
            return self._give(await response.read()) == id is not None
        is_answered = False
        if response.content_type == "text/event-stream":
            async for _, data in events(response.content, self._most_bytes):
                is_answered |= self._give(data) == id is not None
        return is_answered

    def _give(self, data: bytes) -> Id | None:
        """Give a message on as one line; the id that it answers."""
        frame = data.strip()
        message = envelope_of(frame)
        if message is None:
            return None
        if b"\n" in frame or b"\r" in frame:
            frame = compact(frame)
        if message.result is not UNSET and not self._version:
            with suppress(Unreadable):
                agreed = value_of(fields_of(message.result).get("protocolVersion", b"null"))
                self._version = agreed if isinstance(agreed, str) else ""
        self._take(frame + b"\n")
        return message.id if message.method is UNSET and isinstance(message.id, Id) else None

    async def _listen(self) -> None:
        """The stream on which a server of a session tells of itself, again and again."""
        import aiohttp

        assert self._http is not None
        last = ""
        while True:
            headers = {**self._headers, **self._session(), "Accept": "text/event-stream"}
            headers |= {"Last-Event-ID": last} if last else {}
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with self._http.get(self._url, headers=headers) as response:
                    if response.status >= 400 or response.content_type != "text/event-stream":
                        return  # it has none
                    async for number, data in events(response.content, self._most_bytes):
                        last = number or last
                        self._give(data)
            await asyncio.sleep(_AGAIN_S)

    def _session(self) -> dict[str, str]:
        found = {"Mcp-Session-Id": self._session_id, "MCP-Protocol-Version": self._version}
        return {name: value for name, value in found.items() if value}


def _cancelled(message: Envelope | None) -> Id | None:
    """The id of the request that a notification cancels."""
    if message is None or message.method != "notifications/cancelled":
        return None
    with suppress(Unreadable):
        wanted = value_of(fields_of(message.params or b"{}").get("requestId", b"null"))
        return wanted if isinstance(wanted, Id) else None
    return None


def _said(message: Envelope | None) -> dict[str, str]:
    """What a stateless request says of itself in its headers."""
    if message is None or message.method is UNSET or message.params is UNSET:
        return {}
    method = str(message.method)
    try:
        given = fields_of(message.params)
        version = version_of({"_meta": value_of(given.get("_meta", b"null"))})
        name = value_of(given.get(_NAMED.get(method, ""), b"null"))
    except Unreadable:
        return {}
    if version is None:
        return {}
    said = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    return {**said, "Mcp-Name": _header(name)} if isinstance(name, str) else said


def _header(value: str) -> str:
    """A value as a header may hold it."""
    if _PLAIN.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


async def events(stream: aiohttp.StreamReader, most_bytes: int) -> AsyncIterator[tuple[str, bytes]]:
    """The events of a stream that hold data: their id, and the data.

    Args:
        stream: the body of a response.
        most_bytes: one that is longer is left out, and told of.
    """
    held, lines, size, number = b"", [], 0, ""
    async for block in stream.iter_any():
        *whole, held = (held + block).replace(b"\r\n", b"\n").split(b"\n")
        for line in whole:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                lines.append(value)
                size += len(value)
            elif field == b"id":
                number = value.decode("utf-8", "replace")
            elif not line:
                if lines and size <= most_bytes:
                    yield number, b"\n".join(lines)
                elif lines:
                    tell(f"an event of {size:,} bytes was left out: over {most_bytes:,}")
                lines, size = [], 0
