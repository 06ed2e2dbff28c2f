"""Recall inside: the model reads on, and its client sees nothing of it, on any worker."""

import json
import os
import signal
from itertools import cycle, pairwise

import pytest

from tests.proxy.started import started
from tests.proxy.test_coding_agents import OURS, script
from tests.proxy.test_workers import children
from tests.proxy.upstream import proxy
from tests.servers import Call
from tests.servers.behind import behind
from tests.servers.loops import calls_in, gathered, loop, said, user
from tests.servers.loops import request as request_of
from ullage.wires import FORMATS

LISTING = "\n".join(f"line {number}" for number in range(1, 2_501))


def shell(line):
    return Call("bash", {"command": line})


def run(name, arguments):
    assert name == "bash", "a private call reached the client"
    return LISTING if "seq" in arguments["command"] else "last"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", sorted(FORMATS))
def test_what_was_set_aside_is_read_and_the_client_sees_nothing_of_it(
    serve, wire, stream
):
    server = serve(wire, script(shell), strict=True)
    with proxy(server) as url:
        messages = loop(behind(server, url, stream=stream), None, run)
    assert len(server.requests) == 4
    assert "All is counted." in str(messages[-1])
    assert not any(name in str(messages) for name in OURS)


def test_a_client_that_offers_no_tools_is_offered_none(serve):
    server = serve("anthropic", ["Done."])
    with proxy(server) as url:
        loop(behind(server, url), None, None, tools=())
    assert "tools" not in server.requests[0].body


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("wire", ["anthropic", "openai-chat"])
def test_workers_and_starts_between_any_two_turns_change_nothing(
    serve, wire, tmp_path
):
    """Every request goes to another process, and one is killed in the middle."""
    server = serve(wire, script(shell), strict=True)
    store = f"--store={tmp_path}/kept.db"
    with (
        started(server, "--workers=2", "--tenant=one", store) as first,
        started(server, "--tenant=one", store) as second,
    ):
        asked, killed = cycle((first, second)), False

        def answer(request):
            nonlocal killed
            url = next(asked).url
            client = behind(server, url).client()
            reply = server.ask(client, request)
            if not killed:
                os.kill(children(first.process.pid)[0], signal.SIGKILL)
                killed = True
            return reply

        messages = _played(wire, answer)
    bodies = [each.body for each in server.requests]
    assert len(bodies) == 4
    heads = [json.dumps(body.get("tools")) for body in bodies]
    assert len(set(heads)) == 1, "the tools stay as they are"
    histories = [FORMATS[wire].history(body) for body in bodies]
    for before, after in pairwise(histories):
        assert _said(after)[: len(before)] == _said(before), (
            "the prefix stays as it is"
        )
    assert not any(name in str(messages) for name in OURS)


def _said(messages):
    """Messages without the marks of caches, which move."""
    return [
        json.dumps(message).replace(', "cache_control"', "")
        for message in messages
    ]


def _played(wire, answer):
    """The loop of an agent, each request by way of ``answer``."""
    messages = [user(wire)]
    for _ in range(6):
        reply = answer(request_of(wire, messages))
        messages += said(reply)
        calls = calls_in(reply)
        if not calls:
            break
        format = FORMATS[wire]
        results = [_result(format, call) for call in calls]
        messages += gathered(wire, results)
    return messages


def _result(format, raw):
    call = format.call(raw)
    return format.result(call, run(call.name, json.loads(call.arguments)))
