"""An upstream on the loopback that says what it is told to, and a proxy before it.

    with upstream(answer) as there, proxy(there) as url: …

``answer`` is an aiohttp handler, or None for one that echoes the body. `Upstream.requests` are the
requests as they came in, to the byte.
"""

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct

from ullage.doors.proxy.command import behind_a_proxy
from ullage.doors.proxy.config import Config


class Captured(Struct, frozen=True):
    """A request as it came in."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        """The values of a header."""
        return [
            value for key, value in self.headers if key.lower() == name.lower()
        ]


class Upstream:
    """What a proxy stands before.

    Attributes:
        url: where it listens.
        requests: what came in.
        gone: set once somebody hung up in the middle of an answer.
    """

    def __init__(self, answer, host):
        self.url, self.requests, self.gone, self.host = (
            "",
            [],
            threading.Event(),
            host,
        )
        self._answer = answer or _echo

    async def __call__(self, request):
        body = await request.read()
        headers = [(k.decode(), v.decode()) for k, v in request.raw_headers]
        self.requests.append(
            Captured(request.method, request.raw_path, headers, body)
        )
        try:
            return await self._answer(request)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise


async def _echo(request):
    return web.Response(body=await request.read(), headers={"X-Kept": "1"})


@contextmanager
def upstream(answer=None, host="127.0.0.1"):
    """An upstream, for as long as the block lasts."""
    there, loop = Upstream(answer, host), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_started(there), loop).result()
    try:
        yield there
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _started(there):
    server = web.Server(
        there,
        handler_cancellation=True,
        auto_decompress=False,
        access_log=None,
        request_factory=_roomy,
    )
    runner = web.ServerRunner(server, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, there.host, 0).start()
    there.url = f"http://{there.host}:{runner.addresses[0][1]}"
    return runner


def _roomy(message, payload, protocol, writer, task):
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=1 << 30
    )


@contextmanager
def proxy(there, *tell, **settings):
    """The address of a proxy before an upstream, for as long as the block lasts.

    ``tell`` are called with each request that is over. What is set aside lasts no longer.
    """
    upstreams = dict.fromkeys(
        ("anthropic", "openai", "gemini", "ollama"), there.url
    )
    given = {
        "upstreams": upstreams,
        "tenant": "",
        "use_system_proxy": False,
        **settings,
    }
    with TemporaryDirectory() as folder:
        config = Config(
            **{"listen": "127.0.0.1:0", "store": f"{folder}/kept.db", **given}
        )
        with behind_a_proxy(config, *tell) as (url, _):
            yield url


def ask(url, method="GET", path="/", body=None, headers=()):
    """Status, headers and body of an answer, by the standard library's client."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.putrequest(
            method, path, skip_host=False, skip_accept_encoding=True
        )
        for name, value in dict(headers).items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in dict(headers):
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def until(holds):
    """Wait until something holds."""
    end_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end_s, "it does not hold in ten seconds"
        time.sleep(0.001)


def settle(url):
    """Wait until a proxy has counted every reply: a client has its answer a little earlier."""
    until(
        lambda: (
            json.loads(ask(url, path="/_ullage/ready")[2])["in_flight"] == 0
        )
    )


@contextmanager
def talking(url, data):
    """A connection over which these bytes were sent."""
    host, port = urlsplit(url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(data)
        yield raw


def all_of(raw):
    """What comes until the other side closes."""
    return b"".join(iter(lambda: raw.recv(65_536), b""))
