"""Recall inside a wrapped client: the model opens what was set aside, and the client sees nothing.

The model reads a file of 200 KB, is shown a part, opens more of it by its ref, and answers. Then
the user asks again: what the client never saw is in the history that the model gets.
"""

import asyncio
import json
import re
from itertools import pairwise

import pytest
from msgspec.structs import replace

import ullage
from tests.servers import Call, Reply
from tests.servers.loops import READ, calls_in, gathered, request, said, user
from tests.wrapping.asking import AWAITED, aask, ask, client_of
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
awaited = pytest.mark.parametrize("format", AWAITED)
ways = pytest.mark.parametrize("way", ["create", "stream"])
LOG = "".join(
    f"line {n} of the log, and nothing in it\n" for n in range(5_000)
)
PRIVATE = ("get_continuation",)


class Model:
    """Reads, recalls and answers.

    ``offered``: it had the recall tools; ``opened``: it was shown what had been set aside.
    """

    def __init__(self, *, beside=()):
        self.turns, self.offered, self.opened, self.beside = (
            0,
            False,
            False,
            list(beside),
        )

    def __call__(self, captured):
        self.turns += 1
        text = captured.raw.decode()
        if self.turns == 1:
            self.offered = all(name in text for name in PRIVATE)
            return Reply("I read it.", [Call("read_file", {"path": "a.log"})])
        if self.turns == 2:
            found = re.search(
                r'tool_call_id=\\"(\w{16})\\", offset=(\d+)', text
            )
            recall = Call(
                "get_continuation",
                {"tool_call_id": found[1], "offset": int(found[2])},
            )
            return Reply("I look further.", [recall, *self.beside])
        if self.turns == 3:
            self.opened = "line 700 of the log" in text
            return Reply("It is line 700.")
        return Reply("As I said.")


def answers(format, calls):
    wire = FORMATS[format]
    assert not [call for call in calls if wire.call(call).name in PRIVATE]
    return gathered(
        format, [wire.result(wire.call(call), LOG) for call in calls]
    )


def words(format, reply):
    wire = FORMATS[format]
    parts = [
        part
        for raw in wire.reply(reply)
        for part in wire.parse(raw, "reply").parts
    ]
    return " ".join(
        part.text for part in parts if type(part).__name__ == "Text"
    )


def is_continued(format, requests):
    """Whether each history begins with the one before it, apart from cache markers."""
    histories = [
        FORMATS[format].history(captured.body) for captured in requests
    ]
    return all(new[: len(old)] == old for old, new in pairwise(histories))


@every
@ways
def test_what_was_set_aside_is_opened_inside(serve, format, way):
    model = Model()
    server = serve(format, model, strict=True)
    client = ullage.wrap(client_of(server))
    history = [user(format)]
    for _ in range(2):
        reply = ask(client, format, request(format, history), way)
        history += said(reply)
        calls = calls_in(reply)
        history += answers(format, calls) if calls else []
    assert "I look further." in words(format, reply)
    assert "It is line 700." in words(format, reply)
    assert not calls_in(reply)
    history.append(user(format, "Really?"))
    last = ask(client, format, request(format, history), way)
    assert words(format, last) == "As I said."
    assert len(server.requests) == 4
    assert (model.offered, model.opened) == (True, True)
    assert max(len(captured.raw) for captured in server.requests) < 70_000
    assert is_continued(format, server.requests)
    assert "get_continuation" in json.dumps(
        FORMATS[format].history(server.requests[-1].body)
    )
    counts = ullage.wrapped(client).counts
    assert (counts.requests, counts.recalled, counts.passed) == (3, 1, {})


@every
@ways
def test_a_call_beside_the_clients_own_waits_for_its_result(
    serve, format, way
):
    beside = [Call("read_file", {"path": "b.log"})]
    server = serve(format, Model(beside=beside), strict=True)
    client = ullage.wrap(client_of(server))
    history = [user(format)]
    for _ in range(3):
        reply = ask(client, format, request(format, history), way)
        history += said(reply)
        calls = calls_in(reply)
        history += answers(format, calls) if calls else []
    assert words(format, reply) == "It is line 700."
    assert len(server.requests) == 3
    assert is_continued(format, server.requests)


@awaited
@ways
def test_an_event_loop_recalls_alike(serve, format, way):
    async def run():
        server = serve(format, Model(), strict=True)
        client = ullage.wrap(client_of(server, is_async=True))
        history = [user(format)]
        for _ in range(2):
            reply = await aask(client, format, request(format, history), way)
            history += said(reply)
            calls = calls_in(reply)
            history += answers(format, calls) if calls else []
        return words(format, reply), ullage.wrapped(client).counts

    text, counts = asyncio.run(run())
    assert "It is line 700." in text
    assert (counts.requests, counts.recalled, counts.passed) == (2, 1, {})


@every
def test_a_restart_in_between_changes_nothing(serve, format, tmp_path):
    def run(restarts):
        server, client = serve(format, Model(), strict=True), None
        history = [user(format)]
        for n in range(3):
            if client is None or restarts:
                client = ullage.wrap(
                    client_of(server), store=tmp_path / f"{restarts}.db"
                )
            reply = ask(client, format, request(format, history), "create")
            history += said(reply)
            calls = calls_in(reply)
            history += answers(format, calls) if calls else []
            history += [user(format, "Really?")] if n == 1 else []
        return [captured.raw for captured in server.requests]

    assert run(restarts=True) == run(restarts=False)


@every
def test_a_request_without_tools_is_offered_none(serve, format):
    server = serve(format, ["Hello."])
    client = ullage.wrap(client_of(server))
    ask(client, format, request(format, [user(format)], tools=()), "create")
    assert not server.requests[0].body.get(
        "tools"
    )  # Ollama's client sends an empty list


@every
def test_recall_can_be_left_off(serve, format):
    server = serve(format, ["Hello."])
    client = ullage.wrap(client_of(server), recall=False)
    ask(client, format, request(format, [user(format)]), "create")
    assert "get_continuation" not in server.requests[0].raw.decode()


class Renamed:
    """Reads twice; then the client has a tool of our name too, and the model calls both."""

    def __init__(self):
        self.turns, self.names, self.opened = 0, [], False

    def __call__(self, captured):
        self.turns += 1
        text = captured.raw.decode()
        self.names.append(set(re.findall(r'"(\w*get_continuation)"', text)))
        if self.turns <= 2:
            return Reply(
                "I read it.",
                [Call("read_file", {"path": f"{self.turns}.log"})],
            )
        if self.turns == 3:
            found = re.search(
                r'(\w+)\(tool_call_id=\\"(\w{16})\\", offset=(\d+)', text
            )
            recall = Call(
                found[1], {"tool_call_id": found[2], "offset": int(found[3])}
            )
            return Reply(
                "I look further.",
                [recall, Call("get_continuation", {"path": "3.log"})],
            )
        self.opened = "line 700 of the log" in text
        return Reply("It is line 700.")


@every
@ways
def test_a_tool_of_the_clients_that_takes_our_name_is_called_by_the_client(
    serve, format, way
):
    model = Renamed()
    server = serve(format, model, strict=True)
    client = ullage.wrap(client_of(server))
    wire, history = FORMATS[format], [user(format)]
    theirs = replace(READ, name="get_continuation")
    called = []
    for turn in range(4):
        tools = (READ,) if turn < 2 else (READ, theirs)
        reply = ask(client, format, request(format, history, tools), way)
        history += said(reply)
        calls = calls_in(reply)
        called += [wire.call(call).name for call in calls]
        results = [wire.result(wire.call(call), LOG) for call in calls]
        history += gathered(format, results) if calls else []
    assert called == ["read_file", "read_file", "get_continuation"]
    assert model.names[1] == {"get_continuation"}
    assert model.names[2] >= {"get_continuation", "ullage_get_continuation"}
    assert model.opened
    assert words(format, reply) == "It is line 700."
