"""What passes through passes as it is, and what breaks is told as what it is."""

import asyncio
import gzip
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.upstream import (
    all_of,
    ask,
    proxy,
    talking,
    until,
    upstream,
)
from ullage.doors.proxy import tenants
from ullage.doors.proxy.bodies import BodyBudget
from ullage.doors.proxy.config import ProxyLimits
from ullage.doors.proxy.logs import line_of


@pytest.fixture(scope="module")
def echo():
    with upstream() as there, proxy(there) as url:
        yield there, url


GET = b"GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PATHS = (
    "/v1/models?limit=2&after=a%20b",
    "/v1/files/x%2Fy",
    "/v1//double//slash",
    "/?q=%C3%A9",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", PATHS)
def test_method_path_and_query_pass_as_they_are(echo, method, path):
    there, url = echo
    status, headers, body = ask(url, method, path, b"{not json")
    assert (status, body, headers["X-Kept"]) == (200, b"{not json", "1")
    assert (there.requests[-1].method, there.requests[-1].target) == (
        method,
        path,
    )
    assert headers["X-Ullage"]


@settings(max_examples=25)
@given(st.binary(max_size=4_000))
def test_any_body_passes_byte_for_byte(echo, body):
    there, url = echo
    assert ask(url, "POST", "/v1/audio/speech", body)[2] == body
    assert there.requests[-1].body == body


def test_headers_pass_but_those_between_two_neighbours(echo):
    there, url = echo
    headers = {
        "Authorization": "Bearer key",
        "X-Stainless-Lang": "python",
        "anthropic-beta": "a,b",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "Proxy-Authorization": "Basic eA==",
        "X-Ullage-Anything": "1",
        "User-Agent": "a client",
    }
    ask(url, "POST", "/v1/x", b"1", headers)
    came = there.requests[-1]
    for name in (
        "Authorization",
        "X-Stainless-Lang",
        "anthropic-beta",
        "User-Agent",
    ):
        assert came.header(name) == [headers[name]]
    for name in (
        "X-Hop",
        "Proxy-Authorization",
        "X-Ullage-Anything",
        "Accept-Encoding",
    ):
        assert came.header(name) == []
    assert came.header("Host") == [urlsplit(there.url).netloc]


def test_a_body_that_is_signed_passes_byte_for_byte(echo):
    there, url = echo
    signature = "AWS4-HMAC-SHA256 Credential=AKIA/us-east-1/bedrock/aws4_request, Signature=a"
    body = b'{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"go"}]}'
    path = "/anthropic/model/anthropic.claude-sonnet-4-5/invoke"
    _, headers, _ = ask(url, "POST", path, body, {"Authorization": signature})
    assert there.requests[-1].body == body
    assert headers["X-Ullage"] == "passed; signature"


@pytest.mark.parametrize(
    "path", ["/api/generate", "/api/embed", "/model/m/count-tokens"]
)
def test_apis_that_are_not_read_yet_pass_and_are_named_so(echo, path):
    """Ollama's API but for chat, and Bedrock's counts: byte for byte, and `X-Ullage` says why."""
    there, url = echo
    body = b'{"messages": [{"role": "user", "content": "go"}],  "model": "m"}'
    status, headers, given = ask(
        url, "POST", path, body, {"Content-Type": "application/json"}
    )
    assert (status, given, headers["X-Ullage"]) == (200, body, "passed; path")
    assert there.requests[-1].target == path


def test_a_compressed_body_and_a_compressed_reply_pass_as_they_are():
    packed = gzip.compress(b"words " * 1_000)

    async def answer(request):
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    with upstream(answer) as there, proxy(there) as url:
        headers = {"Content-Encoding": "gzip", "Accept-Encoding": "gzip, br"}
        _, told, body = ask(url, "POST", "/v1/files", packed, headers)
        assert (body, told["Content-Encoding"]) == (packed, "gzip")
        assert there.requests[0].body == packed
        assert there.requests[0].header("Accept-Encoding") == ["gzip, br"]


def test_a_body_larger_than_may_be_held_passes_as_it_comes(echo):
    there, _ = echo
    body = bytes(range(256)) * 8_192
    with proxy(there, limits=ProxyLimits(body_bytes=100_000)) as url:
        assert ask(url, "POST", "/v1/messages", body)[2] == body
    with proxy(there, limits=ProxyLimits(held_bytes=100_000)) as url:
        assert ask(url, "POST", "/v1/messages", body)[2] == body


def test_of_a_body_that_says_it_is_too_large_nothing_is_held(
    echo, monkeypatch
):
    """The memory of a worker is not for strangers to fill: it goes on part by part."""
    there, _ = echo
    held, take = [], BodyBudget.take

    def taken(budget, count):
        held.append(count)
        return take(budget, count)

    monkeypatch.setattr(BodyBudget, "take", taken)
    body = bytes(range(256)) * 8_192
    with proxy(there, limits=ProxyLimits(body_bytes=100_000)) as url:
        _, headers, given = ask(url, "POST", "/v1/messages", body)
        assert (headers["X-Ullage"], given) == ("passed; body", body)
        assert not held
        assert (
            ask(url, "POST", "/v1/messages", body[:1_000])[2] == body[:1_000]
        )
        assert sum(held) == 1_000


@pytest.mark.parametrize(("sample", "times"), [(0.0, 1), (0.5, 2)])
def test_the_credential_of_a_request_is_read_once_where_nothing_is_asked_beside_it(
    sample, times, monkeypatch
):
    """And once more, however often it is asked for, where something is."""
    reads, read = [], tenants.credentials_of

    def counted(*arguments):
        reads.append(arguments[0])
        return read(*arguments)

    monkeypatch.setattr(tenants, "credentials_of", counted)
    body = b'{"model": "gpt-4.1", "messages": [{"role": "user", "content": "Go."}]}'

    async def answer(request):
        return web.json_response({"choices": []})

    settings = {"tenant": None, "count_sample": sample}
    with upstream(answer) as there, proxy(there, **settings) as url:
        ask(url, "POST", "/v1/chat/completions", body)
    assert len(reads) == times


def test_a_chunked_body_passes(echo):
    there, url = echo
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    with talking(
        url, _post("Transfer-Encoding: chunked", "Connection: close") + chunks
    ) as raw:
        assert all_of(raw).endswith(b"hello world")
    assert there.requests[-1].body == b"hello world"


def test_a_client_that_waits_to_be_told_to_go_on_is_told(echo):
    _, url = echo
    asked = _post(
        "Content-Length: 5", "Expect: 100-continue", "Connection: close"
    )
    with talking(url, asked) as raw:
        assert raw.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(b"hello")
        assert all_of(raw).endswith(b"hello")


def test_the_upstreams_errors_are_the_clients():
    async def answer(request):
        headers = {"retry-after": "3", "x-ratelimit-remaining": "0"}
        return web.Response(
            status=429, body=b'{"error": 1}', headers=headers, reason="Slow"
        )

    with upstream(answer) as there, proxy(there) as url:
        status, headers, body = ask(url, "POST", "/v1/messages", b"{}")
        assert (status, body) == (429, b'{"error": 1}')
        assert (headers["retry-after"], headers["x-ratelimit-remaining"]) == (
            "3",
            "0",
        )
        assert len(there.requests) == 1, "nothing is tried twice"


def test_redirects_and_cookies_are_the_clients_to_follow_and_keep():
    async def answer(request):
        headers = {"Location": "/elsewhere", "Set-Cookie": "a=1"}
        return web.Response(status=307, headers=headers)

    with upstream(answer) as there, proxy(there) as url:
        for _ in range(2):
            status, headers, _ = ask(url, "GET", "/v1/x")
            assert (status, headers["Location"], headers["Set-Cookie"]) == (
                307,
                "/elsewhere",
                "a=1",
            )
        assert [each.header("Cookie") for each in there.requests] == [[], []]


def test_events_come_as_they_are_sent_and_not_at_the_end():
    said = threading.Event()

    async def answer(request):
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream"}
        )
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        while not said.is_set():
            await _sleep()
        await response.write(b"data: 2\n\n")
        await response.write_eof()
        return response

    with (
        upstream(answer) as there,
        proxy(there) as url,
        talking(url, GET) as raw,
    ):
        first = raw.recv(65_536)
        while b"data: 1" not in first:
            first += raw.recv(65_536)
        said.set()
        assert b"data: 2" in raw.recv(65_536)


def test_a_client_that_goes_away_cancels_the_upstream():
    began = threading.Event()

    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        began.set()
        while True:
            await response.write(b"more")
            await _sleep()

    with upstream(answer) as there, proxy(there) as url:
        with talking(url, GET):
            assert began.wait(10)
        assert there.gone.wait(10)


def test_a_client_that_goes_away_before_the_reply_began_cancels_it_too():
    began = threading.Event()

    async def answer(request):
        began.set()
        while True:
            await _sleep()

    with upstream(answer) as there, proxy(there) as url:
        with talking(url, _post("Content-Length: 2") + b"{}"):
            assert began.wait(10)
        assert there.gone.wait(10)


def test_a_reply_that_breaks_off_does_not_look_whole():
    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        await _sleep()
        request.transport.abort()
        return response

    with (
        upstream(answer) as there,
        proxy(there) as url,
        talking(url, GET) as raw,
    ):
        came = b""
        with suppress(ConnectionResetError):
            while part := raw.recv(65_536):
                came += part
    assert b"half" in came
    assert not came.endswith(b"0\r\n\r\n")


def test_an_upstream_that_is_not_there_is_told_in_a_form_that_clients_read():
    with upstream() as there:
        pass
    with proxy(there) as url:
        status, headers, body = ask(url, "POST", "/v1/messages", b"{}")
    assert (status, headers["X-Ullage"]) == (502, "error")
    assert b"'anthropic' could not be reached" in body
    assert b'"type":"error"' in body


def test_an_upstream_that_hangs_up_before_its_reply_was_reached():
    async def hang_up(request):
        request.transport.abort()
        return web.Response()

    told = []
    with upstream(hang_up) as there, proxy(there, told.append) as url:
        status, headers, body = ask(url, "POST", "/v1/messages", b"{}")
        until(lambda: told)
    assert (status, headers["X-Ullage"]) == (502, "error")
    assert b"closed the connection before its reply began" in body
    assert b"Is its URL right" not in body
    assert line_of(told[0])["status"] == 502


def test_a_client_that_falls_silent_in_its_request_is_let_go(echo):
    there, _ = echo
    asked = _post("Content-Length: 9") + b"half"
    with (
        proxy(there, limits=ProxyLimits(idle_s=0.1)) as url,
        talking(url, asked) as raw,
    ):
        assert raw.recv(65_536).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_takes_nothing_is_let_go_and_the_upstream_cancelled():
    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1 << 20))

    limits = ProxyLimits(idle_s=0.2)
    with (
        upstream(answer) as there,
        proxy(there, limits=limits) as url,
        talking(url, GET),
    ):
        assert there.gone.wait(10)


def test_more_requests_than_are_allowed_are_told_to_come_again():
    let = threading.Event()

    async def answer(request):
        while not let.is_set():
            await _sleep()
        return web.Response(body=b"done")

    with (
        upstream(answer) as there,
        proxy(there, limits=ProxyLimits(exchanges=1)) as url,
    ):
        first = threading.Thread(target=ask, args=(url, "GET", "/v1/x"))
        first.start()
        while not there.requests:
            time.sleep(0.01)
        status, headers, _ = ask(url, "GET", "/v1/x")
        let.set()
        first.join()
        assert (status, headers["Retry-After"]) == (503, "1")
        assert ask(url, "GET", "/v1/x")[2] == b"done"


@pytest.mark.parametrize(
    "target", [b"http://elsewhere.example/v1/messages", b"*"]
)
def test_a_request_never_names_the_host(echo, target):
    there, url = echo
    before = len(there.requests)
    asked = (
        b"OPTIONS "
        + target
        + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    with talking(url, asked) as raw:
        assert raw.recv(65_536).startswith(b"HTTP/1.1 400 ")
    assert len(there.requests) == before


def test_a_websocket_is_told_to_use_http(echo):
    _, url = echo
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
    }
    assert ask(url, "GET", "/v1/responses", headers=headers)[0] == 426


def _post(*headers):
    """The head of a request."""
    return "\r\n".join(
        ("POST /v1/x HTTP/1.1", "Host: x", *headers, "", "")
    ).encode()


async def _sleep():
    await asyncio.sleep(0.01)
