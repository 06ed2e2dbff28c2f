"""A proxy as a process: it ends when it is told to, and not before what is under way."""

import asyncio
import signal
import socket
import threading

import pytest
from aiohttp import web

from tests.proxy.started import started
from tests.proxy.upstream import ask, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.observers import Observers
from ullage.doors.proxy.server import bound, running


def test_a_proxy_that_is_stopped_ends_its_replies_first(tmp_path):
    began, let = threading.Event(), threading.Event()

    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first ")
        began.set()
        await asyncio.to_thread(let.wait, 20)
        await response.write(b"last")
        return response

    with (
        upstream(answer) as there,
        started(there, f"--store={tmp_path}/kept.db") as proxy,
    ):
        got = []
        asked = threading.Thread(
            target=lambda: got.append(ask(proxy.url, "GET", "/v1/x"))
        )
        asked.start()
        assert began.wait(20)
        proxy.process.send_signal(signal.SIGTERM)
        while _takes_connections(proxy.url):
            pass
        let.set()
        asked.join()
        assert got[0][2] == b"first last"
        assert proxy.process.wait(20) == 0


def _takes_connections(url):
    try:
        host, port = url.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_connections_that_come_together_are_left_for_other_workers_too(
    tmp_path,
):
    config = Config(listen="127.0.0.1:0", store=f"{tmp_path}/kept.db")

    async def left():
        with bound(config) as listening:
            other = listening.dup()  # as a worker beside it holds it
            async with running(config, listening, Observers()):
                clients = [
                    socket.create_connection(listening.getsockname())
                    for _ in range(8)
                ]
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                taken = [
                    other.accept()[0] for _ in range(4)
                ]  # fails where none is left
                for each in (*clients, *taken, other):
                    each.close()
                for _ in range(20):  # what was taken is seen to its end
                    await asyncio.sleep(0)

    asyncio.run(left())


def test_an_address_that_is_taken_is_told_without_a_traceback():
    with bound(Config(listen="127.0.0.1:0")) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="Choose another port"):
            bound(Config(listen=f"127.0.0.1:{port}"))


def test_a_socket_of_version_six():
    try:
        listening = bound(Config(listen="[::1]:0"))
    except ConfigError:
        pytest.skip("this machine has no IPv6")
    with listening:
        assert listening.getsockname()[0] == "::1"
