"""A sample of requests is counted by the provider itself: beside the requests, for nobody else."""

import asyncio
import json
import threading
from contextlib import closing

import pytest
from aiohttp import web

from tests.proxy.upstream import ask, proxy, upstream
from tests.session.provider import CLAUDE, read_call
from ullage import ConfigError, SqliteStore
from ullage.core.values.receipts import ReceiptTotals, summed
from ullage.doors.proxy import counting
from ullage.doors.proxy.config import Config

KEY = "sk-ant-key-of-a-client-0123456789"
PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
LOG = "a line of a log that says that all is well\n" * 6_000


def message(tokens, number):
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE,
        "content": [{"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": tokens, "output_tokens": 5},
    }


class Provider:
    """Answers, and counts what it is asked to, four characters a token."""

    def __init__(self, status=200):
        self.status, self.asked = status, threading.Event()
        self.bodies, self.answers = [], 0

    async def __call__(self, request):
        body = json.loads(await request.read())
        tokens = len(json.dumps(body["messages"])) // 4
        if request.path == COUNT:
            self.bodies.append((body, request.headers.get("x-api-key")))
            self.asked.set()
            return web.json_response(
                {"input_tokens": tokens}, status=self.status
            )
        self.answers += 1
        return web.json_response(message(tokens, self.answers))


def conversation(turns):
    result = {"type": "tool_result", "tool_use_id": "t0", "content": LOG}
    messages = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [read_call(0)]},
        {"role": "user", "content": [result]},
    ]
    for _ in range(turns):
        messages.append({"role": "assistant", "content": "All is well."})
        messages.append({"role": "user", "content": "And now?"})
    return messages


def send(url, messages):
    request = {
        "model": CLAUDE,
        "max_tokens": 99,
        "metadata": {"user_id": "u"},
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "messages": messages,
    }
    headers = [("x-api-key", KEY), ("content-type", "application/json")]
    status, _, body = ask(
        url, "POST", PATH, json.dumps(request).encode(), headers
    )
    return status, json.loads(body)


def talk(provider, path, share=1.0, turns=4):
    """A conversation through a proxy; the sums of its receipts."""
    with upstream(provider) as there:
        settings = {"store": str(path), "count_sample": share}
        with proxy(there, policy="continuation", **settings) as url:
            for turn in range(turns):
                status, answer = send(url, conversation(turn))
                assert (status, answer["content"][0]["text"]) == (200, "Yes.")
                if share and provider.status == 200:
                    assert provider.asked.wait(20)
    with closing(SqliteStore(path)) as store:
        return summed(store.receipts()).get((), ReceiptTotals())


def test_the_provider_counts_what_came_and_receipts_hold_both(tmp_path):
    provider = Provider()
    sums = talk(provider, tmp_path / "kept.db")
    assert provider.bodies
    for body, key in provider.bodies:
        assert key == KEY, "it is the client's own credential"
        assert set(body) == {"model", "messages", "tools"}
        assert body["messages"][2]["content"][0]["content"] == LOG
    assert 1 <= sums.counted <= len(provider.bodies)
    assert sums.counted_tokens > 60_000 * sums.counted
    apart = sums.counted_raw_tokens / sums.counted_tokens
    assert apart == pytest.approx(1, abs=0.5)
    assert sums.raw.prompt > 2 * sums.sent.prompt


def test_nothing_is_asked_that_is_not_configured(tmp_path):
    provider = Provider()
    sums = talk(provider, tmp_path / "kept.db", share=0.0)
    assert provider.bodies == []
    assert (sums.counted, sums.requests) == (0, 4)


def test_an_endpoint_that_refuses_is_left_alone_and_no_request_feels_it(
    tmp_path,
):
    provider = Provider(status=404)
    sums = talk(provider, tmp_path / "kept.db", turns=6)
    assert len(provider.bodies) <= 1
    assert (sums.counted, sums.requests) == (0, 6)


def test_a_worker_asks_one_question_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "_TIMEOUT_S", 0.3)
    hold = threading.Event()

    class Slow(Provider):
        async def __call__(self, request):
            if request.path == COUNT:
                self.bodies.append(None)
                while not hold.is_set():  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.01)
            return await super().__call__(request)

    provider = Slow(status=404)
    try:
        sums = talk(provider, tmp_path / "kept.db", turns=6)
    finally:
        hold.set()
    assert len(provider.bodies) <= 2
    assert sums.requests == 6


def test_a_share_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"2\.0 is no share"):
        Config(count_sample=2.0)
