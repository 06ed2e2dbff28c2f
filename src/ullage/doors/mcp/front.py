"""In front of a server behind a URL, on a URL of our own: streamable HTTP on both sides.

A request is passed on as it came, its credentials with it, and so is what comes back; a list of
tools and a result that is too large are changed on the way, in a JSON body or within a stream of
events. Whose an original is, say the session and the credential: nobody else's ref opens it. What
one request has told holds for the next of the same: lists, tasks, and what a stream is to answer
that breaks off and is taken up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from msgspec.structs import replace

from ullage.doors.mcp.forwarding import open_store
from ullage.doors.mcp.frames import Id, batch_of, batched
from ullage.doors.mcp.headers import credentials_of
from ullage.doors.mcp.relay import PendingRequest, RelayState, SessionRelay
from ullage.doors.mcp.settings import McpSettings
from ullage.doors.mcp.stdio import tell
from ullage.stores import ref_of

_OF_A_HOP = frozenset(
    (
        *(
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
        ),
        *(
            "trailer",
            "transfer-encoding",
            "upgrade",
            "host",
            "content-length",
            "content-encoding",
        ),
        "accept-encoding",
    )
)
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
_MOST_SESSIONS = 1_000
_MOST_OPEN = 100
_CONNECT_S = 30


class _Session:
    """The state that requests of one tenant share."""

    def __init__(self) -> None:
        self.state = RelayState()
        self.open_requests: dict[Id, PendingRequest] = {}

    def remember(self, requests: Mapping[Id, PendingRequest]) -> None:
        """Remember what was asked, of late."""
        self.open_requests |= requests
        while len(self.open_requests) > _MOST_OPEN:
            del self.open_requests[next(iter(self.open_requests))]


class Front:
    """The application.

    Args:
        url: the server.
        headers: sent to it with every request, beside the client's own.
        settings: how results are cut, and where they are kept.
        host: the address this listens on; on the machine's own, only it is served.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        settings: McpSettings,
        host: str = "127.0.0.1",
    ) -> None:
        self._url = url
        self._headers = headers
        self._settings = settings
        self._is_local = host in _LOOPBACK
        self._store = open_store(settings)
        self._sessions: dict[str, _Session] = {}
        self._http: aiohttp.ClientSession | None = None

    def application(self) -> web.Application:
        """What aiohttp serves."""
        app = web.Application(client_max_size=self._settings.most_frame_bytes)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.cleanup_ctx.append(self._connected)
        return app

    async def _connected(
        self, application: web.Application
    ) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with aiohttp.ClientSession(timeout=timeout) as self._http:
            yield
        self._store.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._is_local and not _is_local(request):
            return web.Response(
                status=403, text="only this machine is served here"
            )
        tenant = self._tenant(request)
        is_post = request.method == "POST"
        session = self._of(tenant)
        # a GET may take a stream up again; POSTs of two clients may count their requests alike
        open_requests = {} if is_post else session.open_requests
        settings = replace(self._settings, tenant=tenant)
        relay = SessionRelay(
            settings,
            self._store,
            tell,
            session.state,
            open_requests,
            is_complete=is_post,
        )
        body = await request.read()
        back = b""
        if is_post:
            body, back = await asyncio.to_thread(relay.from_client, body)
            if back and not body:
                return web.Response(
                    body=back.strip(), content_type="application/json"
                )
            if "Mcp-Session-Id" in request.headers:
                session.remember(relay.pending)
        try:
            return await self._passed(request, body, back, relay)
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            return web.Response(
                status=502, text=f"ullage mcp: {type(error).__name__}"
            )

    def _of(self, tenant: str) -> _Session:
        """The session of a tenant. Of too many the one that was idle longest is dropped."""
        session = self._sessions.pop(tenant, None) or _Session()
        self._sessions[tenant] = session
        if len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session

    async def _passed(
        self,
        request: web.Request,
        body: bytes,
        back: bytes,
        relay: SessionRelay,
    ) -> web.StreamResponse:
        """The server's answer, changed where it is ours to change, with what is ours before it."""
        assert self._http is not None
        headers = {
            **_kept(request.headers),
            "Accept-Encoding": "identity",
            **self._headers,
        }
        upstream_request = self._http.request(
            request.method,
            self._url,
            data=body or None,
            headers=headers,
            allow_redirects=False,
        )
        async with upstream_request as response:
            end_to_end = _kept(response.headers)
            if response.content_type != "text/event-stream":
                whole = await response.read()
                changed = (
                    _answered(whole, relay)
                    if request.method == "POST"
                    else whole
                )
                if back:
                    rest = batch_of(changed) or (
                        [changed] if changed.strip() else []
                    )
                    changed = batched([*batch_of(back), *rest])
                    return web.Response(
                        body=changed, content_type="application/json"
                    )
                return web.Response(
                    status=response.status, body=changed, headers=end_to_end
                )
            stream = web.StreamResponse(
                status=response.status, headers=end_to_end
            )
            await stream.prepare(request)
            if back:
                await stream.write(b"data: " + back.strip() + b"\n\n")
            async for event in _events(response.content):
                await stream.write(_changed(event, relay))
            await stream.write_eof()
            return stream

    def _tenant(self, request: web.Request) -> str:
        """Whose a request is; in a store that is kept a session is nobody of its own."""
        credential = credentials_of(
            request.headers, self._settings.credential_headers
        )
        session = (
            request.headers.get("Mcp-Session-Id", "")
            if self._settings.store is None
            else ""
        )
        whose = (
            ref_of(f"{credential}\n{session}", "tenant")
            if credential or session
            else ""
        )
        return f"{self._settings.tenant} {whose}".strip()


def _answered(whole: bytes, relay: SessionRelay) -> bytes:
    """The body of a response; where all of it was dropped, an error for what was asked."""
    changed = relay.from_server(whole)
    if changed or not whole.strip():
        return changed
    errors = list(relay.ended("the response ended"))
    return errors[0] if len(errors) == 1 else batched(errors)


def _is_local(request: web.Request) -> bool:
    """Whether a request is meant for this machine: a page of elsewhere may not have it sent."""
    if request.headers.get("Sec-Fetch-Site") == "cross-site":
        return False
    origin = request.headers.get("Origin")
    hosts = (
        [f"//{request.host}"]
        if origin is None
        else [f"//{request.host}", origin]
    )
    return all(map(_names_this_machine, hosts))


def _names_this_machine(address: str) -> bool:
    """Whether a host or an origin is this machine; one with a user's name in it is a trick."""
    try:
        parts = urlsplit(address)
        return "@" not in parts.netloc and parts.hostname in _LOOPBACK
    except ValueError:
        return False


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _OF_A_HOP
    }


async def _events(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The events of a stream as they came, blank line and all."""
    buffer = b""
    async for block in stream.iter_any():
        buffer += block
        while (end := _end_of_event(buffer)) > 0:
            yield buffer[:end]
            buffer = buffer[end:]
    if buffer:
        yield buffer


def _end_of_event(buffer: bytes) -> int:
    ends = [
        at + len(mark)
        for mark in (b"\n\n", b"\r\n\r\n")
        if (at := buffer.find(mark)) >= 0
    ]
    return min(ends, default=0)


def _changed(event: bytes, relay: SessionRelay) -> bytes:
    """An event whose message is what the relay gives on; the same bytes where that is the same."""
    lines = event.splitlines()
    data = [
        line[5:].removeprefix(b" ")
        for line in lines
        if line.startswith(b"data:")
    ]
    message = b"\n".join(data)
    changed = relay.from_server(message) if message else message
    if changed == message:
        return event
    other_lines = [
        line for line in lines if line and not line.startswith(b"data:")
    ]
    if not changed:
        return b"\n".join((*other_lines, b"", b"")) if other_lines else b""
    return b"\n".join((*other_lines, b"data: " + changed, b"", b""))


def serve(
    url: str,
    headers: Mapping[str, str],
    settings: McpSettings,
    host: str,
    port: int,
) -> None:
    """Serve until a signal comes.

    Args:
        url: the server.
        headers: sent to it with every request.
        settings: how results are cut, and where they are kept.
        host: the address to listen on.
        port: the port.
    """
    front = Front(url, headers, settings, host)
    display_host = f"[{host}]" if ":" in host else host
    tell(f"on http://{display_host}:{port}/mcp")
    web.run_app(
        front.application(), host=host, port=port, print=None, access_log=None
    )
