"""Real LangChain agents around a scripted model."""

import re
from itertools import count
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
)

from tests.integrations import outputs
from tests.integrations.outputs import GREP
from tests.integrations.scenario import Hang


def look(n: int) -> str:
    """Looks into a cupboard."""
    return outputs.big(n)


def turn(n: int) -> str:
    """Turns a page."""
    return outputs.page(n)


class Scripted(BaseChatModel):
    """Answers with what a function of the messages says, and keeps what it was sent.

    A list is followed step by step; an error in it is raised; a callable is given the messages.
    """

    script: Any
    model_name: str = "gpt-4.1"
    kind: str = "scripted"
    sent: Any = ()
    asked: Any = ()

    def model_post_init(self, context):
        """Each has lists of its own."""
        self.sent, self.asked = [], []

    @property
    def _llm_type(self):
        return self.kind

    def bind_tools(self, tools, **settings):
        """As all chat models do."""
        return self.bind(tools=tools, **settings)

    def _reply(self, messages, settings):
        self.sent.append(list(messages))
        self.asked.append(settings)
        step = self.script
        if isinstance(step, list):
            step = step[len(self.sent) - 1]
        if callable(step):
            step = step(messages)
        if isinstance(step, Exception):
            raise step
        return step

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        message = self._reply(messages, settings)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages, stop=None, run_manager=None, **settings
    ):
        message = self._reply(messages, settings)
        if isinstance(message, Hang):
            await message.forever()
        return ChatResult(generations=[ChatGeneration(message=message)])


class Streaming(Scripted):
    """The same, in pieces: the usage is on the last."""

    def _stream(self, messages, stop=None, run_manager=None, **settings):
        yield from self._pieces(self._reply(messages, settings))

    async def _astream(
        self, messages, stop=None, run_manager=None, **settings
    ):
        message = self._reply(messages, settings)
        if isinstance(message, Hang):
            await message.forever()
        for piece in self._pieces(message):
            yield piece

    def _pieces(self, message):
        calls = [
            {**call, "args": str(call["args"]).replace("'", '"'), "index": i}
            for i, call in enumerate(message.tool_calls)
        ]
        for word in re.findall(r"\S+\s*", message.content or ""):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        last = AIMessageChunk(
            "", tool_call_chunks=calls, usage_metadata=message.usage_metadata
        )
        yield ChatGenerationChunk(message=last)


_IDS = count(1)


def usage(prompt=1_000, output=10, read=0, written=0):
    """Usage as LangChain's models report it."""
    details = {"cache_read": read, "cache_creation": written}
    total = {
        "input_tokens": prompt,
        "output_tokens": output,
        "total_tokens": prompt + output,
    }
    return {**total, "input_token_details": details}


def calls(*asked, thought=""):
    """A reply that calls tools: pairs of name and arguments."""
    made = [
        {"name": name, "args": args, "id": f"call_{next(_IDS)}"}
        for name, args in asked
    ]
    bound = {
        "type": "thinking",
        "thinking": thought,
        "signature": "c2lnbmVk" * 30,
    }
    uses = [
        {"type": "tool_use", "input": c["args"], **_without_args(c)}
        for c in made
    ]
    content = [bound, *uses] if thought else ""
    return AIMessage(content, tool_calls=made, usage_metadata=usage())


def _without_args(call):
    return {key: value for key, value in call.items() if key != "args"}


def says(text, read=0, written=0):
    """A reply that ends the run."""
    return AIMessage(text, usage_metadata=usage(read=read, written=written))


def recalls(messages):
    """A reply that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(messages))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def text_of(messages):
    """All that messages say."""
    return "\n".join(message.text for message in messages)


def agent_of(model, middleware, tools=(look, turn), **more):
    """An agent as an application makes it."""
    return create_agent(
        model,
        list(tools),
        middleware=[middleware],
        system_prompt="You look for things.",
        **more,
    )


def thread(name="t"):
    """The settings of a run in a thread."""
    return {"configurable": {"thread_id": name}, "recursion_limit": 500}


def shown(messages):
    """Messages as they are sent, for a comparison to the byte."""
    return [message.model_dump_json() for message in messages]
