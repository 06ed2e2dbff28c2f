"""An upstream as an exchange sees it: sends one request, and reads what comes (aiohttp)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ullage.doors.exchange.values import TooLong
from ullage.doors.proxy.bodies import whole
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.decoding import Undecodable, decoder_of

Judged: TypeAlias = Callable[[int], Awaitable[None]]
"""Takes the status of a reply."""

_OF_BODY = ("content-encoding", "content-length")
_STREAM_BYTES = 512 << 20
"""No stream of events is as long: one of a million tokens has a third of it."""


def client_of(config: Config) -> aiohttp.ClientSession:
    """The client that speaks to the upstreams: it adds nothing, follows nothing, keeps nothing."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=config.limits.connect_s
        ),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=(
            "User-Agent",
            "Accept",
            "Accept-Encoding",
            "Content-Type",
        ),
        max_line_size=65_536,
        max_field_size=65_536,
        max_headers=512,
    )


def proxies_of(config: Config) -> dict[str, str]:
    """The system's proxy for each upstream that is reached through one, by the upstream's name.

    Found once; and not left to aiohttp, which then would read credentials from a file of the
    user's (``.netrc``) and add them to requests.
    """
    system = getproxies() if config.use_system_proxy else {}
    proxies = {}
    for name, url in config.upstreams.items():
        parts = urlsplit(url)
        proxy = system.get(parts.scheme)
        if proxy and not proxy_bypass(parts.hostname or ""):
            proxies[name] = proxy
    return proxies


class HttpUpstream:
    """Sends a request of which all but the body is settled; see `ullage.doors.exchange.Upstream`.

    Args:
        client: who speaks to upstreams.
        method: the HTTP method.
        url: where it goes, encoded.
        headers: as they came, those between two neighbours left out.
        original_body: the body as the client sent it, or what brings it; None: none.
        plain: the same, decoded; None where nothing is to be compared with it.
        proxy: the system's own proxy that leads there, or None.
        reply_bytes: the most bytes of a reply that is read whole.
        judged: awaited with the status of each reply before it is given.
        sending: called with each body that an exchange sends.

    Attributes:
        headers: as given.
        sent_bytes: of the body that was sent last.
        is_changed: whether that was another than what came.
        began_s: when that was, on the monotonic clock; 0 if nothing was sent.
    """

    def __init__(
        self,
        client: aiohttp.ClientSession,
        method: str,
        url: str,
        headers: CIMultiDict[str],
        original_body: bytes | AsyncIterator[bytes] | None,
        plain: bytes | None = None,
        *,
        proxy: str | None = None,
        reply_bytes: int = 64 << 20,
        judged: Judged | None = None,
        sending: Callable[[bytes], None] | None = None,
    ) -> None:
        self._sending = sending
        self.sent_bytes = 0
        self.began_s = 0.0
        self.is_changed = False
        self._client = client
        self._method = method
        self._url = URL(url, encoded=True)
        self.headers = headers
        self._original_body = original_body
        self._plain = plain
        self._proxy = proxy
        self._reply_bytes = reply_bytes
        self._judged = judged

    async def send(self, body: bytes) -> HttpReply:
        """Send it with this body, and give the reply once its head is there."""
        self.sent_bytes = len(body)
        self.is_changed = body is not self._plain
        if self._sending is not None:
            self._sending(body)
        if not self.is_changed:
            return await self.pass_on()
        headers = self.headers.copy()
        for name in _OF_BODY:
            headers.popall(name, None)
        return await self._send(body, headers)

    async def delete(self, reply_id: str, hidden_id: str) -> HttpReply:
        """See `ullage.doors.exchange.Upstream.delete`."""
        url = str(self._url).replace(reply_id, hidden_id)
        deletion = HttpUpstream(
            self._client,
            self._method,
            url,
            self.headers,
            self._original_body,
            proxy=self._proxy,
        )
        return await deletion.pass_on()

    async def pass_on(self) -> HttpReply:
        """Send it as it came."""
        return await self._send(self._original_body, self.headers)

    async def _send(self, data: Any, headers: CIMultiDict[str]) -> HttpReply:
        self.began_s = time.monotonic()
        reply = await self._client.request(
            self._method,
            self._url,
            headers=headers,
            data=data,
            allow_redirects=False,
            proxy=self._proxy,
        )
        if self._judged is not None:
            await self._judged(reply.status)
        return HttpReply(reply, self._reply_bytes)


class HttpReply:
    """An upstream's reply, read decoded; see `ullage.doors.exchange.UpstreamReply`.

    Args:
        response: aiohttp's; its body is as it came.
        most: the most bytes of a body that is read whole, as it came and decoded.

    Attributes:
        response: the same.
        is_decoded: whether what `read` and `next` give is other than what came.
    """

    def __init__(self, response: aiohttp.ClientResponse, most: int) -> None:
        self.response = response
        self.status = response.status
        self.content_type = response.headers.get("Content-Type", "")
        self._decoder = decoder_of(
            response.headers.get("Content-Encoding", "")
        )
        self.is_decoded = self._decoder is not None
        self._most = most
        self._given_bytes = 0
        self._raw_parts: list[bytes] = []
        self._pieces: Iterator[bytes] = iter(())

    async def read(self) -> bytes:
        """The whole of the body.

        Raises:
            TooLong: it is longer than is read; `parts` gives it as it came.
            aiohttp.ClientPayloadError: it breaks off, or is not what its encoding says.
        """
        size = 0
        async for part in self.response.content.iter_any():
            self._raw_parts.append(part)
            size += len(part)
            if size > self._most:
                raise TooLong
        data = b"".join(self._raw_parts)
        if self._decoder is not None:
            try:
                data = whole(self._decoder, data, self._most)
            except Undecodable as error:
                raise aiohttp.ClientPayloadError(str(error)) from None
        self._raw_parts.clear()
        return data

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it came: what was read of it, and the rest."""
        for part in self._raw_parts:
            yield part
        async for part in self.response.content.iter_any():
            yield part

    async def next(self) -> bytes:
        """The next bytes of the body; ``b""`` at its end.

        Raises:
            aiohttp.ClientPayloadError: it breaks off, is not what its encoding says, or has no end.
        """
        try:
            while not (piece := next(self._pieces, b"")):
                data = await self.response.content.readany()
                if not data:
                    if self._decoder is not None:
                        self._decoder.end()
                    return b""
                self._pieces = (
                    iter((data,))
                    if self._decoder is None
                    else self._decoder.feed(data)
                )
        except Undecodable as error:
            raise aiohttp.ClientPayloadError(str(error)) from None
        self._given_bytes += len(piece)
        if self._given_bytes > _STREAM_BYTES:
            raise aiohttp.ClientPayloadError("it has no end")
        return piece

    async def close(self) -> None:
        """Let go of the connection; it is kept only if all of the body was read."""
        self.response.release()
