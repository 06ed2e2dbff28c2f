"""A prompt cache is kept from expiring where that pays, and never beside or behind a client."""

import asyncio
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tests.proxy.upstream import ask, proxy, until, upstream
from ullage import Usage
from ullage.core.errors import ConfigError
from ullage.doors.proxy import keepalive
from ullage.doors.proxy.cache_worth import chance_of, worth_of
from ullage.doors.proxy.config import Config, KeepAliveSettings, config_of
from ullage.doors.proxy.keepalive import KEPT_ALIVE
from ullage.doors.proxy.pages import Pages
from ullage.doors.proxy.siblings import ALONE
from ullage.stores import SqliteStore
from ullage.wires import WIRES, wire_named
from ullage.wires.anthropic import http as anthropic_http

MODEL = "claude-opus-4-8"
PATH = "/v1/messages"
LIFE_S = 2.5
CACHED = 60_000
_IDS = count()
RELEASED = threading.Event()


def request(name, **fields):
    """A request of a conversation, with a marker at its end."""
    block = {"type": "text", "text": f"I am {name}."}
    block["cache_control"] = {"type": "ephemeral"}
    return {
        "model": MODEL,
        "max_tokens": 500,
        "stream": False,
        "messages": [{"role": "user", "content": [block]}],
        **fields,
    }


async def answers(request):
    body = json.loads(await request.read())
    text = json.dumps(body)
    if "refused" in text and body["max_tokens"] == 501:
        return web.json_response({"type": "error", "error": {}}, status=401)
    if "gone" in text and body["max_tokens"] == 501:
        await asyncio.sleep(30)
    while "in flight" in text and not RELEASED.is_set():
        if body["max_tokens"] != 501:
            break
        await asyncio.sleep(0.01)
    usage = {"input_tokens": 10, "output_tokens": 1}
    usage["cache_read_input_tokens"] = CACHED
    return web.json_response(
        {
            "id": f"msg_{next(_IDS)}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": "Yes."}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
    )


def send(url, body, **headers):
    head = {"x-api-key": f"key-of-{body['messages'][0]['content'][0]['text']}"}
    head |= {"Content-Type": "application/json", **headers}
    return ask(url, "POST", PATH, json.dumps(body).encode(), head)


@pytest.fixture
def short_lives(monkeypatch):
    """Caches that live some seconds; with any experience, every second pause ends in time."""
    RELEASED.clear()
    monkeypatch.setattr(
        keepalive, "chance_of", lambda gaps_s, *_: 0.5 if gaps_s else 0.0
    )
    monkeypatch.setattr(anthropic_http, "LIFE_S", LIFE_S)
    monkeypatch.setattr(anthropic_http, "LONG_LIFE_S", 20 * LIFE_S)
    monkeypatch.setattr(anthropic_http.AnthropicHttp, "cache_life_s", LIFE_S)


BAD = {
    "a one-shot client": {"Connection": "close"},
    "refused": {},
    "gone": {},
    "thinking": {},
    "without experience": {},
    "in flight": {},
    "long lived": {},
}


def fields_of(name):
    if name == "thinking":
        thinking = {"type": "enabled", "budget_tokens": 400}
        return {"thinking": thinking}
    return {}


def hang_up(url, body):
    """Send a request, and go away before there is a reply."""
    host, port = urlsplit(url).netloc.split(":")
    data = json.dumps(body).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nx-api-key: key-of-gone\r\n"
    )
    head += "Content-Type: application/json\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(head.encode() + data)
        time.sleep(0.1)


def kept_alive(there):
    """The requests for one token that came in."""
    bodies = [json.loads(captured.body) for captured in there.requests]
    return [body for body in bodies if body["max_tokens"] == 1]


@contextmanager
def released():
    """Whatever happens in the block, what is in flight is answered at its end."""
    try:
        yield
    finally:
        RELEASED.set()


def test_it_is_read_again_where_that_pays_and_told_with_its_price(
    short_lives, tmp_path
):
    good, store = request("good"), f"{tmp_path}/kept.db"
    settings = {"store": store, "keepalive": KeepAliveSettings(most=1)}
    with (
        upstream(answers) as there,
        upstream(answers) as other,
        proxy(there, **settings) as url,
        proxy(other) as plain_url,
        ThreadPoolExecutor() as threads,
        released(),
    ):
        for name in (*BAD, "good"):
            if name != "without experience":
                send(url, request(name, **fields_of(name)))
        for name, headers in BAD.items():
            body = request(name, max_tokens=501, **fields_of(name))
            if name == "long lived":
                marker = {"type": "ephemeral", "ttl": "1h"}
                body["messages"][0]["content"][0]["cache_control"] = marker
            if name == "gone":
                hang_up(url, body)
            elif name == "in flight":
                send(url, request(name))
                threads.submit(send, url, body)
            else:
                send(url, body, **headers)
        send(url, good)
        for _ in "12":
            send(plain_url, good)
        until(lambda: kept_alive(there))
        (again,) = kept_alive(there)
        same = {key: value for key, value in good.items() if key != "stream"}
        assert again == {**same, "max_tokens": 1}
        (captured,) = [
            item for item in there.requests if json.loads(item.body) == again
        ]
        assert captured.header("x-api-key") == ["key-of-I am good."]
        until(lambda: b"kept_alive" in ask(url, path="/_ullage/state")[2])
        assert b"cost $0.03" in ask(url, path="/_ullage/state")[2]
        metrics = ask(url, path="/_ullage/metrics")[2]
        assert b"ullage_keepalive_requests_total 1" in metrics
        time.sleep(LIFE_S * 1.2)
        assert len(kept_alive(there)) == 1  # as often as it may be
        assert not kept_alive(other)  # off by default
    (row,) = [
        receipt
        for receipt in SqliteStore(store).receipts()
        if receipt.key.client == KEPT_ALIVE
    ]
    assert row.sums.sent_usd > row.sums.raw_usd == 0


@pytest.mark.parametrize(
    ("gaps_s", "waited_s", "chance"),
    [
        ([], 270, 0),  # the first pause of a conversation
        ([400.0], 270, 1 / 2),
        ([10.0, 20.0, 30.0], 270, 0),  # it never paused so long
        ([400.0, 500.0, 4_000.0], 270, 2 / 4),  # one of three was longer
        ([400.0, 500.0, 4_000.0], 3_900, 1 / 2),
    ],
)
def test_the_chance_is_that_of_the_pauses_of_this_conversation(
    gaps_s, waited_s, chance
):
    assert chance_of(gaps_s, waited_s, 300.0) == chance


def test_it_pays_where_the_price_of_writing_is_more_than_that_of_asking():
    usage = Usage(fresh_tokens=10, cache_read_tokens=CACHED)

    def worth(chance, model=MODEL, used=usage, *, is_long=False):
        return worth_of(used, model, is_long=is_long, chance=chance)

    # Opus 4.8: $5 a million, to read the cache a tenth, to write it five quarters
    assert worth(0.5).cost_usd == pytest.approx(0.030, abs=1e-3)
    assert worth(0.5).saved_usd == pytest.approx(0.345, abs=1e-3)
    assert [worth(share).pays for share in (0, 0.05, 0.1, 1)] == [
        *(False, False),
        *(True, True),
    ]
    assert worth(1, is_long=True).saved_usd > worth(1).saved_usd
    whole = Usage(fresh_tokens=500_000, cache_read_tokens=2_000)
    assert not worth(1, used=whole).pays  # most of it is not in the cache
    assert worth(1, model="no-such-model") is None
    assert worth(1, used=Usage(fresh_tokens=10)) is None
    assert "50%" in worth(0.5).words


def test_a_request_for_one_token_holds_the_same_prompt():
    http = wire_named("anthropic").http
    body = request("x", stream=True, system=[{"type": "text", "text": "s"}])
    refresh = http.refresh(body)
    assert refresh.lives_s == 300
    assert not refresh.is_long
    body.pop("stream")
    assert refresh.body == {**body, "max_tokens": 1}
    marker = {"type": "ephemeral", "ttl": "1h"}
    body["messages"][0]["content"][0]["cache_control"] = marker
    assert http.refresh(body).lives_s == 3_600
    assert http.refresh(body).is_long
    body["cache_control"] = {"type": "ephemeral"}  # the shorter of both
    assert http.refresh(body).lives_s == 300
    thinks = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
    assert http.refresh({**body, **thinks}) is None
    assert http.refresh({"messages": "x", "tools": 1, "system": [1]}) is None


def test_other_wires_have_no_cache_that_lives_on_when_it_is_read():
    for wire in WIRES:
        http = wire_named(wire.name).http
        is_known = http.cache_life_s is not None
        assert is_known == (wire.name == "anthropic")
        assert is_known or http.refresh({"messages": []}) is None


def test_a_worker_asks_the_others_whether_they_served_the_conversation():
    used = {"theirs": 1_000.0}
    kept = SimpleNamespace(last_use_s=used.get)
    relay = SimpleNamespace(keepalive=kept, guard=None)
    pages = Pages(Config(), relay, SimpleNamespace(), ALONE)
    pages._siblings = SimpleNamespace(ask_as=asked_of(pages))
    elsewhere = pages.is_used_elsewhere
    assert asyncio.run(elsewhere("theirs", 999.0))
    assert not asyncio.run(elsewhere("theirs", 1_001.0))
    assert not asyncio.run(elsewhere("unknown", 0.0))


def asked_of(pages):
    """What the other worker answers, as it is sent over its socket."""

    async def ask_as(path, kind):
        reply = await pages.for_siblings(SimpleNamespace(path=path))
        return [json.loads(reply.body)]

    return ask_as


def test_numbers_that_cannot_be_meant_are_refused(tmp_path):
    for name in ("most", "at_once", "timeout_s"):
        with pytest.raises(ConfigError) as error:
            Config(keepalive=KeepAliveSettings(**{name: 0}))
        assert error.value.setting == f"keepalive.{name}"
    file = tmp_path / "proxy.toml"
    file.write_text("[keepalive]\nmost = 2\n")
    assert config_of(file).keepalive.most == 2
    assert config_of().keepalive is None
