"""Code that runs in a container of the provider's waits there for what our rounds bring."""

import json

import pytest

from tests.exchange.scripted import SSE, Reply, ask, exchanges
from tests.servers.streams import stream_of

PATH = "/v1/messages"
CODE = {"type": "code_execution_20260120", "name": "code_execution"}
BASH = {
    "name": "bash",
    "description": "Runs.",
    "input_schema": {"type": "object"},
}
PENDING = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "code_execution",
    "input": {"code": "print(1)"},
}
RECALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "get_continuation",
    "input": {"tool_call_id": "0123456789abcdef", "offset": 1},
}
USED = {"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"}


def said(number, content, stop, **more):
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 900, "output_tokens": 5},
        **more,
    }


SCRIPT = [
    said(1, [PENDING, RECALL], "tool_use", container=USED),
    said(2, [RECALL], "tool_use"),
    said(3, [{"type": "text", "text": "Done."}], "end_turn"),
]


def replies(stream):
    if not stream:
        return [Reply(body) for body in SCRIPT]
    streams = []
    for body in SCRIPT:
        raw = stream_of("anthropic", body, {}).decode()
        if "container" in body:
            delta = json.dumps({"container": USED})[1:-1]
            raw = raw.replace(
                '"delta": {"stop_reason"', f'"delta": {{{delta}, "stop_reason"'
            )
            assert "container_1" in raw
        streams.append(Reply(raw.encode(), content_type=SSE))
    return streams


def played(stream, **more):
    request = {
        "model": "claude-opus-4-8",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [CODE, BASH],
        "stream": stream,
        **more,
    }
    _, answer, upstream = ask(exchanges()[0], PATH, request, *replies(stream))
    return answer.decode(), [
        json.loads(body).get("container") for body in upstream.sent
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_every_round_behind_it_names_the_container_of_a_reply(stream):
    answer, sent = played(stream)
    assert sent == [None, "container_1", "container_1"]
    assert "ne." in answer  # a stream has it in two pieces
    assert "container_1" in answer  # the client names it in its next request


@pytest.mark.parametrize("stream", [False, True])
def test_what_else_the_client_asks_of_a_container_stays(stream):
    skills = [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]
    _, sent = played(stream, container={"skills": skills})
    assert sent[1] == {"skills": skills, "id": "container_1"}


@pytest.mark.parametrize("named", ["container_0", {"id": "container_0"}])
def test_a_container_that_the_client_names_is_used(named):
    _, sent = played(False, container=named)
    assert sent == [named] * 3
