"""Connections that wait, or say only half of what they should, take no place from others."""

import asyncio
import http.client
import logging
import resource
import socket
import subprocess
import sys

import pytest
from aiohttp import web

from tests.proxy.started import started
from tests.proxy.upstream import all_of, ask, proxy, talking, upstream
from ullage.doors.proxy.config import ProxyLimits
from ullage.doors.proxy.connections import Connections, most_connections

HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-A"


@pytest.fixture(scope="module")
def there():
    with upstream() as there:
        yield there


def connected(url):
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def is_closed(raw):
    """Whether the other side closed, by waiting for it."""
    return raw.recv(1) == b""


@pytest.mark.parametrize(
    "words",
    [b"", HALF, b"\r\n", b"GET"],
    ids=["nothing", "half", "line", "word"],
)
def test_one_that_waits_makes_room_the_oldest_first(there, words):
    with proxy(there, limits=ProxyLimits(connections=2)) as url:
        waiting = []
        for _ in range(4):
            waiting.append(connected(url))
            waiting[-1].sendall(words)
        assert is_closed(waiting[0])
        assert is_closed(waiting[1])
        assert ask(url, path="/v1/models")[0] == 200
        for raw in waiting:
            raw.close()


def test_one_that_is_served_is_left_alone():
    let = asyncio.Event()

    async def answer(request):
        if request.path == "/v1/slow":
            await let.wait()
        else:
            let.set()
        return web.Response(text="whole")

    with (
        upstream(answer) as there,
        proxy(there, limits=ProxyLimits(connections=2)) as url,
        connected(url) as served,
    ):
        served.sendall(
            b"GET /v1/slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        while not there.requests:
            pass
        for _ in range(5):
            connected(url).close()
        assert ask(url, path="/v1/fast")[2] == b"whole"
        assert all_of(served).endswith(b"whole")


def test_where_all_are_served_a_new_one_is_told_to_come_again():
    let, began = asyncio.Event(), asyncio.Event()

    async def answer(_):
        began.set()
        await let.wait()
        return web.Response()

    with (
        upstream(answer) as there,
        proxy(there, limits=ProxyLimits(connections=1)) as url,
    ):
        with connected(url) as served:
            served.sendall(b"GET /v1/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not began.is_set():
                pass
            with connected(url) as other:
                assert b" 503 " in all_of(other)
        while True:  # the first one is gone as soon as its end is seen
            with connected(url) as other:
                other.sendall(
                    b"GET /_ullage/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                )
                if b" 200 " in all_of(other):
                    break


@pytest.mark.parametrize("words", [HALF, b"GET / HTTP/1.1\r\n", b"G"])
def test_half_a_head_is_closed_after_a_while(there, words):
    with (
        proxy(there, limits=ProxyLimits(head_s=0.2)) as url,
        talking(url, words) as raw,
    ):
        assert is_closed(raw)


def send_slowly(raw):
    """Send a byte now and then, until the other side has closed."""
    while True:
        raw.sendall(b"a")
        try:
            if raw.recv(1) == b"":
                raise ConnectionResetError("closed")
        except TimeoutError:
            pass


def send_a_long_head(raw):
    raw.sendall(HALF)
    for number in range(100_000):
        raw.sendall(b"b: c\r\nX-%d: " % number + b"a" * 1_000)


def test_a_head_that_trickles_is_closed_too(there):
    with (
        proxy(there, limits=ProxyLimits(head_s=0.3)) as url,
        talking(url, HALF) as raw,
    ):
        raw.settimeout(0.02)
        with pytest.raises(OSError, match=r"reset|Broken|closed"):
            send_slowly(raw)


def test_a_slow_body_is_no_slow_head(there):
    head = (
        b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    )
    with (
        proxy(there, limits=ProxyLimits(head_s=0.2)) as url,
        talking(url, head) as raw,
    ):
        raw.settimeout(1)
        with pytest.raises(TimeoutError):
            raw.recv(1)
        raw.settimeout(20)
        raw.sendall(b"{}")
        assert b" 200 " in raw.recv(65_536)


def test_a_head_without_an_end_is_cut_off(there):
    with proxy(there) as url, connected(url) as raw:
        with pytest.raises(OSError, match=r"reset|Broken"):
            send_a_long_head(raw)
        assert ask(url, path="/_ullage/health")[0] == 200


def test_a_connection_that_is_kept_serves_on(there):
    with proxy(there, limits=ProxyLimits(head_s=0.2)) as url:
        connection = http.client.HTTPConnection(
            url.removeprefix("http://"), timeout=20
        )
        for _ in range(3):
            connection.request("GET", "/v1/models")
            assert connection.getresponse().read() == b""
        connection.close()


def test_few_descriptors_are_enough(there, tmp_path):
    few = ["bash", "-c", 'ulimit -n 64; exec "$@"', "x"]
    with started(there, f"--store={tmp_path}/kept.db", within=few) as running:
        idle = [connected(running.url) for _ in range(80)]
        for _ in range(3):
            assert ask(running.url, "POST", "/v1/x", b"{}")[0] == 200
        for raw in idle:
            raw.close()


def test_there_are_as_many_as_descriptors_allow():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = """if 1:
        import resource
        from ullage.doors.proxy.connections import most_connections, raise_descriptors
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
        print(most_connections())
        raise_descriptors()
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], most_connections())
    """
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == ["16", "256", "112"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    assert most_connections() >= 8


def test_an_empty_room_has_a_length():
    assert len(Connections(1, 1.0)) == 0


BROKEN = [
    b"POST /v1/x HTTP/1.1\r\nHost: a\r\nx-api-key: sk-%b\0\r\n\r\n",
    b"POST /v1/x?key=%b HTTP/9.1\r\nHost: a\r\n\r\n",
    b"GET /v1/x y?key=%b HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03%b",
    b"POST /v1/x HTTP/1.1\r\nHost: a\r\nX-A: %b" + b"a" * 70_000,
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n%b\r\n{}\r\n0\r\n\r\n",
    b'POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}{"a": "%b"}',
]


@pytest.mark.parametrize("data", BROKEN)
def test_what_cannot_be_read_is_refused_and_nothing_of_it_is_logged(
    there, caplog, data
):
    caplog.set_level(logging.DEBUG)
    with proxy(there) as url, talking(url, data % b"SECRET") as raw:
        reply = all_of(raw)
    assert b"SECRET" not in reply
    assert b"400" in reply or b"403" in reply
    assert "SECRET" not in caplog.text
