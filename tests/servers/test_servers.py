"""The loopback providers: they answer as the vendors do, and the vendors' SDKs agree."""

import json
import ssl
import urllib.request

import pytest

from tests.servers import Call, Refusal, Reply
from tests.servers.loops import (
    TASK,
    calls_in,
    gathered,
    loop,
    request,
    said,
    user,
)
from tests.servers.replies import MODELS, signature_of
from tests.servers.vendors import vendors
from ullage import Limits, Session, Usage, is_overflow
from ullage.wires import FORMATS

FORMAT_NAMES = tuple(FORMATS)
TWO = Reply(
    "Let me look.",
    [Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})],
)
every = pytest.mark.parametrize("format", FORMAT_NAMES)


def plain(value):
    if isinstance(value, dict):
        return value
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


@every
def test_the_bytes_that_were_sent_are_kept(serve, format):
    server = serve(format, ["Done."])
    asked = request(format, [user(format)])
    server.ask(server.client(), asked)
    (captured,) = server.requests
    assert json.loads(captured.raw) == captured.body
    assert captured.body[FORMATS[format].key][0] == user(format)
    assert TASK.encode() in captured.raw


@every
def test_a_reply_is_what_the_sdk_reads(serve, format):
    server = serve(format, [TWO])
    reply = server.ask(server.client(), request(format, [user(format)]))
    wire = FORMATS[format]
    calls = [wire.call(call) for call in calls_in(reply)]
    as_sent = format.startswith("openai")
    assert [(call.name, call.arguments) for call in calls] == [
        ("read_file", '{"path": "a"}' if as_sent else '{"path":"a"}'),
        ("read_file", '{"path": "b"}' if as_sent else '{"path":"b"}'),
    ]
    assert (
        len({call.id for call in calls}) == 2 or format == "ollama"
    )  # its client drops them
    usage = wire.usage(reply)
    assert usage.input_tokens == len(server.requests[0].raw) // 4
    assert usage.output_tokens > 8


@every
def test_a_streamed_reply_says_the_same(serve, format):
    """Text, calls and usage come out of the events as they stand in the whole reply."""
    server = serve(format, [TWO, TWO])
    client = server.client()
    asked = request(format, [user(format)])
    if format == "openai-chat":
        asked["stream_options"] = {"include_usage": True}
    events = server.ask(client, asked, stream=True)
    assert FORMATS[format].usage_of_stream(events) == FORMATS[format].usage(
        server.answered[0]
    )
    assert put_together(format, events) == (
        "Let me look.",
        ['{"path": "a"}', '{"path": "b"}'],
    )


def put_together(format, events):
    """The text and the arguments of every call, from the pieces in a stream."""
    return {
        "anthropic": _from_anthropic,
        "openai-chat": _from_chat,
        "openai-responses": _from_responses,
        "gemini": _from_gemini,
        "ollama": _from_ollama,
        "bedrock-converse": _from_converse,
    }[format](events)


def _from_anthropic(events):
    text, arguments = "", {}
    for event in events:
        if (
            event.type == "content_block_delta"
            and event.delta.type == "text_delta"
        ):
            text += event.delta.text
        elif event.type == "content_block_delta":
            arguments[event.index] = (
                arguments.get(event.index, "") + event.delta.partial_json
            )
    return text, list(arguments.values())


def _from_chat(events):
    text, arguments = "", {}
    for delta in (event.choices[0].delta for event in events if event.choices):
        text += delta.content or ""
        for call in delta.tool_calls or ():
            arguments[call.index] = (
                arguments.get(call.index, "") + call.function.arguments
            )
    return text, list(arguments.values())


def _from_responses(events):
    text = "".join(
        e.delta for e in events if e.type == "response.output_text.delta"
    )
    done = [
        e for e in events if e.type == "response.function_call_arguments.done"
    ]
    return text, [event.arguments for event in done]


def _from_gemini(events):
    parts = [
        part for event in events for part in event.candidates[0].content.parts
    ]
    calls = [part.function_call for part in parts if part.function_call]
    return "".join(p.text or "" for p in parts), [
        json.dumps(call.args) for call in calls
    ]


def _from_ollama(lines):
    calls = [call for line in lines for call in line.message.tool_calls or ()]
    text = "".join(line.message.content or "" for line in lines)
    return text, [json.dumps(call.function.arguments) for call in calls]


def _from_converse(events):
    text, arguments = "", {}
    for delta in (
        event["contentBlockDelta"]
        for event in events
        if "contentBlockDelta" in event
    ):
        text += delta["delta"].get("text", "")
        if "toolUse" in delta["delta"]:
            at = delta["contentBlockIndex"]
            arguments[at] = (
                arguments.get(at, "") + delta["delta"]["toolUse"]["input"]
            )
    return text, list(arguments.values())


@every
def test_thought_is_signed_where_the_vendor_signs(serve, format):
    server = serve(
        format, [Reply("", [Call("read_file", {"path": "a"})], "hm, hm")]
    )
    reply = server.ask(server.client(), request(format, [user(format)]))
    body = json.dumps(server.answered[0])
    assert (signature_of(1) in body) == (
        format not in ("openai-chat", "ollama")
    )
    counted = 0 if format in ("anthropic", "ollama", "bedrock-converse") else 1
    assert FORMATS[format].usage(reply).reasoning_tokens == counted


@every
def test_a_strict_provider_refuses_in_the_vendors_shape(serve, format):
    """A result that answers nothing."""
    server = serve(format, ["Done."], strict=True)
    client = server.client()
    call = FORMATS[format].call(CALLS[format])
    orphan = gathered(format, [FORMATS[format].result(call, "what?")])
    with pytest.raises(Exception, match=r"400|ValidationException") as caught:
        server.ask(client, request(format, [user(format), *orphan]))
    kinds = (
        "BadRequestError",
        "ClientError",
        "ResponseError",
        "ValidationException",
    )
    assert type(caught.value).__name__ in kinds
    assert server.answered[0].keys() & {"error", "message"}
    assert is_overflow(caught.value) is None
    server.ask(client, request(format, [user(format)]))


CALLS = {
    "anthropic": {
        "type": "tool_use",
        "id": "toolu_9",
        "name": "read_file",
        "input": {},
    },
    "openai-chat": {
        "type": "function",
        "id": "call_9",
        "function": {"name": "read_file", "arguments": "{}"},
    },
    "openai-responses": {
        "type": "function_call",
        "call_id": "call_9",
        "name": "read_file",
        "arguments": "{}",
    },
    "gemini": {
        "functionCall": {"id": "call_9", "name": "read_file", "args": {}}
    },
    "ollama": {
        "id": "call_9",
        "function": {"name": "read_file", "arguments": {}},
    },
    "bedrock-converse": {
        "toolUse": {"toolUseId": "call_9", "name": "read_file", "input": {}}
    },
}


@every
def test_what_is_too_long_is_refused_in_the_vendors_words(serve, format):
    server = serve(format, ["Done."], limit_tokens=400)
    client = server.client()
    with pytest.raises(Exception, match=r"400|ValidationException") as caught:
        server.ask(client, request(format, [user(format, "x" * 4_000)]))
    overflow = is_overflow(caught.value)
    assert overflow.by == "tokens"
    assert overflow.limit_tokens in (400, None)
    server.ask(client, request(format, [user(format)]))


@every
def test_replies_may_be_made_from_the_request(serve, format):
    server = serve(
        format, lambda captured: f"I was sent {len(captured.raw)} bytes."
    )
    reply = server.ask(server.client(), request(format, [user(format)]))
    assert f"I was sent {len(server.requests[0].raw)} bytes." in json.dumps(
        plain(reply)
    )


@every
def test_a_script_that_is_over_is_an_error_and_so_is_a_refusal(serve, format):
    server = serve(
        format,
        [Refusal(429, {"error": {"message": "slow down", "code": 429}})],
    )
    client = server.client()
    with pytest.raises(Exception, match="429"):
        server.ask(client, request(format, [user(format)]))
    with pytest.raises(Exception, match="no more replies"):
        server.ask(client, request(format, [user(format)]))


@pytest.mark.parametrize(
    "format", ["openai-chat", "openai-responses", "gemini"]
)
def test_what_was_sent_before_is_counted_as_cached(serve, format):
    server = serve(format, ["One.", "Two."])
    client, wire = server.client(), FORMATS[format]
    messages = [user(format, "word " * 4_000)]
    first = server.ask(client, request(format, messages))
    assert wire.usage(first).cache_read_tokens == 0
    again = server.ask(
        client, request(format, [*messages, *said(first), user(format)])
    )
    assert (
        0.9
        < wire.usage(again).cache_read_tokens / wire.usage(again).input_tokens
        < 1
    )


@every
def test_a_whole_loop_with_ullage_stays_legal_over_the_wire(serve, format):
    """Twelve large results in a window of 6,000 tokens: something is cut, nothing refused."""
    steps = [
        Reply("Next.", [Call("read_file", {"path": f"{n}.log"})], "hm" * 9)
        for n in range(12)
    ]
    server = serve(
        format, [*steps, "It is the cache."], strict=True, limit_tokens=12_000
    )
    session = Session(
        MODELS[format], limits=Limits(window_tokens=6_000), format=format
    )
    messages = loop(
        server,
        session,
        lambda name, given: f"a line of {given['path']}\n" * 400,
    )
    assert len(server.requests) == 13
    assert {event.kind for event in session.events} & {
        "pruned",
        "condensed",
        "cut",
    }
    assert isinstance(session.usage, Usage)
    assert len(messages) >= 25


def test_a_vendor_is_answered_at_its_own_address(serve, tmp_path):
    pytest.importorskip(
        "cryptography", reason="certificates need the package cryptography"
    )
    server = serve("anthropic", ["Hello."])
    with vendors({"api.anthropic.com": server}, tmp_path) as there:
        context = ssl.create_default_context(
            cafile=there.environment["SSL_CERT_FILE"]
        )
        proxy = urllib.request.ProxyHandler(
            {"https": there.environment["HTTPS_PROXY"]}
        )
        opener = urllib.request.build_opener(
            proxy, urllib.request.HTTPSHandler(context=context)
        )
        body = json.dumps(request("anthropic", [user("anthropic")])).encode()
        with opener.open(
            "https://api.anthropic.com/v1/messages?beta=true", body
        ) as reply:
            assert b"Hello." in reply.read()
        with pytest.raises(urllib.error.HTTPError, match="404") as error:
            opener.open("https://telemetry.example/log")
        error.value.close()
        hosts = [
            (asked.host, asked.method, asked.path) for asked in there.asked
        ]
    assert hosts == [
        ("api.anthropic.com", "POST", "/v1/messages"),
        ("telemetry.example", "GET", "/log"),
    ]
    assert server.requests[0].headers["host"] == "api.anthropic.com"
