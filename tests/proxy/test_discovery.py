"""Model servers are asked for their windows: real HTTP servers, each in the shape of one."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.proxy.upstream import ask, proxy, upstream
from ullage.doors.proxy import discovery
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.discovery import Discovery
from ullage.doors.proxy.routes import route_of
from ullage.doors.proxy.upstream import client_of
from ullage.tools.cli.run import _for_one

MODEL = "house-model:8b"
CHAT = "/v1/chat/completions"
MODELS, PROPS, LM_STUDIO = "/v1/models", "/props", "/api/v0/models"
PS, SHOW, LITELLM = "/api/ps", "/api/show", "/model/info"

SHAPES = {
    "vllm": (
        {MODELS: {"data": [{"id": MODEL, "max_model_len": 32_768}]}},
        32_768,
    ),
    "openrouter": (
        {
            MODELS: {
                "data": [{"id": MODEL, "context_length": 163_840}, {"id": "x"}]
            }
        },
        163_840,
    ),
    "llama.cpp": (
        {
            MODELS: {
                "data": [{"id": "a.gguf", "meta": {"n_ctx_train": 131_072}}]
            },
            PROPS: {"default_generation_settings": {"n_ctx": 4_096}},
        },
        4_096,
    ),
    "lm-studio": (
        {
            MODELS: {"data": [{"id": MODEL}, {"id": "x"}]},
            LM_STUDIO: {
                "data": [
                    {
                        "id": MODEL,
                        "max_context_length": 131_072,
                        "loaded_context_length": 8_192,
                    }
                ]
            },
        },
        8_192,
    ),
    "ollama, loaded": (
        {
            MODELS: {"data": [{"id": MODEL}]},
            PS: {"models": [{"name": MODEL, "context_length": 4_096}]},
        },
        4_096,
    ),
    "ollama, set": (
        {
            PS: {"models": []},
            SHOW: {"parameters": "num_ctx 16384", "model_info": {}},
        },
        16_384,
    ),
    "ollama, bound": (
        {
            PS: {"models": []},
            SHOW: {"model_info": {"llama.context_length": 8_192}},
        },
        4_096,  # its default, until the model is loaded
    ),
    "litellm": (
        {
            LITELLM: {
                "data": [
                    {
                        "model_name": MODEL,
                        "model_info": {"max_input_tokens": 200_000},
                    }
                ]
            }
        },
        200_000,
    ),
}


def serving(answers):
    """A server that has these answers, by path; a chat completion; nothing else."""

    async def answer(request):
        if request.path.endswith("/chat/completions"):
            said = {
                "index": 0,
                "message": {"role": "assistant", "content": "Done."},
            }
            return web.json_response(
                {"id": "c", "choices": [{**said, "finish_reason": "stop"}]}
            )
        found = answers.get(request.path)
        if found is None:
            return web.Response(status=404)
        if callable(found):
            return await found(request)
        return web.json_response(found)

    return answer


@asynccontextmanager
async def discovering(there, **settings):
    """What asks an upstream, and how to ask it of a model."""
    config = Config(
        upstreams={"openai": there.url}, use_system_proxy=False, **settings
    )
    async with client_of(config) as client:
        made = Discovery(config, client, {})
        route = route_of(CHAT, {}, config.upstreams)

        async def known(model=MODEL, headers=None):
            """What is known of a model once everything that is asked now was answered."""
            made.of(route, headers or {}, model)
            while made._tasks:
                await asyncio.gather(*made._tasks)
            return made.of(route, headers or {}, model)

        try:
            yield made, route, known
        finally:
            await made.close()


def learnt(there, *models, **settings):
    """What is known of models, each once its server was asked."""

    async def run():
        async with discovering(there, **settings) as (_, _, known):
            return [await known(model) for model in models or (MODEL,)]

    return asyncio.run(run())


def paths(there):
    return [request.target for request in there.requests]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_server_of_each_kind_tells_its_window(shape):
    answers, window = SHAPES[shape]
    with upstream(serving(answers)) as there:
        (served,) = learnt(there)
        assert served.window_tokens == window
        assert f"{window:,} tokens" in served.event.why
        assert len(paths(there)) == len(set(paths(there))) <= 6


def test_it_is_asked_once_however_many_requests_there_are():
    answers, _ = SHAPES["vllm"]

    async def run(there):
        async with discovering(there) as (made, route, known):
            for _ in range(50):
                made.of(route, {}, MODEL)
            await known()
            await known()

    with upstream(serving(answers)) as there:
        asyncio.run(run(there))
        assert paths(there) == [MODELS]


def test_an_answer_expires(monkeypatch):
    monkeypatch.setattr(discovery, "_SERVED_S", 0.0)
    windows = iter([32_768, 65_536, 65_536, 65_536])

    async def listed(_):
        return web.json_response(
            {"data": [{"id": MODEL, "max_model_len": next(windows)}]}
        )

    async def run(there):
        async with discovering(there) as (made, _, known):
            first = await known()
            second = await known()
            await made.close()
            return first.window_tokens, second.window_tokens

    with upstream(serving({MODELS: listed})) as there:
        assert asyncio.run(run(there)) == (32_768, 65_536)


def test_a_bound_only_lowers_what_is_assumed_and_is_asked_for_again_soon():
    bound = {
        LM_STUDIO: {"data": [{"id": MODEL, "max_context_length": 1_000_000}]}
    }
    with upstream(serving(bound)) as there:
        assert learnt(there) == [None]
    assert discovery._AGAIN_S < discovery._NOTHING_S < discovery._SERVED_S


def test_a_default_holds_until_the_model_is_loaded_and_is_asked_for_again_at_once():
    trained = {SHOW: {"model_info": {"llama.context_length": 1_000_000}}}
    with upstream(serving(trained)) as there:
        (served,) = learnt(there)
    assert "would load it with 4,096 tokens (the default" in served.event.why
    assert discovery._LOADING_S < discovery._AGAIN_S


async def _endless(request):
    reply = web.StreamResponse()
    await reply.prepare(request)
    for _ in range(64):
        await reply.write(b" " * (1 << 20))
    return reply


async def _elsewhere(_):
    raise web.HTTPFound("http://203.0.113.7/v1/models")


async def _no_json(_):
    return web.Response(text="<html>max_model_len: 32768</html>")


async def _deep(_):
    return web.Response(text="[" * 200_000)


async def _failing(_):
    return web.Response(status=500)


@pytest.mark.parametrize(
    "odd", [_endless, _elsewhere, _no_json, _deep, _failing]
)
def test_an_odd_answer_is_no_answer_and_the_next_question_is_asked(odd):
    answers = {
        MODELS: odd,
        PROPS: {"default_generation_settings": {"n_ctx": 4_096}},
    }
    with upstream(serving(answers)) as there:
        (served,) = learnt(there)
        assert served.window_tokens == 4_096


@pytest.mark.parametrize("value", [-1, 3, "many", 10**12])
def test_nonsense_is_refused_with_an_event(value):
    with upstream(
        serving({MODELS: {"data": [{"id": MODEL, "max_model_len": value}]}})
    ) as there:
        (served,) = learnt(there)
        assert served.window_tokens is None
        assert (served.event.kind, served.event.where) == (
            "window_refused",
            "model",
        )
        assert str(value) not in served.event.why


def test_no_credential_goes_but_the_clients_own():
    sent = {
        "authorization": "Bearer mine",
        "cookie": "a=b",
        "x-stainless-os": "Linux",
    }

    async def run(there):
        async with discovering(there) as (_, _, known):
            await known(headers=sent)
            await known("another", headers={})

    with upstream(serving({})) as there:
        asyncio.run(run(there))
        first, second = there.requests[0], there.requests[-1]
        assert first.header("authorization") == ["Bearer mine"]
        assert first.header("cookie") == first.header("x-stainless-os") == []
        assert second.header("authorization") == []


@pytest.mark.parametrize(
    ("settings", "model", "is_asked"),
    [
        ({}, MODEL, True),
        ({}, "gpt-oss-20b", True),
        ({}, "gpt-4.1", False),  # its maker alone serves it
        ({"discover": True}, "gpt-4.1", False),
        ({"discover": ["openai"]}, "gpt-4.1", True),
        ({"discover": False}, MODEL, False),
        ({"discover": []}, MODEL, True),  # on this machine
        ({"window_tokens": 9_000}, MODEL, False),
        ({}, "m" * 300, False),
        ({}, "", False),
    ],
)
def test_who_is_asked_about_what(settings, model, is_asked):
    with upstream(serving({})) as there:
        learnt(there, model, **settings)
        assert bool(paths(there)) == is_asked


@pytest.mark.parametrize(
    ("url", "discover", "is_asked"),
    [
        ("https://gateway.example/api", None, False),
        ("https://gateway.example/api", True, True),
        ("https://gateway.example/api", ["openai"], True),
        ("http://192.168.1.9:8000", None, False),
        ("http://[::1]:8000", None, True),
        ("https://api.openai.com", True, False),
        ("https://api.openai.com", ["openai"], False),
    ],
)
def test_unasked_only_this_machine_is_asked(url, discover, is_asked):
    config = Config(upstreams={"openai": url}, discover=discover)
    route = route_of(CHAT, {}, config.upstreams)
    assert Discovery(config, None, {})._may_ask(route, MODEL) == is_asked


@pytest.mark.parametrize(
    ("said", "meant"), [(None, True), (False, False), (["mine"], ["mine"])]
)
def test_a_command_with_a_proxy_of_its_own_asks_unless_it_was_told_otherwise(
    said, meant
):
    gateway = {"mine": "https://gateway.example/api"}
    config = Config(upstreams=gateway, discover=said)
    assert (
        _for_one(config, {"openai": "https://gateway.example"}).discover
        == meant
    )


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/chat/completions", "/v1/models"),
        ("/api/v1/chat/completions", "/api/v1/models"),
        ("/v1/messages", "/v1/models"),
        ("/v1/responses?x=1", "/v1/models"),
        ("/v1beta/models/m:generateContent", "/v1/models"),
    ],
)
def test_it_is_asked_where_the_request_goes(path, asked):
    assert (
        discovery._api_of(f"http://127.0.0.1:1{path}")
        == f"http://127.0.0.1:1{asked[:-7]}"
    )


def test_what_is_kept_and_asked_at_once_is_bounded():
    async def run(there):
        async with discovering(there) as (made, route, _):
            for n in range(1_000):
                made.of(route, {}, f"model-{n}")
            assert len(made._known) <= discovery._MOST_MODELS
            assert len(made._tasks) <= discovery._MOST_ASKED_AT_ONCE

    with upstream(serving({})) as there:
        asyncio.run(run(there))


# ── behind the door ──────────────────────────────────────────────────────────────────────


def chat(text="Go on. " * 2_000):
    return json.dumps(
        {"model": MODEL, "messages": [{"role": "user", "content": text}]}
    ).encode()


def test_no_request_waits_for_an_answer_and_the_window_holds_once_it_is_there():
    may_answer = threading.Event()

    async def listed(_):
        await asyncio.to_thread(may_answer.wait, 20)
        return web.json_response(
            {"data": [{"id": MODEL, "max_model_len": 8_000}]}
        )

    reports = []
    with (
        upstream(serving({MODELS: listed})) as there,
        proxy(there, reports.append) as url,
    ):
        assert ask(url, "POST", CHAT, chat())[0] == 200, (
            "it is answered while nothing is known"
        )
        may_answer.set()
        for _ in range(2_000):
            ask(url, "POST", CHAT, chat())
            if reports[-1].report.limit_tokens < 8_000:
                break
    limits = [each.report.limit_tokens for each in reports]
    assert limits[0] > 100_000
    assert limits[-1] == 7_000
    kinds = [event.kind for each in reports for event in each.report.events]
    assert kinds.count("window_found") == 1


def test_a_given_window_holds_against_what_a_server_tells():
    answers, _ = SHAPES["vllm"]
    reports = []
    with (
        upstream(serving(answers)) as there,
        proxy(there, reports.append, window_tokens=64_000) as url,
    ):
        ask(url, "POST", CHAT, chat())
        assert paths(there) == [CHAT]
    assert reports[0].report.limit_tokens == 56_000
