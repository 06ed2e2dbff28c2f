"""An event loop: the reply of an SDK keeps its type, and so does what a view says."""

from typing import Any, assert_type

import openai
from openai.types.chat import ChatCompletion

import ullage


async def turn(client: openai.AsyncOpenAI, request: dict[str, Any]) -> str:
    async with ullage.AsyncSession("gpt-5.4", store="kept.db") as session:
        view = await session.fit(request)
        assert_type(view, ullage.AsyncView)
        reply = await session.call(client.chat.completions.create, **request)
        assert_type(reply, ChatCompletion)
        assert_type(session.events, tuple[ullage.Event, ...])
        return reply.choices[0].message.content or ""
