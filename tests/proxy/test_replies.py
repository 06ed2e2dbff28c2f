"""Replies that are compressed, cut short or without an end: whole at the client, or an error."""

import gzip
import http.client
import json
import zlib

import pytest
from aiohttp import web

from tests.proxy.test_fitting import long_chat
from tests.proxy.upstream import ask, proxy, upstream
from ullage.doors.exchange import frames, sse
from ullage.doors.proxy import upstream as upstreams
from ullage.doors.proxy.config import ProxyLimits

CHAT = "/v1/chat/completions"
SAID = {"role": "assistant", "content": "a reply in one piece"}
REPLY = json.dumps(
    {"choices": [{"index": 0, "finish_reason": "stop", "message": SAID}]}
).encode()
CHUNK = {"choices": [{"index": 0, "delta": {"content": "a streamed reply"}}]}
EVENTS = b"data: " + json.dumps(CHUNK).encode() + b"\n\ndata: [DONE]\n\n"
SSE = "text/event-stream"


def two_parts(data):
    return gzip.compress(data[:20]) + gzip.compress(data[20:])


def answering(body, kind="application/json", encoding="gzip", status=200):
    async def answer(_):
        headers = {"Content-Type": kind, "Content-Encoding": encoding}
        return web.Response(status=status, body=body, headers=headers)

    return answer


def asked(body, kind="application/json", **room):
    """Status and body of a reply to a request that was fitted."""
    with (
        upstream(answering(body, kind)) as there,
        proxy(there, limits=ProxyLimits(**room)) as url,
    ):
        status, headers, got = ask(url, "POST", CHAT, long_chat())
        return status, headers, got


@pytest.mark.parametrize("packed", [gzip.compress, two_parts])
@pytest.mark.parametrize(
    ("plain", "kind"), [(REPLY, "application/json"), (EVENTS, SSE)]
)
def test_a_compressed_reply_comes_whole_in_however_many_parts(
    packed, plain, kind
):
    status, headers, got = asked(packed(plain), kind)
    if headers["Content-Encoding"] == "gzip":
        got = gzip.decompress(got)
    assert (status, got) == (200, plain)


@pytest.mark.parametrize(
    "broken", [lambda data: data[:-3], lambda data: data + b"garbage"]
)
def test_one_that_is_not_whole_is_an_error(broken):
    status, headers, _ = asked(broken(gzip.compress(REPLY)))
    assert (status, headers["X-Ullage"]) == (502, "error")


def test_a_stream_that_is_not_whole_is_cut_off():
    async def answer(request):
        response = web.StreamResponse(
            headers={"Content-Type": SSE, "Content-Encoding": "gzip"}
        )
        await response.prepare(request)
        await response.write(gzip.compress(EVENTS)[:-9])
        return response

    with (
        upstream(answer) as there,
        proxy(there) as url,
        pytest.raises((http.client.IncompleteRead, ConnectionError)),
    ):
        ask(url, "POST", CHAT, long_chat())


def test_a_reply_that_becomes_too_long_goes_on_as_it_came():
    bomb = gzip.compress(REPLY + b" " * (5 << 20))
    status, headers, got = asked(bomb, reply_bytes=1 << 20)
    assert (status, headers["Content-Encoding"], got) == (200, "gzip", bomb)


def test_so_does_an_error_that_does():
    body = b"too long" * 100_000
    with (
        upstream(answering(body, encoding="identity", status=400)) as there,
        proxy(there, limits=ProxyLimits(reply_bytes=10_000)) as url,
    ):
        status, _, got = ask(url, "POST", CHAT, long_chat())
    assert (status, got) == (400, body)
    assert len(there.requests) == 1


def test_a_stream_without_the_end_of_an_event_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(sse, "MOST_EVENT_BYTES", 100_000)

    async def answer(request):
        response = web.StreamResponse(headers={"Content-Type": SSE})
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"data: " + b"x" * 10_000)
        return response

    with upstream(answer) as there, proxy(there) as url:
        status, _, got = ask(url, "POST", CHAT, long_chat())
    assert status == 200
    assert "error" in json.loads(got.removeprefix(b"data: "))
    assert frames.MOST_EVENT_BYTES == 64 << 20


def test_a_stream_without_an_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(upstreams, "_STREAM_BYTES", 100_000)

    async def answer(request):
        response = web.StreamResponse(headers={"Content-Type": SSE})
        await response.prepare(request)
        while True:
            await response.write(b": nothing\n\n" * 1_000)

    with (
        upstream(answer) as there,
        proxy(there) as url,
        pytest.raises((http.client.IncompleteRead, ConnectionError)),
    ):
        ask(url, "POST", CHAT, long_chat())


def test_what_passes_goes_on_compressed_as_it_came():
    packed = zlib.compress(REPLY)[:-2]
    with (
        upstream(answering(packed, encoding="deflate")) as there,
        proxy(there) as url,
    ):
        assert ask(url, path="/v1/models")[2] == packed
