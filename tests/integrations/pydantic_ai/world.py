"""Real Pydantic AI agents around a function in the place of a model."""

import asyncio
from itertools import count

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from tests.integrations import outputs
from tests.integrations.outputs import GREP
from tests.integrations.scenario import Hang

_IDS = count(1)


def look(n: int) -> str:
    """Looks into a cupboard."""
    return outputs.big(n)


def turn(n: int) -> str:
    """Turns a page."""
    return outputs.page(n)


class Script:
    """Answers step by step, or what a function of the messages says; keeps what it was sent."""

    def __init__(self, steps, model="gpt-4.1"):
        self.steps, self.sent, self.asked = steps, [], []
        self.model = FunctionModel(
            self.reply, stream_function=self.stream, model_name=model
        )

    async def _step(self, messages, info):
        self.sent.append(list(messages))
        self.asked.append(info)
        step = (
            self.steps[len(self.sent) - 1]
            if isinstance(self.steps, list)
            else self.steps
        )
        step = step(messages) if callable(step) else step
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Hang):
            await step.forever()
        return step

    async def reply(self, messages, info):
        return await self._step(messages, info)

    async def stream(self, messages, info):
        reply = await self._step(messages, info)
        for at, part in enumerate(reply.parts):
            if isinstance(part, TextPart):
                for word in part.content.split():
                    yield f"{word} "
            else:
                args = part.args_as_json_str()
                yield {
                    at: DeltaToolCall(
                        part.tool_name, args, tool_call_id=part.tool_call_id
                    )
                }


def usage(prompt=1_000, output=10, **more):
    return RequestUsage(input_tokens=prompt, output_tokens=output, **more)


def calls(*asked, thought=""):
    """A response that calls tools: pairs of name and arguments."""
    made = [
        ToolCallPart(name, args, f"call_{next(_IDS)}") for name, args in asked
    ]
    bound = ThinkingPart(
        thought, signature="c2lnbmVk" * 30, provider_name="anthropic"
    )
    return ModelResponse(
        parts=[bound, *made] if thought else made, usage=usage()
    )


def says(text, read=0, written=0):
    counts = usage(cache_read_tokens=read, cache_write_tokens=written)
    return ModelResponse(parts=[TextPart(text)], usage=counts)


def too_long():
    """What a provider says of a request that is too long."""
    body = {
        "error": {"message": "prompt is too long: 15500 tokens > 8000 maximum"}
    }
    return ModelHTTPError(400, "claude-opus-4-5", body)


def recalls(messages):
    """A response that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(messages))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def text_of(messages):
    """All that messages say."""
    parts = (part for message in messages for part in message.parts)
    return "\n".join(
        str(part.content) for part in parts if getattr(part, "content", None)
    )


def results(messages):
    """What tools gave, in order."""
    parts = (part for message in messages for part in message.parts)
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


def agent_of(script, capability, tools=(look, turn), **more):
    """An agent as an application makes it."""
    return Agent(
        script.model,
        tools=list(tools),
        capabilities=[capability],
        instructions="You look for things.",
        **more,
    )


def run(agent, text, **more):
    """What comes of a run, in an event loop of its own."""
    limits = UsageLimits(request_limit=None)
    return asyncio.run(agent.run(text, usage_limits=limits, **more))


def shown(messages):
    """Messages as they are sent, for a comparison: without ids of runs and times."""
    return [[_shown(part) for part in message.parts] for message in messages]


def _shown(part):
    return {
        key: value for key, value in vars(part).items() if key != "timestamp"
    }
