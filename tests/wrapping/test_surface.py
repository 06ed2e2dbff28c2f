"""What the SDKs offer beside ``create`` goes on as before in a wrapped client."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel

import ullage
from tests.histories import CUTS_ALWAYS
from tests.servers import Call, Refusal, Reply
from tests.servers.loops import (
    READ,
    calls_in,
    gathered,
    loop,
    request,
    said,
    user,
)
from tests.servers.refusals import too_long
from tests.wrapping.asking import AWAITED, aask, ask, client_of
from ullage import Limits
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
awaited = pytest.mark.parametrize("format", AWAITED)
openai_too = pytest.mark.parametrize(
    "format", ["anthropic", "openai-chat", "openai-responses"]
)
LIMITS = Limits(window_tokens=12_000, output_reserve_tokens=1_000)
LOG = "".join(f"line {n} of the log\n" for n in range(1_000))


class Verdict(BaseModel):
    guilty: bool


def resource(client, format):
    match format:
        case "anthropic":
            return client.messages
        case "openai-chat":
            return client.chat.completions
    return client.responses


# ── helpers of the SDKs ──────────────────────────────────────────────────────────────────


@openai_too
def test_parse_gives_the_callers_own_class(serve, format):
    server = serve(format, ['{"guilty": true}'])
    client = ullage.wrap(server.client())
    kind = {
        "openai-chat": "response_format",
        "openai-responses": "text_format",
    }
    named = {kind.get(format, "output_format"): Verdict}
    reply = resource(client, format).parse(
        **request(format, [user(format)], tools=()), **named
    )
    match format:
        case "anthropic":
            parsed = reply.parsed_output
        case "openai-chat":
            parsed = reply.choices[0].message.parsed
        case _:
            parsed = reply.output_parsed
    assert parsed == Verdict(guilty=True)


@openai_too
def test_raw_responses_have_their_headers_and_parse(serve, format):
    server = serve(format, ["Done.", "Done.", "Done."])
    client = ullage.wrap(server.client())
    asked = request(format, [user(format)], tools=())
    raw = resource(client, format).with_raw_response.create(**asked)
    assert raw.status_code == 200
    assert raw.headers["content-type"] == "application/json"
    assert raw.elapsed.total_seconds() > 0
    assert raw.parse().id == server.answered[0]["id"]
    with resource(client, format).with_streaming_response.create(
        **asked
    ) as response:
        assert json.loads(response.read()) == server.answered[1]
    with resource(client, format).with_streaming_response.create(
        **asked, stream=True
    ) as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = [line for line in response.iter_lines() if line]
        response.close()
        assert response.elapsed.total_seconds() > 0
    assert "data: " in lines[0] + lines[1]
    assert all(
        report.usage is not None for report in ullage.wrapped(client).reports
    )


@openai_too
def test_copies_share_what_stands_behind(serve, format):
    server = serve(format, ["One.", "Two."])
    client = ullage.wrap(server.client())
    copied = client.with_options(timeout=7, default_headers={"x-mine": "1"})
    asked = request(format, [user(format)], tools=())
    ask(copied, format, asked, "create")
    ask(client, format, asked, "create")
    assert ullage.wrapped(copied) is ullage.wrapped(client)
    assert ullage.wrapped(client).counts.fitted == 2
    assert [
        captured.headers.get("x-mine") for captured in server.requests
    ] == [
        "1",
        None,
    ]


def test_the_beta_resources_and_the_tool_runner_are_fitted_too(serve):
    from anthropic import beta_tool

    @beta_tool
    def read_file(path: str) -> str:
        """Reads a file.

        Args:
            path: where it is.
        """
        return f"{path}\n{LOG}" * 4

    script = [
        Reply(calls=[Call("read_file", {"path": f"{n}.log"})])
        for n in range(3)
    ]
    server = serve("anthropic", [*script, "Done."])
    client = ullage.wrap(
        server.client(), policy=CUTS_ALWAYS
    )  # the SDK names its tools but once
    asked = {
        "model": "claude-opus-4-8",
        "max_tokens": 500,
        "messages": [user("anthropic")],
    }
    runner = client.beta.messages.tool_runner(**asked, tools=[read_file])
    assert runner.until_done().content[0].text == "Done."
    assert len(server.requests[-1].raw) < 3 * 4 * len(LOG) * 0.7
    assert ullage.wrapped(client).counts.changed == 4


# ── google-genai ─────────────────────────────────────────────────────────────────────────


def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{LOG}" * 4


async def aread_file(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{LOG}" * 4


def script():
    return [
        Reply(calls=[Call("read_file", {"path": f"{n}.log"})])
        for n in range(4)
    ] + ["Done."]


@pytest.mark.parametrize("is_async", [False, True])
def test_automatic_function_calling_goes_on_to_its_end(serve, is_async):
    server = serve("gemini", script())
    client = ullage.wrap(client_of(server, is_async=True))
    asked = {
        "model": "gemini-3-pro",
        "contents": "Find it.",
        "config": {"tools": [read_file]},
    }
    models = client.aio.models if is_async else client.models
    reply = models.generate_content(**asked)
    reply = asyncio.run(reply) if is_async else reply
    assert reply.text == "Done."
    assert len(server.requests) == 5
    assert len(server.requests[-1].raw) < 4 * 4 * len(LOG) * 0.7


def test_a_chat_of_genai_is_fitted(serve):
    server = serve("gemini", ["One.", "Two."])
    client = ullage.wrap(server.client())
    chat = client.chats.create(model="gemini-3-pro")
    assert chat.send_message("Hi.").text == "One."
    assert (
        "".join(chunk.text for chunk in chat.send_message_stream("More."))
        == "Two."
    )
    assert ullage.wrapped(client).counts.fitted == 2


# ── retries, refusals, clients that go away ──────────────────────────────────────────────


@openai_too
def test_a_retry_of_the_sdk_sends_the_same_bytes(serve, format):
    busy = Refusal(500, {"error": {"message": "busy", "type": "api_error"}})
    server = serve(format, [busy, "Done."])
    client = ullage.wrap(client_of(server, max_retries=1), limits=LIMITS)
    history = [user(format, LOG * 9)]
    reply = ask(client, format, request(format, history), "create")
    assert FORMATS[format].reply(reply)
    first, second = server.requests
    assert first.raw == second.raw
    assert [report.status for report in ullage.wrapped(client).reports] == [
        500,
        200,
    ]


@every
def test_one_refusal_for_length_is_not_seen_by_the_sdk(serve, format):
    seen = []

    def once(captured):
        seen.append(captured)
        return (
            too_long(format, 60_000, 30_000)
            if len(seen) == 5
            else replies.pop(0)
        )

    replies = [
        Reply(calls=[Call("read_file", {"path": f"{n}.log"})])
        for n in range(6)
    ] + ["Ok."]
    server = serve(format, once, strict=True)
    client = ullage.wrap(client_of(server))
    loop(server, None, lambda name, arguments: LOG * 2, client=client)
    assert len(server.requests) == 8
    assert len(server.requests[5].raw) < len(server.requests[4].raw)
    assert ullage.wrapped(client).counts.refused == 1


@openai_too
def test_a_client_that_goes_away_in_mid_stream_is_counted(serve, format):
    server = serve(format, ["A long answer, of which little is read."])
    client = ullage.wrap(server.client())
    stream = resource(client, format).create(
        **request(format, [user(format)], tools=()), stream=True
    )
    next(iter(stream))
    stream.close()
    (report,) = ullage.wrapped(client).reports
    assert (report.status, report.is_streamed) == (200, True)


def test_a_task_that_is_cancelled_closes_the_upstream(serve):
    async def run():
        server = serve("anthropic", ["A long answer."])
        client = ullage.wrap(client_of(server, is_async=True))
        asked = request("anthropic", [user("anthropic")], tools=())
        begun = asyncio.Event()

        async def read():
            async with client.messages.stream(**asked) as stream:
                async for _ in stream:
                    begun.set()
                    await asyncio.sleep(60)

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ullage.wrapped(client).counts.requests

    assert asyncio.run(run()) == 1


# ── several at once ──────────────────────────────────────────────────────────────────────


def telling(captured):
    """A model that reads two files, then says which conversation it is in."""
    text = captured.raw.decode()
    name = text.partition("task ")[2][:2]
    number = text.count("of the log of")
    if text.count(f"file {name}") < 2 and f"read {name}1" not in text:
        turn = 1 if f"read {name}0" in text else 0
        return Reply(
            f"read {name}{turn}",
            [Call("read_file", {"path": f"{name}{turn}"})],
        )
    return Reply(f"done {name} {number > 0}")


def converse(format, name):
    """One conversation to its end, as steps between its requests."""
    history = [user(format, f"task {name}")]
    while True:
        reply = yield request(format, history)
        history += said(reply)
        calls = calls_in(reply)
        if not calls:
            return FORMATS[format].reply(reply)
        wire = FORMATS[format]
        assert all(
            json.loads(wire.call(call).arguments)["path"][:2] == name
            for call in calls
        )
        log = f"line of the log of {name}\n" * 2_000
        history += gathered(
            format, [wire.result(wire.call(call), log) for call in calls]
        )


NAMES = [f"{a}{b}" for a in "qxz" for b in "1234"]


@every
def test_twelve_interleaved_conversations_are_not_mixed_up(serve, format):
    server = serve(format, telling, strict=True)
    client = ullage.wrap(server.client(), limits=LIMITS)
    under_way = {name: converse(format, name) for name in NAMES}
    asked = {name: next(steps) for name, steps in under_way.items()}
    ends = {}
    while asked:
        for name in list(asked):
            reply = ask(client, format, asked[name], "create")
            try:
                asked[name] = under_way[name].send(reply)
            except StopIteration as stop:
                ends[name] = stop.value
                del asked[name]
    assert all(
        f"done {name} True" in json.dumps(ends[name], default=str)
        for name in NAMES
    )
    for captured in server.requests:
        text = captured.raw.decode()
        assert sum(f"task {name}" in text for name in NAMES) == 1
        assert sum(f"log of {name}" in text for name in NAMES) <= 1


def lived(client, format, name):
    steps = converse(format, name)
    asked = next(steps)
    while True:
        try:
            asked = steps.send(ask(client, format, asked, "create"))
        except StopIteration as stop:
            return stop.value


@every
def test_threads_on_one_client_are_not_mixed_up(serve, format):
    server = serve(format, telling, strict=True)
    client = ullage.wrap(server.client(), limits=LIMITS)
    with ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(lambda name: lived(client, format, name), NAMES))
    assert all(
        f"done {name} True" in json.dumps(end, default=str)
        for name, end in zip(NAMES, ends, strict=True)
    )
    assert ullage.wrapped(client).counts.passed == {}


@awaited
def test_tasks_on_one_client_are_not_mixed_up_in_one_loop_and_the_next(
    serve, format
):
    server = serve(format, telling, strict=True)
    client = ullage.wrap(client_of(server, is_async=True), limits=LIMITS)

    async def live(name):
        steps = converse(format, name)
        asked = next(steps)
        while True:
            try:
                asked = steps.send(await aask(client, format, asked, "create"))
            except StopIteration as stop:
                return stop.value

    async def run(names):
        return await asyncio.gather(*map(live, names))

    ends = asyncio.run(run(NAMES[:6])) + asyncio.run(run(NAMES[6:]))
    assert all(
        f"done {name} True" in json.dumps(end, default=str)
        for name, end in zip(NAMES, ends, strict=True)
    )
    assert ullage.wrapped(client).counts.passed == {}


def test_one_conversation_twice_at_once_is_two_views(serve):
    """Two requests with the same history in flight: each reply goes with its own view."""
    server = serve("anthropic", lambda captured: f"{len(captured.raw)} bytes")
    client = ullage.wrap(server.client())
    first = [user("anthropic"), {"role": "assistant", "content": "Yes?"}]
    with ThreadPoolExecutor(4) as pool:
        asked = [
            request(
                "anthropic",
                [*first, user("anthropic", f"{n} " * 50)],
                tools=(),
            )
            for n in range(8)
        ]
        replies = list(
            pool.map(
                lambda one: ask(client, "anthropic", one, "create"), asked
            )
        )
    sent = {len(captured.raw) for captured in server.requests}
    assert {int(reply.content[0].text.split()[0]) for reply in replies} == sent
    assert ullage.wrapped(client).counts.fitted == 8


def test_a_named_conversation_is_a_tenant_of_its_own(serve):
    server = serve("anthropic", lambda captured: "Ok.")
    client = ullage.wrap(server.client())
    asked = request("anthropic", [user("anthropic")], tools=(READ,))
    keys = set()
    for name in ("a", "b", "a"):
        with ullage.conversation(name):
            ask(client, "anthropic", asked, "create")
        keys.add(ullage.wrapped(client).reports[-1].conversation)
    ask(client, "anthropic", asked, "create")
    keys.add(ullage.wrapped(client).reports[-1].conversation)
    (sessions,) = ullage.wrapped(client).sessions
    assert len(keys) == len(sessions) == 3
    assert {sessions.of(key).settings.tenant for key in keys} == {
        "",
        "\x1fa",
        "\x1fb",
    }
