"""Message threads of Anthropic's behind a wrapped client: the fourth history that a server holds.

The server here is as strict as the API: a thread keeps system text and tools, a request that
continues it repeats neither, and each reply is continued once.
"""

import json
import re

import anthropic
import httpx2
import pytest

import ullage
from tests.servers.streams import stream_of
from ullage import MemoryStore, Session

LOG = "".join(
    f"line {n} of the log, and nothing in it\n" for n in range(5_000)
)
MODEL = "claude-opus-4-8"
BETA = "message-threads-2026-08-12"
READ = {
    "name": "read_file",
    "description": "Reads.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
    },
}


class Threads:
    """A server that holds threads; what it says comes from a script, one reply a request."""

    def __init__(self, *script):
        self.script, self.asked, self.problems = list(script), [], []
        self.threads = {}  # by the id of the newest reply: tools, and the history behind it
        self.number = 0

    def client(self, **settings):
        transport = httpx2.MockTransport(self.answer)
        http = httpx2.Client(transport=transport)
        client = anthropic.Anthropic(
            api_key="none",
            base_url="http://server",
            max_retries=0,
            http_client=http,
        )
        return ullage.wrap(client, **settings)

    def answer(self, request):
        body = json.loads(request.content)
        self.asked.append(body)
        thread = body.get("thread") or {}
        tools, history = body.get("tools", []), body["messages"]
        if thread.get("type") == "continue":
            held = self.threads.pop(thread["previous_message_id"], None)
            if held is None:
                return self.error(404, "not_found_error", "thread_not_found")
            if "tools" in body or "system" in body:
                return self.error(
                    400, "invalid_request_error", "thread_fingerprint_mismatch"
                )
            tools, history = held[0], [*held[1], *history]
        reply = self.said(tools, history)
        if thread:
            said = {"role": "assistant", "content": reply["content"]}
            self.threads[reply["id"]] = tools, [*history, said]
        self.check(history, tools)
        if body.get("stream"):
            raw = stream_of("anthropic", reply, body)
            return httpx2.Response(
                200, content=raw, headers={"content-type": "text/event-stream"}
            )
        return httpx2.Response(200, json=reply)

    def error(self, status, kind, code):
        error = {
            "type": kind,
            "message": code,
            "details": {"error_code": code},
        }
        return httpx2.Response(status, json={"type": "error", "error": error})

    def said(self, tools, history):
        self.number += 1
        blocks = self.script.pop(0)
        blocks = blocks(json.dumps(history)) if callable(blocks) else blocks
        calls = [block for block in blocks if block["type"] == "tool_use"]
        names = {tool["name"] for tool in tools}
        assert all(call["name"] in names for call in calls), (
            "it calls a tool that it has not"
        )
        return {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100 * len(history), "output_tokens": 10},
        }

    def check(self, history, tools):
        request = {
            "model": MODEL,
            "max_tokens": 9,
            "messages": history,
            "tools": tools,
        }
        self.problems += ullage.problems(request, "anthropic")


def text(said):
    return [{"type": "text", "text": said}]


def reads(number):
    return {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "read_file",
        "input": {},
    }


def looks(number, *beside):
    """Opens what the newest notice of the history names."""

    def blocks(history):
        found = re.findall(
            r'tool_call_id=\\*"(\w{16})\\*", offset=(\d+)', history
        )
        ref, offset = found[-1]
        arguments = {"tool_call_id": ref, "offset": int(offset)}
        name = "get_continuation"
        call = {
            "type": "tool_use",
            "id": f"toolu_r{number}",
            "name": name,
            "input": arguments,
        }
        return [*text("I look."), call, *beside]

    return blocks


def result(number, content=LOG):
    return {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": content,
    }


def words(message):
    return " ".join(
        block.text for block in message.content if block.type == "text"
    )


def names(message):
    return [
        block.name for block in message.content if block.type == "tool_use"
    ]


def thread_of(client):
    """The SDK's own helper: it keeps the history, and sends what is new."""
    return client.beta.messages.thread(
        model=MODEL, max_tokens=99, tools=[READ]
    )


def turn(thread, content, streamed):
    message = {"role": "user", "content": content}
    if not streamed:
        return thread.send(message)
    with thread.stream(message) as stream:
        return stream.get_final_message()


ways = pytest.mark.parametrize("streamed", [False, True])


@ways
def test_hidden_rounds_go_on_in_the_thread_that_the_client_continues(streamed):
    server = Threads(
        [reads(1)],
        looks(1),
        text("It is line 700."),
        looks(2),
        text("As I said."),
        text("Yes."),
    )
    client = server.client()
    thread = thread_of(client)
    assert names(turn(thread, "What failed?", streamed)) == ["read_file"]
    first = turn(thread, [result(1)], streamed)
    assert words(first).split() == ["I", "look.", "It", "is", "line", "700."]
    second = turn(thread, "And then?", streamed)
    assert words(second).endswith("As I said.")
    assert words(turn(thread, "Sure?", streamed)) == "Yes."
    assert names(first) == names(second) == []
    assert server.problems == []
    kinds = [body["thread"]["type"] for body in server.asked]
    assert kinds == ["create", *["continue"] * 5]
    assert "get_continuation" in json.dumps(server.asked[0]["tools"])
    assert all("tools" not in body for body in server.asked[1:])
    assert all(
        len(json.dumps(body["messages"])) < 60_000 for body in server.asked
    )
    assert ullage.wrapped(client).counts.recalled == 2


@ways
def test_what_waits_beside_the_clients_own_call_goes_with_its_result(streamed):
    server = Threads(
        [reads(1)],
        looks(1, reads(2)),
        text("Both are the same."),
        text("Yes."),
    )
    thread = thread_of(server.client())
    turn(thread, "What failed?", streamed)
    assert names(turn(thread, [result(1)], streamed)) == ["read_file"]
    assert (
        words(turn(thread, [result(2, "x = 1")], streamed))
        == "Both are the same."
    )
    assert words(turn(thread, "Sure?", streamed)) == "Yes."
    assert server.problems == []
    sent = [
        block["tool_use_id"]
        for block in server.asked[2]["messages"][0]["content"]
    ]
    assert sorted(sent) == ["toolu_2", "toolu_r1"]


@ways
def test_a_thread_that_is_gone_is_created_anew_with_the_hidden_turns(streamed):
    """The helper sends the whole history; what was hidden while it continued is found in it."""
    server = Threads(
        [reads(1)],
        looks(1),
        text("It is line 700."),
        text("Yes."),
        text("Sure."),
    )
    thread = thread_of(server.client())
    turn(thread, "What failed?", streamed)
    turn(thread, [result(1)], streamed)
    server.threads.clear()
    assert words(turn(thread, "Sure?", streamed)) == "Yes."
    assert [body["thread"]["type"] for body in server.asked[-2:]] == [
        "continue",
        "create",
    ]
    assert "toolu_r1" in json.dumps(server.asked[-1]["messages"])
    assert words(turn(thread, "Really?", streamed)) == "Sure."
    assert server.problems == []


def test_another_worker_and_a_restart_continue_it():
    store = MemoryStore()
    server = Threads(
        [reads(1)],
        looks(1),
        text("It is line 700."),
        looks(2),
        text("As I said."),
    )
    create = {"model": MODEL, "max_tokens": 99, "betas": [BETA]}

    def ask(messages, **more):
        client = server.client(store=store)
        return client.beta.messages.create(**create, messages=messages, **more)

    first = ask(
        [{"role": "user", "content": "Go."}],
        tools=[READ],
        thread={"type": "create"},
    )
    for content in ([result(1)], "And then?"):
        thread = {"type": "continue", "previous_message_id": first.id}
        first = ask([{"role": "user", "content": content}], thread=thread)
        assert names(first) == []
    assert words(first).endswith("As I said.")
    assert server.problems == []


def test_without_our_tools_in_it_none_is_named():
    """A thread that was created without us: nothing is cut that could not be opened."""
    server = Threads(text("Yes."))
    server.threads["msg_0"] = (
        [READ],
        [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [reads(1)]},
        ],
    )
    client = server.client()
    client.beta.messages.create(
        model=MODEL,
        max_tokens=99,
        betas=[BETA],
        messages=[{"role": "user", "content": [result(1)]}],
        thread={"type": "continue", "previous_message_id": "msg_0"},
    )
    sent = json.dumps(server.asked[0])
    assert "get_continuation" not in sent
    assert "tools" not in server.asked[0]


def test_a_session_says_what_it_does_not_see():
    """An own loop: the session that saw the reply knows the thread, and how large it is."""
    store = MemoryStore()
    create = {
        "model": MODEL,
        "max_tokens": 99,
        "tools": [READ],
        "messages": [{"role": "user", "content": "Go."}],
        "thread": {"type": "create"},
    }
    server = Threads([reads(1)])
    view = Session(MODEL, store=store).fit(create)
    assert "get_continuation" in str(view["tools"])
    view.observe(server.said(view["tools"], view["messages"]))
    follow = {
        "model": MODEL,
        "max_tokens": 99,
        "messages": [{"role": "user", "content": [result(1)]}],
        "thread": {"type": "continue", "previous_message_id": "msg_1"},
    }
    session = Session(MODEL, store=store)
    later = session.fit(follow)
    assert "tools" not in later
    assert len(str(later["messages"])) < 60_000
    call = looks(1)(json.dumps(later["messages"]))[1]
    assert later.owns(call)
    assert "line 200 of" in json.dumps(later.recall(call))
    (event,) = (event for event in session.events if event.kind == "passed_on")
    assert event.where == "thread"
    assert "110 tokens by its count" in event.why


def test_what_follows_a_thread_is_no_history_of_its_own():
    """Two threads that go on alike are told apart, and from a conversation that begins so."""
    store = MemoryStore()
    said = [{"role": "user", "content": "Go on."}]
    for name in ("msg_1", "msg_2"):
        session = Session(MODEL, store=store)
        thread = {"type": "continue", "previous_message_id": name}
        view = session.fit(
            {
                "model": MODEL,
                "max_tokens": 9,
                "messages": said,
                "thread": thread,
            }
        )
        view.observe(
            {
                "id": f"{name}_next",
                "usage": {"input_tokens": 90_000, "output_tokens": 1},
            }
        )
    fresh = Session(MODEL, store=store)
    fresh.fit(
        {"model": MODEL, "max_tokens": 9, "messages": said, "tools": [READ]}
    )
    assert fresh.window.estimate < 1_000
