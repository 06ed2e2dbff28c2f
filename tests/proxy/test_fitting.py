"""Requests with a history are fitted: those of the vendors' own SDKs, streamed or not."""

import gzip
import json
import re
import sqlite3
from contextlib import closing
from queue import SimpleQueue
from time import sleep

import pytest
from aiohttp import web

from tests.proxy.upstream import ask, proxy, settle, talking, upstream
from tests.servers import Call, Refusal, Reply
from tests.servers.behind import behind
from tests.servers.loops import loop, request, user
from ullage import SqliteStore
from ullage.core.values.receipts import summed
from ullage.doors.exchange import ExchangeReport, Exchanges
from ullage.doors.proxy.config import ProxyLimits
from ullage.doors.proxy.relayed import (
    Relayed,
    cost_in_usd,
    raw_cost_in_usd,
    raw_tokens,
    treatment_of,
)
from ullage.stores import receipts_of
from ullage.wires import FORMATS

WIRES = sorted(FORMATS)
LOG = "\n".join(
    f"{n:05} worker {n % 7} took {n * 37 % 1000} ms for task {n}"
    for n in range(4_000)
)
CUTS_ALWAYS = "continuation"
"""The preset that cuts a large result whether its request has tools or not."""
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}


def calls(times):
    """A script: so many calls of a tool, then the end."""
    return [
        *(
            Reply("", [Call("read_file", {"path": f"{n}.log"})])
            for n in range(times)
        ),
        "Done.",
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_an_agent_of_any_sdk_is_fitted_and_knows_nothing_of_it(
    serve, wire, stream
):
    server = serve(wire, calls(3), strict=True)
    with proxy(server) as url:
        messages = loop(
            behind(server, url, stream=stream), None, lambda *_: LOG
        )
    assert len(server.requests) == 4
    assert (
        len(server.requests[-1].raw)
        < len(LOG)
        < sum(map(len, map(str, messages))) / 2.5
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_what_it_would_have_cost_is_told_as_the_receipts_have_it(
    serve, tmp_path, wire, stream
):
    server, seen = serve(wire, calls(3), strict=True), []
    with proxy(server, seen.append, store=f"{tmp_path}/kept.db") as url:
        loop(behind(server, url, stream=stream), None, lambda *_: LOG)
    assert len(seen) == 4
    with closing(SqliteStore(tmp_path / "kept.db")) as store:
        sums = summed(receipts_of(store).receipts())[()]
    assert sums.saved_usd > 0
    raw, cost = map(raw_cost_in_usd, seen), map(cost_in_usd, seen)
    assert sum(raw) == pytest.approx(sums.raw_usd)
    assert sum(cost) == pytest.approx(sums.sent_usd)


def test_a_conversation_that_is_held_out_is_marked():
    seen = []
    with upstream() as there, proxy(there, seen.append, holdout=1.0) as url:
        path = "/v1/chat/completions"
        headers = ask(url, "POST", path, long_chat())[1]
        settle(url)
        state = json.loads(ask(url, path="/_ullage/state")[2])
    assert headers["X-Ullage"] == "unchanged; held-out"
    assert seen[0].report.is_held_out
    assert state["conversations"][0]["is_held_out"]
    assert state["totals"]["held_out"] == 1


def chat(*messages):
    return json.dumps(
        {"model": "gpt-4.1", "messages": [user("openai-chat"), *messages]}
    ).encode()


def long_chat(length=1):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read", "arguments": "{}"},
    }
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return chat(
        said, {"role": "tool", "tool_call_id": "c", "content": LOG * length}
    )


def test_what_was_done_is_told_in_a_header_of_the_reply():
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        path = "/v1/chat/completions"
        assert ask(url, "POST", path, long_chat())[1]["X-Ullage"] == "fitted"
        assert ask(url, "POST", path, chat())[1]["X-Ullage"] == "unchanged"
        assert ask(url, "POST", path, b"[1]")[1]["X-Ullage"] == "passed; body"
        assert (
            ask(url, "POST", "/v1/embeddings", b"{}")[1]["X-Ullage"]
            == "passed; path"
        )
        headers = {"X-Ullage": "off"}
        assert (
            ask(url, "POST", path, long_chat(), headers)[1]["X-Ullage"]
            == "passed; asked"
        )
        fitted, as_it_was = there.requests[0].body, there.requests[-1].body
        assert len(fitted) < len(as_it_was) / 2
        assert as_it_was == long_chat()


ODD = [
    b"",
    b"\xef\xbb\xbf{}",
    b'{"model": "gpt-4.1", "messages": "none"}',
    b'{"model": "gpt-4.1", "messages": [{"role": "user", "content": "\\ud800"}], "x": 1e400}',
    b'{"model": "gpt-4.1", "messages": [{"role": "user", "content": NaN}]}',
    b'{"model": "gpt-4.1", "model": "gpt-5", "messages": []}',
    b"[" * 100_000,
    b"\xff\xfe\x00",
]


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_odd_bodies_pass_as_they_are(body):
    with upstream() as there, proxy(there) as url:
        for path in PATHS.values():
            ask(url, "POST", path, body)
            assert there.requests[-1].body == body


def test_a_compressed_request_is_fitted_and_goes_on_plain_and_an_unknown_one_as_it_is():
    with upstream() as there, proxy(there, policy=CUTS_ALWAYS) as url:
        packed, headers = (
            gzip.compress(long_chat()),
            {"Content-Encoding": "gzip"},
        )
        done = ask(url, "POST", "/v1/chat/completions", packed, headers)
        assert done[1]["X-Ullage"] == "fitted"
        assert there.requests[0].header("Content-Encoding") == []
        assert json.loads(there.requests[0].body)["model"] == "gpt-4.1"
        small = gzip.compress(chat())
        ask(url, "POST", "/v1/chat/completions", small, headers)
        assert there.requests[1].body == small
        assert there.requests[1].header("Content-Encoding") == ["gzip"]
        headers = {"Content-Encoding": "br"}
        assert (
            ask(url, "POST", "/v1/chat/completions", b"x", headers)[2] == b"x"
        )


def test_a_dry_run_counts_and_sends_what_came():
    told_of = []
    with (
        upstream() as there,
        proxy(there, told_of.append, policy=CUTS_ALWAYS, dry_run=True) as url,
    ):
        done = ask(url, "POST", "/v1/chat/completions", long_chat())
        assert (done[1]["X-Ullage"], there.requests[0].body) == (
            "dry-run",
            long_chat(),
        )
    (relayed,) = told_of
    assert relayed.is_dry
    assert relayed.report.view_tokens < 20_000
    assert relayed.report.events


def test_what_a_provider_calls_too_long_is_sent_once_more_and_shorter(serve):
    answers = [Reply("", [Call("read_file")]), "Done."]
    server = serve("anthropic", answers, limit_tokens=1_200)
    with proxy(server) as url:
        loop(behind(server, url), None, lambda *_: LOG[:8_000])
    statuses = [len(each.raw) for each in server.requests]
    assert len(statuses) == 3
    assert statuses[2] < statuses[1]


def test_a_client_that_hangs_up_once_it_has_its_reply_leaves_nothing_undone(
    tmp_path,
):
    """Its handler is cancelled while what the reply reported waits for another process to write."""
    file, told_of = tmp_path / "kept.db", SimpleQueue()

    async def answer(_):
        usage = {"prompt_tokens": 9_000, "completion_tokens": 1}
        said = {"role": "assistant", "content": "Done."}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        elsewhere.execute("BEGIN IMMEDIATE")
        return web.json_response(
            {"id": "c", "choices": [choice], "usage": usage}
        )

    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(chat())}\r\n"
    with (
        upstream(answer) as there,
        proxy(there, told_of.put, store=str(file)) as url,
        closing(
            sqlite3.connect(
                file, isolation_level=None, check_same_thread=False
            )
        ) as elsewhere,
    ):
        with talking(url, f"{head}\r\n".encode() + chat()) as client:
            assert client.recv(1 << 16)
        sleep(0.2)  # for the loop to hear of it
        assert told_of.empty()
        elsewhere.execute("ROLLBACK")
        report = told_of.get(timeout=10).report
        assert (report.status, report.usage.output_tokens) == (200, 1)
        kinds = [
            kind for (kind,) in elsewhere.execute("SELECT kind FROM records")
        ]
    assert "observed" in kinds


def test_a_refusal_is_the_clients_to_see(serve):
    refusal = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "busy"},
    }
    server = serve("anthropic", [Refusal(529, refusal)])
    with proxy(server) as url:
        body = json.dumps(request("anthropic", [user("anthropic")])).encode()
        status, _, answer = ask(url, "POST", "/v1/messages", body)
    assert (status, json.loads(answer)) == (529, refusal)


def test_a_mistake_of_ours_sends_what_came_and_says_so(monkeypatch):
    def broken(*_, **__):
        raise AssertionError("ours")

    monkeypatch.setattr(Exchanges, "session", broken)
    with upstream() as there, proxy(there) as url:
        done = ask(url, "POST", "/v1/chat/completions", long_chat())
        assert (done[1]["X-Ullage"], done[2]) == ("passed; error", long_chat())


def test_so_does_one_that_no_exchange_survives(monkeypatch):
    monkeypatch.setattr(Exchanges, "of", None)
    with upstream() as there, proxy(there) as url:
        done = ask(url, "POST", "/v1/chat/completions", long_chat())
        assert (done[1]["X-Ullage"], done[2]) == ("passed; error", long_chat())


def test_conversations_of_two_credentials_are_kept_apart(tmp_path):
    told_of = []
    settings = {
        "tenant": None,
        "store": str(tmp_path / "kept.db"),
        "policy": CUTS_ALWAYS,
    }
    with upstream() as there, proxy(there, told_of.append, **settings) as url:
        for key in ("one", "two", "one"):
            headers = {"Authorization": f"Bearer {key}"}
            ask(url, "POST", "/v1/chat/completions", long_chat(), headers)
    assert all(each.report.is_changed for each in told_of)
    tenants = [each.tenant for each in told_of]
    conversations = [each.report.conversation for each in told_of]
    assert tenants[0] == tenants[2] != tenants[1]
    assert conversations[0] == conversations[2] != conversations[1]
    assert b"Bearer" not in (tmp_path / "kept.db").read_bytes()


def test_a_long_body_that_may_not_be_held_passes_and_is_counted():
    told_of = []
    with (
        upstream() as there,
        proxy(
            there, told_of.append, limits=ProxyLimits(body_bytes=1_000)
        ) as url,
    ):
        done = ask(url, "POST", "/v1/chat/completions", long_chat())
    assert (done[1]["X-Ullage"], done[2]) == ("passed; body", long_chat())
    assert told_of[0].report.passed == "body"


def test_sizes_before_are_reckoned_from_bytes():
    report = ExchangeReport(path="/x", view_tokens=100, is_changed=True)
    relayed = Relayed(
        report=report, upstream="x", came_bytes=1_000, sent_bytes=400
    )
    assert raw_tokens(relayed) == 250
    assert treatment_of(None, is_changed=False) == "unchanged"


def test_an_answer_by_a_tool_that_the_operator_named_is_whole():
    answer = "a line of what the user pasted as an answer\n" * 400
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "ask_desk", "arguments": "{}"},
    }
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    tool = {
        "type": "function",
        "function": {"name": "ask_desk", "parameters": {}},
    }
    first = {"role": "user", "content": "Ask before you go on."}
    head = {"model": "gpt-4.1", "tools": [tool]}
    begun = json.dumps({**head, "messages": [first]}).encode()
    answered = [
        first,
        asked,
        {"role": "tool", "tool_call_id": "c1", "content": answer},
    ]
    body = json.dumps({**head, "messages": answered}).encode()
    for user_tools, is_whole in ((["ask_desk"], True), ([], False)):
        with upstream() as there, proxy(there, user_tools=user_tools) as url:
            ask(url, "POST", "/v1/chat/completions", begun)
            ask(url, "POST", "/v1/chat/completions", body)
            sent = json.loads(there.requests[-1].body)["messages"][-1][
                "content"
            ]
            assert (sent == answer) is is_whole


@pytest.mark.parametrize("redact", [False, True])
def test_keys_are_kept_only_where_the_setting_lets_them(tmp_path, redact):
    secret = "sk-ant-api03-" + "aB3dE5fG7h" * 5
    asked = long_chat().replace(
        b"00001 worker", f"00001 {secret} worker".encode()
    )
    store = tmp_path / "kept.db"
    with upstream() as there:
        options = {
            "policy": CUTS_ALWAYS,
            "store": str(store),
            "redact": redact,
        }
        with proxy(there, **options) as url:
            ask(url, "POST", "/v1/chat/completions", asked)
    sent = there.requests[0].body.decode()
    (ref,) = set(re.findall(r"ref=([0-9a-z]{16})", sent))
    with closing(SqliteStore(store)) as kept:
        assert (secret in kept.get("", ref).text) is not redact
    assert (secret in sent) is not redact
