"""One request and its reply.

    request ─▶ route ─▶ body ─▶ upstream ─▶ reply, as it comes ─▶ client

What is not fitted passes byte for byte: method, path, query, headers but a hop's own, body, and
the reply's in the same way. The upstream's errors are the client's to see. A client that goes
away cancels the upstream's work. Nothing is tried twice once it was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from ullage.proxy.answers import failure
from ullage.proxy.bodies import Body, Held, read_body
from ullage.proxy.config import Config
from ullage.proxy.headers import TOLD, passed_down, passed_up
from ullage.proxy.routes import Route, route_of

__all__ = ["Relay", "client_of"]


def client_of(config: Config) -> aiohttp.ClientSession:
    """The client that speaks to the upstreams: it adds nothing, follows nothing, keeps nothing."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=config.limits.connect_s),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        trust_env=config.use_system_proxy,
        max_line_size=65_536,
        max_field_size=65_536,
        max_headers=512,
    )


class Relay:
    """Passes requests on. One for each worker.

    Args:
        config: the proxy's settings.
        client: who speaks to the upstreams.

    Attributes:
        in_flight: requests whose reply is not over.
        idle: set while there is none.
        is_stopping: whether no more are to come.
    """

    def __init__(self, config: Config, client: aiohttp.ClientSession) -> None:
        self.in_flight, self.is_stopping = 0, False
        self.idle = asyncio.Event()
        self.idle.set()
        self._config, self._client = config, client
        self._held = Held(config.limits.held_bytes)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        if self.in_flight >= self._config.limits.exchanges:
            return failure(503, "too many requests are in flight. Try again.", Retry_After="1")
        if "upgrade" in request.headers.get("Connection", "").lower():
            return failure(426, "websockets are not passed on. Use HTTP.", Upgrade="HTTP/1.1")
        route = route_of(request.raw_path, request.headers, self._config.upstreams)
        if route is None:
            return failure(400, "no upstream has this address. Send a path, not a URL.")
        self.in_flight += 1
        self.idle.clear()
        try:
            return await self._relayed(request, route)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()

    async def _relayed(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        limits = self._config.limits
        try:
            body = await read_body(request.content, limits.body_bytes, self._held, limits.idle_s)
        except TimeoutError:
            return failure(408, "the request's body did not come to its end.", Connection="close")
        try:
            return await self._passed(request, route, body)
        finally:
            self._held.give(len(body.data) if body.is_whole else 0)

    async def _passed(
        self, request: web.BaseRequest, route: Route, body: Body
    ) -> web.StreamResponse:
        """The reply to a request that goes on as it came."""
        headers = passed_up(request.headers)
        data: bytes | AsyncIterator[bytes] | None = body.parts()
        if body.is_whole:
            data = body.data if request.can_read_body or body.data else None
        try:
            reply = await self._client.request(
                request.method,
                URL(route.url, encoded=True),
                headers=headers,
                data=data,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return _unreached(route, error)
        async with reply:
            return await self._down(request, reply)

    async def _down(
        self, request: web.BaseRequest, reply: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        """Pass a reply on as it comes."""
        headers = passed_down(reply.headers)
        headers[TOLD] = "passed"
        response = web.StreamResponse(status=reply.status, reason=reply.reason, headers=headers)
        if self.is_stopping:
            response.force_close()
        await response.prepare(request)
        try:
            async for part in reply.content.iter_any():
                await self._write(response, part)
        except (aiohttp.ClientError, TimeoutError, OSError):
            _break(request)  # a reply that ends early must not look like one that is whole
        else:
            await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, part: bytes) -> None:
        async with asyncio.timeout(self._config.limits.idle_s):
            await response.write(part)


def _break(request: web.BaseRequest) -> None:
    """End a connection in the middle, so that the client sees that something is missing."""
    transport: Any = request.transport
    if transport is not None:
        transport.abort()


def _unreached(route: Route, error: Exception) -> web.Response:
    """What is answered where an upstream could not be asked, or broke off before it answered."""
    kind = type(error).__name__
    if isinstance(error, TimeoutError):
        return failure(504, f"the upstream {route.upstream!r} did not answer in time ({kind}).")
    return failure(
        502, f"the upstream {route.upstream!r} could not be reached ({kind}). Is its URL right?"
    )
