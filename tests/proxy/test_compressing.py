"""A gateway asks for a shorter request and sends it itself: one process, every wire."""

import hashlib
import json

import pytest

from tests.proxy.test_fitting import (
    CUTS_ALWAYS,
    LOG,
    PATHS,
    calls,
    chat,
    long_chat,
)
from tests.proxy.upstream import ask, proxy, until, upstream
from tests.servers.loops import loop, request, user
from ullage.core.errors import FormatError
from ullage.doors.proxy.compressing import read_request
from ullage.doors.proxy.config import AccessSettings, ProxyLimits
from ullage.wires import FORMATS

COMPRESS, RECALL = "/_ullage/v1/compress", "/_ullage/v1/recall"
JSON = {"Content-Type": "application/json"}
TOOL = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object"}},
}
PATH_OF = {
    **PATHS,
    "ollama": "/api/chat",
    "gemini": "/v1beta/models/gemini-2.5-pro:generateContent",
    "bedrock-converse": "/anthropic/model/anthropic.claude-opus-4-8/converse",
}


def send(url, body, path=COMPRESS, **headers):
    """Status, headers and JSON of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, head, answer = ask(url, "POST", path, data, {**JSON, **headers})
    return status, head, json.loads(answer)


def long_request(**fields):
    return {**json.loads(long_chat()), "tools": [TOOL], **fields}


@pytest.fixture(scope="module")
def there():
    with upstream() as there:
        yield there


@pytest.fixture(scope="module")
def url(there):
    with proxy(there, policy=CUTS_ALWAYS) as url:
        yield url


@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_what_comes_back_is_what_the_proxy_would_have_sent(serve, there, wire):
    server = serve(wire, calls(2))
    loop(server, None, lambda *_: LOG)
    body = json.loads(server.requests[-1].raw)
    key = FORMATS[wire].key
    with proxy(there, policy=CUTS_ALWAYS) as url:
        ask(url, "POST", PATH_OF[wire], json.dumps(body).encode(), JSON)
    # the proxy may have asked meanwhile what the server's window is
    sent = next(
        json.loads(request.body)
        for request in reversed(there.requests)
        if PATH_OF[wire].endswith(request.target)
    )
    model = {} if body.get("model") else {"model": "gemini-2.5-pro"}
    if wire == "bedrock-converse":
        model = {"modelId": "anthropic.claude-opus-4-8"}
    with proxy(there, policy=CUTS_ALWAYS) as url:
        asked = {**body, **model, "format": wire, "recall": True}
        status, _, answer = send(url, asked)
    assert status == 200
    assert answer[key] == sent[key] != body[key]
    tools = "toolConfig" if wire == "bedrock-converse" else "tools"
    assert answer[tools] == sent[tools] != body[tools]
    assert answer["tokens_before"] > 2.5 * answer["tokens_after"] > 0


def test_nothing_goes_to_an_upstream(there, url):
    before = len(there.requests)
    assert send(url, long_request())[0] == 200
    assert len(there.requests) == before


def test_messages_and_a_model_are_enough_and_a_second_time_gives_the_same(url):
    told = json.loads(long_chat(2))
    asked = {name: told[name] for name in ("messages", "model")}
    answers = [send(url, {**asked, "config": {"mode": "x"}}) for _ in "ab"]
    (_, head, once), (_, _, twice) = answers
    assert head["X-Ullage"] == once["done"] == "fitted"
    assert once["messages"] == twice["messages"] != asked["messages"]
    assert "tools" not in once
    assert once["tokens_saved"] == once["tokens_before"] - once["tokens_after"]
    assert "truncated" in once["transforms_applied"]
    assert "truncated" not in twice["transforms_applied"]


def test_a_short_request_comes_back_as_it_is(url):
    asked = json.loads(chat())
    _, _, answer = send(url, asked)
    assert (answer["done"], answer["tokens_saved"]) == ("unchanged", 0)
    assert answer["messages"] == asked["messages"]


def test_what_left_opens_again_also_after_a_restart(there, tmp_path):
    asked = long_request(recall=True, session_id="incident 7")
    kept = {"policy": CUTS_ALWAYS, "store": f"{tmp_path}/kept.db"}
    call = {"name": "get_continuation", "arguments": {"tool_call_id": "c"}}
    with proxy(there, **kept) as url:
        _, _, shorter = send(url, asked)
        _, _, page = send(url, {**asked, "call": call}, RECALL)
    assert call["name"] in json.dumps(shorter["tools"])
    assert page["text"].startswith(LOG[4_000:4_100])
    with proxy(there, **kept) as url:
        assert send(url, {**asked, "call": call}, RECALL)[2] == page
        again = send(url, asked)[2]
        assert again["messages"] == shorter["messages"]
        other = {**json.loads(chat()), "tools": [TOOL], "recall": True}
        call["arguments"]["tool_call_id"] = "x" * 16
        _, _, answer = send(url, {**other, "call": call}, RECALL)
    assert answer["is_error"]
    assert LOG[4_000:4_100] not in answer["text"]


def test_a_credential_opens_nothing_of_anothers(there, tmp_path):
    asked = long_request(recall=True)
    with proxy(
        there, policy=CUTS_ALWAYS, tenant=None, store=f"{tmp_path}/k.db"
    ) as url:
        _, _, answer = send(url, asked, Authorization="Bearer of-ann-0123")
        text = answer["messages"][-1]["content"]
        ref = text.partition("[ref=")[2][:16]
        call = {"name": "get_continuation", "arguments": {"tool_call_id": ref}}
        other = {**json.loads(chat()), "tools": [TOOL], "recall": True}
        for name, is_error in (("ann", False), ("bob", True)):
            who = {"Authorization": f"Bearer of-{name}-0123"}
            _, _, answer = send(url, {**other, "call": call}, RECALL, **who)
            assert answer["is_error"] == is_error


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "format"),
        (b"[1]", 400, "format"),
        ({"model": "gpt-4.1"}, 400, "format"),
        ({"model": "gpt-4.1", "messages": "hello"}, 400, "format"),
        ({"model": "gpt-4.1", "messages": [1]}, 400, "format"),
        (long_request(format="smtp"), 400, "format"),
        (long_request(recall="yes"), 400, "format"),
        (long_request(session_id=["x"]), 400, "format"),
        (long_request(model="x" * 300), 400, "format"),
        (
            {
                "model": "gpt-4.1",
                "messages": [
                    {"role": "system", "content": LOG * 40},
                    user("openai-chat"),
                ],
            },
            422,
            "over_limit",
        ),
    ],
)
def test_what_cannot_be_meant_is_a_typed_error(url, body, status, code):
    code_in = send(url, body)
    assert (code_in[0], code_in[2]["error"]["code"]) == (status, code)
    assert code_in[1]["X-Ullage"] == "error"


@pytest.mark.parametrize(
    "call", [None, 1, {"name": 1}, {"name": "x", "arguments": 1}]
)
def test_a_call_that_is_none_is_refused(url, call):
    status, _, answer = send(url, long_request(recall=True, call=call), RECALL)
    assert (status, answer["error"]["code"]) == (400, "format")


def test_a_body_over_the_limit_is_refused(there):
    with proxy(there, limits=ProxyLimits(body_bytes=10_000)) as url:
        assert send(url, long_request())[0] == 413
        until(
            lambda: (
                b"held_body_bytes 0" in ask(url, path="/_ullage/metrics")[2]
            )
        )


@pytest.mark.parametrize("path", [COMPRESS, RECALL])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://page.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "text/plain"},
        {"X-Forwarded-For": "203.0.113.9"},
    ],
)
def test_a_page_or_a_reverse_proxy_gets_nothing(url, path, headers):
    assert send(url, long_request(), path, **headers)[0] == 403
    assert ask(url, "GET", path)[0] == 405


def test_behind_a_token_whoever_has_it_asks_and_nobody_else(there):
    token = "a token of a gateway"
    digest = hashlib.sha256(token.encode()).hexdigest()
    access = AccessSettings(token_sha256=digest)
    with proxy(there, access=access, pages=False) as url:
        assert send(url, long_request())[0] == 401
        headers = {"Authorization": f"Bearer {token}", "Via": "1.1 gateway"}
        assert send(url, long_request(), **headers)[0] == 200


def test_a_body_is_the_providers_but_for_the_fields_that_are_ours():
    asked = request("anthropic", [user("anthropic")])
    own = {"session_id": "", "recall": None, "config": 1, "call": None}
    wanted = read_request({**asked, **own})
    assert (wanted.request, wanted.format) == (asked, "anthropic")
    assert (wanted.session_id, wanted.recall, wanted.call) == (
        None,
        False,
        None,
    )
    with pytest.raises(FormatError):
        read_request(None)
