"""Real Strands agents around a scripted model."""

import json
from itertools import count

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.model import Model

from tests.integrations import outputs
from tests.integrations.outputs import GREP
from tests.integrations.scenario import Hang


@tool
def look(n: int) -> str:
    """Looks into a cupboard."""
    return outputs.big(n)


@tool
def turn(n: int) -> str:
    """Turns a page."""
    return outputs.page(n)


def usage(prompt=1_000, output=10, read=0, written=0):
    """Usage as Strands' models report it: the total has what was cached, here the input too."""
    cached = {"cacheReadInputTokens": read, "cacheWriteInputTokens": written}
    counts = {
        "inputTokens": prompt,
        "outputTokens": output,
        "totalTokens": prompt + output,
    }
    return {**counts, **cached}


class Scripted(Model):
    """Answers with what a function of the messages says, and keeps what it was sent.

    A list is followed step by step; an error in it is raised; a callable is given the messages.
    """

    def __init__(self, script, model_id="gpt-4.1", **config):
        self.script, self.sent, self.asked = script, [], []
        self.config = {"model_id": model_id, **config}

    def update_config(self, **config):
        """See `Model`."""
        self.config.update(config)

    def get_config(self):
        """See `Model`."""
        return self.config

    def structured_output(
        self, output_model, prompt, system_prompt=None, **more
    ):
        """See `Model`."""
        raise NotImplementedError

    async def stream(
        self, messages, tool_specs=None, system_prompt=None, **more
    ):
        """See `Model`."""
        self.sent.append(messages)
        self.asked.append(
            {"tools": tool_specs, "system": system_prompt, **more}
        )
        step = self.script
        if isinstance(step, list):
            step = step[len(self.sent) - 1]
        if callable(step):
            step = step(messages)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Hang):
            await step.forever()
        blocks, counts = step
        yield {"messageStart": {"role": "assistant"}}
        for block in blocks:
            for event in _events(block):
                yield event
        calls = any("toolUse" in block for block in blocks)
        yield {
            "messageStop": {"stopReason": "tool_use" if calls else "end_turn"}
        }
        yield {"metadata": {"usage": counts, "metrics": {"latencyMs": 1}}}


def _events(block):
    start, deltas = {}, [{"text": block.get("text")}]
    if call := block.get("toolUse"):
        start = {
            "toolUse": {"name": call["name"], "toolUseId": call["toolUseId"]}
        }
        deltas = [{"toolUse": {"input": json.dumps(call["input"])}}]
    elif thought := block.get("reasoningContent"):
        said = thought["reasoningText"]
        deltas = [
            {"reasoningContent": {key: value}} for key, value in said.items()
        ]
    yield {"contentBlockStart": {"start": start}}
    for delta in deltas:
        yield {"contentBlockDelta": {"delta": delta}}
    yield {"contentBlockStop": {}}


_IDS = count(1)


def calls(*asked, thought=""):
    """A reply that calls tools: pairs of name and arguments."""
    made = [
        {
            "toolUse": {
                "toolUseId": f"call_{next(_IDS)}",
                "name": name,
                "input": arguments,
            }
        }
        for name, arguments in asked
    ]
    said = {"reasoningText": {"text": thought, "signature": "c2lnbmVk" * 30}}
    first = [{"reasoningContent": said}] if thought else []
    return [*first, *made], usage()


def says(text, read=0, written=0):
    """A reply that ends the run."""
    return [{"text": text}], usage(read=read, written=written)


def results(messages):
    """The texts of all results, in order."""
    blocks = [block for message in messages for block in message["content"]]
    given = [
        block["toolResult"]["content"]
        for block in blocks
        if "toolResult" in block
    ]
    return [
        "".join(item.get("text", "") for item in content) for content in given
    ]


def text_of(messages):
    """All that messages say."""
    said = [
        b.get("text", "") for message in messages for b in message["content"]
    ]
    return "\n".join([*said, *results(messages)])


def recalls(messages):
    """A reply that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(messages))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def agent_of(model, plugin, tools=(look, turn), **more):
    """An agent as an application makes it."""
    return Agent(
        model,
        tools=list(tools),
        plugins=[plugin],
        system_prompt="You look for things.",
        conversation_manager=NullConversationManager(),
        callback_handler=None,
        **more,
    )


def shown(messages):
    """Messages as they are sent, for a comparison to the byte."""
    return [json.dumps(message, sort_keys=True) for message in messages]
