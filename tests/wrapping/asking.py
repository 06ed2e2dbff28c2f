"""The vendors' clients, and one whole reply from each, by ``create`` or by the SDK's own stream."""

from contextlib import closing

import pytest
from google.genai.types import Content

from tests.hidden_turns.sdks import gathered
from tests.servers.behind import whole

HELPERS = ("stream",)
AWAITED = ("openai-chat", "openai-responses", "anthropic", "gemini")
"""Wires whose clients there are for an event loop as well; boto3 has none."""


def client_of(server, *, is_async=False, **more):
    """A vendor's own client, as `Provider.client`; also for an event loop."""
    if not is_async and not more:
        return server.client()
    return _MADE[server.format](server.url, is_async, more)


def _anthropic(url, is_async, more):
    import anthropic

    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    return kind(api_key="none", base_url=url, **{"max_retries": 0, **more})


def _openai(url, is_async, more):
    import openai

    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    return kind(
        api_key="none", base_url=f"{url}/v1", **{"max_retries": 0, **more}
    )


def _gemini(url, is_async, more):
    from google import genai

    return genai.Client(
        api_key="none", vertexai=False, http_options={"base_url": url}, **more
    )


def _ollama(url, is_async, more):
    ollama = pytest.importorskip("ollama", reason="ollama is not installed")
    kind = ollama.AsyncClient if is_async else ollama.Client
    return kind(host=url, **{"trust_env": False, **more})


def _bedrock(url, is_async, more):
    import boto3

    session = boto3.Session(
        "AKIA0", "none", region_name="us-east-1"
    )  # each body is signed
    return session.client("bedrock-runtime", endpoint_url=url, **more)


_MADE = {
    "bedrock-converse": _bedrock,
    "anthropic": _anthropic,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _gemini,
    "ollama": _ollama,
}


def _place(client, format, way):
    """The method for a format, and what its manager gathers."""
    match format:
        case "anthropic":
            return getattr(client.messages, way), "get_final_message"
        case "openai-chat":
            return getattr(
                client.chat.completions, way
            ), "get_final_completion"
        case "openai-responses":
            return getattr(client.responses, way), "get_final_response"
    raise ValueError(format)


def ask(client, format, request, way):
    """The reply, whole."""
    if format == "ollama":
        if way == "create":
            return client.chat(**request)
        return whole(list(client.chat(**request, stream=True)))
    if format == "bedrock-converse":
        if way == "create":
            return client.converse(**request)
        with closing(client.converse_stream(**request)["stream"]) as events:
            return gathered(format, events)
    if format == "gemini":
        models = client.models
        if way == "create":
            return models.generate_content(**request)
        return _together(list(models.generate_content_stream(**request)))
    method, gather = _place(client, format, way)
    if way == "create":
        return method(**request)
    with method(**request) as stream:
        for _ in stream:
            pass
        return getattr(stream, gather)()


async def aask(client, format, request, way):
    """`ask` with a client for an event loop."""
    if format == "ollama":
        if way == "create":
            return await client.chat(**request)
        return whole(
            [line async for line in await client.chat(**request, stream=True)]
        )
    if format == "gemini":
        models = client.aio.models
        if way == "create":
            return await models.generate_content(**request)
        return _together(
            [
                chunk
                async for chunk in await models.generate_content_stream(
                    **request
                )
            ]
        )
    method, gather = _place(client, format, way)
    if way == "create":
        return await method(**request)
    async with method(**request) as stream:
        async for _ in stream:
            pass
        return await getattr(stream, gather)()


def _together(chunks):
    """The chunks of a stream as one reply: google-genai leaves that to its chats."""
    parts = [
        part
        for chunk in chunks
        for part in chunk.candidates[0].content.parts or ()
    ]
    last = chunks[-1].model_copy(deep=True)
    last.candidates[0].content = Content(role="model", parts=parts)
    return last
