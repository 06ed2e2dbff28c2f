"""Real agents of the OpenAI Agents SDK around its scripted model."""

import asyncio
import json
from itertools import count

from agents import (
    Agent,
    ModelProvider,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.testing.model import ModelStep
from openai.types.responses.response_reasoning_item import (
    ResponseReasoningItem,
)
from openai.types.responses.response_usage import InputTokensDetails

from tests.integrations import outputs
from tests.integrations.outputs import GREP

_IDS = count(1)
set_tracing_disabled(True)


@function_tool
def look(n: int) -> str:
    """Looks into a cupboard."""
    return outputs.big(n)


@function_tool
def turn(n: int) -> str:
    """Turns a page."""
    return outputs.page(n)


def usage(prompt=1_000, output=10, read=0):
    details = InputTokensDetails(cached_tokens=read, cache_write_tokens=0)
    return Usage(
        requests=1,
        input_tokens=prompt,
        output_tokens=output,
        total_tokens=prompt + output,
        input_tokens_details=details,
    )


def _step(*output, **more):
    return ModelStep(
        output=output, usage=usage(**more), response_id=f"resp_{next(_IDS)}"
    )


def calls(*asked, thought="", **more):
    """A reply that calls tools: pairs of name and arguments."""
    made = [
        function_call(name, args, call_id=f"call_{n}", item_id=f"fc_{n}")
        for n, (name, args) in zip(_IDS, asked, strict=False)
    ]
    said = {"text": thought, "type": "summary_text"}
    bound = {"id": f"rs_{next(_IDS)}", "type": "reasoning", "summary": [said]}
    sealed = ResponseReasoningItem.model_validate(
        {**bound, "encrypted_content": "c2VhbGVk" * 30}
    )
    return _step(*([sealed] if thought else ()), *made, **more)


def says(text, **more):
    return _step(assistant_message(text), **more)


def too_long():
    """What a provider says of a request that is too long."""
    return ModelStep.raise_error(
        ValueError("prompt is too long: 15500 tokens > 8000 maximum")
    )


def recalls(call):
    """A reply that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(call.input))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def _as_step(step):
    if isinstance(step, Exception):
        return ModelStep.raise_error(step)
    return ModelStep.respond(step) if callable(step) else step


class Script(ModelProvider):
    """Gives one model, which follows the steps; a callable step is given the call."""

    def __init__(self, steps):
        self.model = ScriptedModel(list(map(_as_step, steps)))

    def get_model(self, model_name):
        return self.model

    @property
    def sent(self):
        """The items of each call."""
        return [call.input for call in self.model.calls]


def agent_of(ullage, tools=(look, turn)):
    """An agent as an application makes it."""
    told = "You look for things."
    return Agent(
        name="finder",
        instructions=told,
        model="gpt-5.2",
        tools=[*tools, *ullage.tools],
    )


def run(agent, text, models, memory=None):
    """What comes of a run, in an event loop of its own."""
    config = RunConfig(model_provider=models)
    return asyncio.run(
        Runner.run(
            agent, text, session=memory, run_config=config, max_turns=200
        )
    )


def text_of(items):
    """All that items say."""
    if isinstance(items, str):
        return items
    return "\n".join(
        str(item.get("output") or item.get("content") or "") for item in items
    )


def results(items):
    """What tools gave, in order."""
    return [
        item["output"]
        for item in items
        if item.get("type") == "function_call_output"
    ]


def shown(items):
    """Items as they are sent, for a comparison to the byte."""
    return [json.dumps(item, sort_keys=True) for item in items]
