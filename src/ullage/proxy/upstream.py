"""An upstream as an exchange sees it: sends one request, and reads what comes (aiohttp)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ullage.proxy.bodies import decoder_of
from ullage.proxy.config import Config

_OF_BODY = ("content-encoding", "content-length")


def client_of(config: Config) -> aiohttp.ClientSession:
    """The client that speaks to the upstreams: it adds nothing, follows nothing, keeps nothing."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=config.limits.connect_s),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
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
    found = {}
    for name, url in config.upstreams.items():
        parts = urlsplit(url)
        proxy = system.get(parts.scheme)
        if proxy and not proxy_bypass(parts.hostname or ""):
            found[name] = proxy
    return found


class Upstream:
    """Sends a request of which all but the body is settled; see `ullage.exchange.Upstream`.

    Args:
        client: who speaks to upstreams.
        method: the HTTP method.
        url: where it goes, encoded.
        headers: as they came, those between two neighbours left out.
        came: the body as it came, or what brings it; None: there is none.
        plain: what it is once it was decoded, if that is another one.
        proxy: the system's own proxy that leads there, or None.

    Attributes:
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
        came: bytes | AsyncIterator[bytes] | None,
        plain: bytes | None = None,
        *,
        proxy: str | None = None,
    ) -> None:
        self.sent_bytes, self.began_s, self.is_changed = 0, 0.0, False
        self._client, self._method, self._url = client, method, URL(url, encoded=True)
        self._headers, self._came, self._plain = headers, came, plain
        self._proxy = proxy

    async def send(self, body: bytes) -> Reply:
        """Send it with this body, and give the reply once its head is there."""
        self.sent_bytes, self.is_changed = len(body), body is not self._plain
        if not self.is_changed:
            return await self.pass_on()
        headers = self._headers.copy()
        for name in _OF_BODY:
            headers.popall(name, None)
        return await self._send(body, headers)

    async def delete(self, named: str, other: str) -> Reply:
        """See `ullage.exchange.Upstream.delete`."""
        url = str(self._url).replace(named, other)
        gone = Upstream(
            self._client, self._method, url, self._headers, self._came, proxy=self._proxy
        )
        return await gone.pass_on()

    async def pass_on(self) -> Reply:
        """Send it as it came."""
        return await self._send(self._came, self._headers)

    async def _send(self, data: Any, headers: CIMultiDict[str]) -> Reply:
        self.began_s = time.monotonic()
        reply = await self._client.request(
            self._method,
            self._url,
            headers=headers,
            data=data,
            allow_redirects=False,
            proxy=self._proxy,
        )
        return Reply(reply)


class Reply:
    """What an upstream answered; see `ullage.exchange.Reply`. Its body is read decoded.

    Attributes:
        response: aiohttp's; its body is as it came.
        is_decoded: whether what `read` and `next` give is other than what came.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response, self.status = response, response.status
        self.content_type = response.headers.get("Content-Type", "")
        self._decoder = decoder_of(response.headers.get("Content-Encoding", ""))
        self.is_decoded = self._decoder is not None

    async def read(self) -> bytes:
        """The whole of the body."""
        return self._plain(await self.response.read())

    async def next(self) -> bytes:
        """The next bytes of the body; ``b""`` at its end."""
        while data := await self.response.content.readany():
            if plain := self._plain(data):
                return plain
        return b""

    def _plain(self, data: bytes) -> bytes:
        return data if self._decoder is None else bytes(self._decoder.decompress(data))

    async def close(self) -> None:
        """Let go of the connection; it is kept only if all of the body was read."""
        self.response.release()
