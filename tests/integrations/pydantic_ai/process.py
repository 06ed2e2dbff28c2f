"""The scenario's driver for Pydantic AI: histories are kept as JSON, as an application would."""

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.usage import UsageLimits

from tests.integrations import outputs
from tests.integrations.pydantic_ai import world
from tests.integrations.pydantic_ai.world import (
    Script,
    calls,
    look,
    recalls,
    says,
    too_long,
    turn,
)
from tests.integrations.scenario import Item
from ullage import BudgetExceeded
from ullage.integrations.pydantic_ai import UllageCapability

__all__ = ["Process", "Script", "calls", "recalls", "says", "too_long"]

TOO_LONG, SPENT = ModelHTTPError, BudgetExceeded
BINDS = "claude-sonnet-6"
STREAMS_TELL_USAGE = False  # `FunctionModel` counts words itself


def sign(n: int) -> str:
    """Signs a paper."""
    return f"Signed: {n}."


class Process:
    """One capability for all conversations; each history is a file."""

    def __init__(self, folder, **settings):
        self.folder, self.ullage = folder, UllageCapability(**settings)
        self.taken = []

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        agent = self._agent(script, inner)
        if not stream:
            return await self._run(agent, name, text)
        history = await self.stored(name)
        async with agent.run_stream(text, message_history=history) as run:
            said = "".join(
                [word async for word in run.stream_text(delta=True)]
            )
            self._keep(name, run.all_messages_json())
        return said

    async def sign(self, script, name="t"):
        """Approve what waits."""
        history = await self.stored(name)
        asked = {call.tool_call_id: True for call in history[-1].tool_calls}
        approved = DeferredToolResults(approvals=asked)
        agent = self._agent(script, None)
        return await self._run(
            agent, name, None, deferred_tool_results=approved
        )

    async def stored(self, name="t"):
        """The history in its file."""
        file = self.folder / f"{name}.json"
        return (
            ModelMessagesTypeAdapter.validate_json(file.read_bytes())
            if file.exists()
            else []
        )

    async def close(self):
        """Let go of all conversations; of the last call our estimate counts, if nobody told."""
        await self.ullage.sessions.close()

    async def _run(self, agent, name, text, **more):
        history, limits = (
            await self.stored(name),
            UsageLimits(request_limit=None),
        )
        done = await agent.run(
            text, message_history=history, usage_limits=limits, **more
        )
        self._keep(name, done.all_messages_json())
        return (
            None
            if isinstance(done.output, DeferredToolRequests)
            else done.output
        )

    def _keep(self, name, kept):
        (self.folder / f"{name}.json").write_bytes(kept)

    def _agent(self, script, inner):
        tools = [look, turn, Tool(sign, requires_approval=True)]
        tools += map(outputs.story, self.taken)
        if inner is not None:
            colleague = world.agent_of(inner, self.ullage)

            async def ask(request: str) -> str:
                """Asks a colleague."""
                return (await colleague.run(request)).output

            tools.append(ask)
        return Agent(
            script.model,
            tools=tools,
            output_type=[str, DeferredToolRequests],
            capabilities=[self.ullage],
            instructions="You look for things.",
        )


def items(messages):
    """See `tests.integrations.scenario`."""
    return [_item(message) for message in messages]


def _item(message):
    role = "user" if isinstance(message, ModelRequest) else "assistant"
    text, called, given, thoughts = [], [], [], 0
    for part in message.parts:
        match part:
            case ToolCallPart():
                called.append(part.tool_call_id)
            case ToolReturnPart():
                given.append((part.tool_call_id, part.model_response_str()))
            case ThinkingPart():
                thoughts += 1
            case _:
                text.append(str(part.content))
    return Item(role, "\n".join(text), tuple(called), tuple(given), thoughts)


def faults(sent):
    """What the rules of a wire would find: only the pairs of calls and results are asked here."""
    return ()


def forbids(asked):
    """Whether tools were forbidden."""
    return (asked.model_settings or {}).get("tool_choice") == "none"


def offered(asked):
    """The names of the tools of a request."""
    return [tool.name for tool in asked.function_tools]
