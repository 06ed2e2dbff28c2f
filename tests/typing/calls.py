"""What a type checker is to know of `Session.call` and `ullage.wrap`: read by mypy, never run.

Of a raw reply pyright leaves both overloads, as the request is a dict: it may hold ``stream``.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, assert_type, cast

import anthropic
import openai
from anthropic.types import Message, ToolResultBlockParam, ToolUseBlock
from google import genai
from google.genai.types import GenerateContentResponse
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionToolMessageParam,
)
from openai.types.responses import Response, ResponseFunctionToolCall
from openai.types.responses.response_input_item_param import FunctionCallOutput

import ullage
from ullage import Session
from ullage.session.aio import AsyncSession


def blocking(session: Session, request: dict[str, Any]) -> None:
    claude, gpt, gemini = (
        anthropic.Anthropic(),
        openai.OpenAI(),
        genai.Client(),
    )
    assert_type(session.call(claude.messages.create, **request), Message)
    assert_type(
        session.call(gpt.chat.completions.create, **request), ChatCompletion
    )
    assert_type(session.call(gpt.responses.create, **request), Response)
    assert_type(
        session.call(gemini.models.generate_content, **request),
        GenerateContentResponse,
    )
    assert_type(
        session.call(gemini.models.generate_content_stream, **request),
        Iterator[GenerateContentResponse],
    )
    with session.call(claude.messages.stream, **request) as stream:
        assert_type(stream.get_final_text(), str)
    raw = session.call(claude.messages.with_raw_response.create, **request)
    assert_type(raw.parse(), Message)  # pyright: ignore[reportAssertTypeFailure]
    with session.call(
        gpt.responses.with_streaming_response.create, **request
    ) as opened:
        assert_type(opened.parse(), Response)  # pyright: ignore[reportAssertTypeFailure]
    assert_type(
        session.call(
            partial(gpt.responses.create, model="gpt-5.6"), **request
        ),
        Response,
    )


def recalled(
    session: Session,
    claude: ToolUseBlock,
    gpt: ChatCompletionMessageFunctionToolCall,
    response: ResponseFunctionToolCall,
) -> None:
    assert_type(session.recall(claude), ToolResultBlockParam)
    assert_type(session.recall(gpt), ChatCompletionToolMessageParam)
    assert_type(session.recall(response), FunctionCallOutput)
    assert_type(session.recall({"id": "1"}), dict[str, Any])
    assert_type(session.saved.saved_usd, float)
    assert_type(session.open("ref"), str)


async def awaited(session: AsyncSession, request: dict[str, Any]) -> None:
    claude, gpt = anthropic.AsyncAnthropic(), openai.AsyncOpenAI()
    assert_type(await session.call(claude.messages.create, **request), Message)
    assert_type(
        await session.call(gpt.chat.completions.create, **request),
        ChatCompletion,
    )
    assert_type(await session.call(gpt.responses.create, **request), Response)
    block = cast("ToolUseBlock", request["call"])
    assert_type(await session.recall(block), ToolResultBlockParam)
    async with await session.call(claude.messages.stream, **request) as stream:
        assert_type(await stream.get_final_text(), str)


def wrapped(request: dict[str, Any]) -> None:
    claude = ullage.wrap(anthropic.Anthropic(), store="kept.db")
    assert_type(claude, anthropic.Anthropic)
    assert_type(
        ullage.wrap(openai.AsyncAzureOpenAI()), openai.AsyncAzureOpenAI
    )
    assert_type(ullage.wrap(genai.Client()), genai.Client)
    assert_type(ullage.wrapped(claude).counts.recalled, int)
