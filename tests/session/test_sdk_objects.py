"""Real objects of the vendors' SDKs in the history, and a round trip over a loopback socket."""

import copy
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import openai
import pytest
from anthropic.types import Message as Reply
from openai.types.chat import ChatCompletion

from lab.returned import problems
from tests import histories
from ullage import Limits, Session

LIMITS = Limits(window_tokens=6_000)
CHOSEN = ("anthropic", "openai-chat")
MODEL = {"openai-chat": "gpt-4.1", "anthropic": "claude-opus-4-8"}


def anthropic_body(number, name="read_file", arguments=None, usage=900):
    blocks = [
        {
            "type": "thinking",
            "thinking": f"step {number}",
            "signature": "c2lnbmVk",
        },
        {"type": "text", "text": f"Reading file {number}."},
        {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": name,
            "input": arguments or {"n": 1},
        },
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL["anthropic"],
        "content": blocks,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage - 500,
            "cache_read_input_tokens": 400,
            "cache_creation_input_tokens": 100,
            "output_tokens": 20,
        },
    }


def openai_body(number, name="read_file", arguments=None, usage=900):
    function = {"name": name, "arguments": json.dumps(arguments or {"n": 1})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL["openai-chat"],
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": message}
        ],
        "usage": {
            "prompt_tokens": usage,
            "completion_tokens": 20,
            "total_tokens": usage + 20,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    }


BODIES = {"anthropic": anthropic_body, "openai-chat": openai_body}


def reply_of(format, number, **more):
    body = BODIES[format](number, **more)
    return (Reply if format == "anthropic" else ChatCompletion).model_validate(
        body
    )


def calls_of(reply):
    if isinstance(reply, Reply):
        return [block for block in reply.content if block.type == "tool_use"]
    return reply.choices[0].message.tool_calls or []


def spoken(reply):
    """What a loop appends: for Anthropic a dict around block objects, for OpenAI the object."""
    if isinstance(reply, Reply):
        return {"role": "assistant", "content": reply.content}
    return reply.choices[0].message


def answered(reply, texts):
    ids = [call.id for call in calls_of(reply)]
    if isinstance(reply, Reply):
        blocks = [
            {"type": "tool_result", "tool_use_id": id, "content": text}
            for id, text in zip(ids, texts, strict=True)
        ]
        return [{"role": "user", "content": blocks}]
    return [
        {"role": "tool", "tool_call_id": id, "content": text}
        for id, text in zip(ids, texts, strict=True)
    ]


def history(format, turns=8, lines=120, **more):
    messages = [{"role": "user", "content": "Find the fault."}]
    for number in range(turns):
        reply = reply_of(format, number, **more)
        messages += [
            spoken(reply),
            *answered(reply, [f"line {number}\n" * lines]),
        ]
    return messages


def request(format, messages):
    schema = {"type": "object"}
    bash = {
        "type": "function",
        "function": {"name": "bash", "parameters": schema},
    }
    tools = [
        {"name": "bash", "input_schema": schema}
        if format == "anthropic"
        else bash
    ]
    return {
        "model": MODEL[format],
        "max_tokens": 500,
        "messages": messages,
        "tools": tools,
    }


def new_session(format, **more):
    return Session(
        MODEL[format],
        **{
            "policy": histories.EAGER,
            "limits": LIMITS,
            "recall": True,
            **more,
        },
    )


def written(view):
    """A request as it goes over the wire."""
    return json.loads(
        json.dumps(view, default=lambda o: o.model_dump(exclude_none=True))
    )


@pytest.mark.parametrize("format", CHOSEN)
def test_sdk_objects_in_a_short_history_come_back_as_they_are(format):
    messages = history(format, turns=2, lines=1)
    before = copy.deepcopy(messages)
    view = new_session(format).fit(request(format, messages))
    assert all(a is b for a, b in zip(view["messages"], messages, strict=True))
    assert messages == before


@pytest.mark.parametrize("format", CHOSEN)
def test_edited_sdk_objects_are_legal_and_the_others_untouched(format):
    messages = history(
        format, arguments={"text": "some new text\n" * 120, "path": "a.py"}
    )
    before = copy.deepcopy(messages)
    session = new_session(format)
    view = session.fit(request(format, messages))
    assert messages == before
    assert {event.kind for event in session.events} & {
        "pruned",
        "condensed",
        "cut",
    }
    assert problems(format, written(view)) == []
    mine = {id(message) for message in messages}
    shown = [m for m in view["messages"] if id(m) in mine]
    assert len(shown) > 1
    assert any(
        not isinstance(m, dict) or isinstance(m["content"], list)
        for m in shown
    )


@pytest.mark.parametrize("format", CHOSEN)
def test_a_changed_sdk_object_is_seen(format):
    messages = history(format)
    session = new_session(format)
    session.fit(request(format, messages))
    last = messages[-1 if format == "anthropic" else -2]
    reply = messages[-2]
    if format == "anthropic":
        reply["content"][1].text = "Something else entirely."
        reply["content"][2].input["n"] = 2
    else:
        reply.content = "Something else entirely."
        reply.tool_calls[0].function.arguments = '{"n": 2}'
    again = session.fit(request(format, messages))
    fresh = new_session(format, state=session.state).fit(
        request(format, messages)
    )
    assert written(again) == written(fresh)
    assert "Something else entirely." in json.dumps(written(again))
    assert last is not None


@pytest.mark.parametrize("format", CHOSEN)
def test_sdk_objects_and_their_dicts_are_the_same_history(format):
    """A client that stores JSON and loads it again keeps every edit."""
    messages = history(format)
    session = new_session(format)
    view = session.fit(request(format, messages))
    state, loaded = session.state, written(messages)
    again = new_session(format, state=state).fit(request(format, loaded))
    assert written(again)["messages"] == written(view)["messages"]
    assert (
        session.fit(request(format, loaded))["messages"] == again["messages"]
    )


@pytest.mark.parametrize("format", CHOSEN)
def test_sdk_calls_are_owned_and_answered(format):
    session = new_session(format)
    session.fit(request(format, history(format)))
    ref = next(event.ref for event in session.events if event.ref)
    ours = calls_of(
        reply_of(
            format,
            99,
            name="get_continuation",
            arguments={"tool_call_id": ref},
        )
    )[0]
    theirs = calls_of(reply_of(format, 98))[0]
    assert session.owns(ours)
    assert not session.owns(theirs)
    result = session.recall(ours)
    assert result["content"]
    assert ours.id in result.values()
    assert "is_error" not in result


@pytest.mark.parametrize("format", CHOSEN)
def test_usage_of_sdk_replies_is_read(format):
    session = new_session(format)
    session.fit(request(format, history(format, turns=1)))
    session.observe(reply_of(format, 7, usage=900))
    assert session.usage.input_tokens == 900
    assert session.usage.cache_read_tokens == 400
    assert session.usage.output_tokens == 20
    assert session.cost_usd > 0


# ── over a socket ────────────────────────────────────────────────────────────────────────


class Provider(BaseHTTPRequestHandler):
    """Judges each request by the rules; asks to read a file, or to read on, or is done."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        server.found += problems(server.format, body)
        server.bodies.append(body)
        number = len(server.bodies)
        more = {"usage": len(json.dumps(body)) // 4 + 500}
        named = server.notice.search(
            json.dumps(body["messages"], ensure_ascii=False)
        )
        if named and number % 3 == 0:
            arguments = {"tool_call_id": named[1], "offset": 0}
            more |= {"name": "get_continuation", "arguments": arguments}
        self.answer(json.dumps(BODIES[server.format](number, **more)).encode())

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(params=CHOSEN)
def provider(request):
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.format, server.found, server.bodies = request.param, [], []
        server.notice = re.compile(r'tool_call_id=\\*"([0-9a-z]{16})')
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_loop_over_a_socket_stays_legal_and_reads_back(provider):
    """The twelve lines of the README, 14 turns in a window of 6,000 tokens."""
    format, url = (
        provider.format,
        f"http://127.0.0.1:{provider.server_address[1]}",
    )
    if format == "anthropic":
        client = anthropic.Anthropic(
            api_key="none", base_url=url, max_retries=0
        )
        create = client.messages.create
    else:
        client = openai.OpenAI(api_key="none", base_url=url, max_retries=0)
        create = client.chat.completions.create
    session = Session(MODEL[format], limits=LIMITS)
    messages, recalled = [{"role": "user", "content": "Find the fault."}], 0
    with client:
        for number in range(14):
            reply = create(**session.fit(request(format, messages)))
            session.observe(reply)
            messages.append(spoken(reply))
            results = []
            for call in calls_of(reply):
                if session.owns(call):
                    results.append(session.recall(call))
                    recalled += 1
                else:
                    results += blocks_of(
                        answered(reply, [f"line {number}\n" * 400])
                    )
            messages += (
                [{"role": "user", "content": results}]
                if format == "anthropic"
                else results
            )
    assert provider.found == []
    assert recalled >= 2
    assert {event.kind for event in session.events} >= {
        "pruned",
        "observed",
        "recalled",
    }
    assert {json.dumps(body["tools"]) for body in provider.bodies} == {
        json.dumps(provider.bodies[0]["tools"])
    }
    assert session.usage.output_tokens == 14 * 20


def blocks_of(answers):
    """Anthropic's results are blocks of one message; OpenAI's are messages."""
    return (
        answers[0]["content"]
        if isinstance(answers[0]["content"], list)
        else answers
    )
