"""Additions on trial behind the vendors' own SDKs: what is refused with ours goes without it."""

import asyncio
import json

import pytest

import ullage
from tests.servers import Refusal
from tests.servers.loops import request, user
from tests.wrapping.asking import AWAITED, aask, ask, client_of
from tests.wrapping.test_recall import words
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
awaited = pytest.mark.parametrize("format", AWAITED)
ways = pytest.mark.parametrize("way", ["create", "stream"])
NO_TOOLS = {
    "error": {
        "message": "No tools beside your own.",
        "code": 400,
        "status": "INVALID",
    },
    "message": "No tools beside your own.",
}
NO_OPTIONS = {
    "error": {"message": "unknown field `stream_options`", "type": "invalid"}
}
OURS = b"get_continuation"


def without_ours(captured):
    """An upstream that refuses our tools."""
    return Refusal(400, NO_TOOLS) if OURS in captured.raw else "Done."


def asked(format, text):
    return request(format, [user(format, text)])


@every
@ways
def test_a_client_gets_its_reply_and_the_refusal_is_remembered(
    serve, format, way
):
    server = serve(format, without_ours, strict=True)
    client = ullage.wrap(client_of(server))
    for text in ("one", "two", "three"):
        assert (
            words(format, ask(client, format, asked(format, text), way))
            == "Done."
        )
    ours = [OURS in captured.raw for captured in server.requests]
    assert ours == [True, False, False, False]
    reports = ullage.wrapped(client).reports
    assert [report.without[0] for report in reports] == ["tools"] * 3


@awaited
@ways
def test_on_an_event_loop_and_for_every_loop(serve, format, way):
    """What one loop learnt holds for the next one, and for a copy of the client."""
    server = serve(format, without_ours, strict=True)
    client = ullage.wrap(client_of(server, is_async=True))

    async def run(text):
        return words(
            format, await aask(client, format, asked(format, text), way)
        )

    assert asyncio.run(run("one")) == "Done."
    copies = (
        client.with_options(timeout=30)
        if hasattr(client, "with_options")
        else client
    )
    client = copies
    assert asyncio.run(run("two")) == "Done."
    ours = [OURS in captured.raw for captured in server.requests]
    assert ours == [True, False, False]


@every
def test_what_is_refused_without_ours_too_is_the_sdks_own_error(serve, format):
    message = "temperature is out of range"
    words_of_it = {
        "error": {"message": message, "code": 400},
        "message": message,
    }
    server = serve(format, lambda _: Refusal(400, words_of_it))
    plain, client = client_of(server), ullage.wrap(client_of(server))
    kinds = []
    for each in (plain, client):
        with pytest.raises(Exception, match="out of range") as caught:
            ask(each, format, asked(format, "one"), "create")
        kinds.append((type(caught.value), str(caught.value)))
    assert kinds[0] == kinds[1]
    first, fitted, bare = server.requests
    assert OURS in fitted.raw
    assert bare.raw == first.raw
    assert ullage.wrapped(client).reports[-1].without == ("tools",)


def test_streams_of_chat_go_without_the_options_that_their_server_refuses(
    serve,
):
    def rule(captured):
        return (
            Refusal(422, NO_OPTIONS)
            if "stream_options" in captured.body
            else "Done."
        )

    server = serve("openai-chat", rule)
    client = ullage.wrap(client_of(server))
    for text in ("one", "two"):
        assert (
            words(
                "openai-chat",
                ask(
                    client, "openai-chat", asked("openai-chat", text), "stream"
                ),
            )
            == "Done."
        )
    options = [
        "stream_options" in captured.body for captured in server.requests
    ]
    assert options == [True, False, False]
    assert all(OURS in captured.raw for captured in server.requests)


def test_two_models_of_one_client_are_learnt_of_apart(serve):
    def rule(captured):
        is_small = captured.body["model"] == "gpt-4.1-mini"
        return without_ours(captured) if is_small else "Done."

    server = serve("openai-chat", rule)
    client = ullage.wrap(client_of(server))
    for model in ("gpt-4.1-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1"):
        ask(
            client,
            "openai-chat",
            {**asked("openai-chat", model), "model": model},
            "create",
        )
    ours = [
        (captured.body["model"], OURS in captured.raw)
        for captured in server.requests
    ]
    assert ours == [
        ("gpt-4.1-mini", True),
        ("gpt-4.1-mini", False),
        ("gpt-4.1", True),
        ("gpt-4.1-mini", False),
        ("gpt-4.1", True),
    ]


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_who_has_128_tools_is_offered_none_and_nothing_is_refused(
    serve, format
):
    def rule(captured):
        words_of_it = {
            "error": {"message": "array too long", "param": "tools"}
        }
        return (
            Refusal(400, words_of_it)
            if len(captured.body["tools"]) > 128
            else "Done."
        )

    server = serve(format, rule)
    client = ullage.wrap(client_of(server))
    for count in (128, 127):
        own = [_tool(format, n) for n in range(count)]
        assert words(
            format,
            ask(
                client,
                format,
                {**asked(format, "Go."), "tools": own},
                "create",
            ),
        )
    assert [len(captured.body["tools"]) for captured in server.requests] == [
        128,
        128,
    ]


def _tool(format, number):
    text = json.dumps(asked(format, "")["tools"][0])
    return json.loads(text.replace("read_file", f"tool_{number}"))


def test_models_for_deep_research_keep_the_tools_that_openai_runs(serve):
    server = serve("openai-responses", ["Done."])
    client = ullage.wrap(client_of(server))
    own = [
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]
    given = {
        **asked("openai-responses", "Go."),
        "tools": own,
        "model": "o4-mini-deep-research",
    }
    ask(client, "openai-responses", given, "create")
    assert server.requests[0].body["tools"] == own


def test_functions_of_gemini_stand_in_one_tool(serve):
    server = serve("gemini", ["Done."])
    client = ullage.wrap(client_of(server))
    ask(client, "gemini", asked("gemini", "Go."), "create")
    (tool,) = server.requests[0].body["tools"]
    names = [declared["name"] for declared in tool["functionDeclarations"]]
    assert names == ["read_file", "get_continuation"]
