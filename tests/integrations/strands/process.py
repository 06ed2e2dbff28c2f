"""The scenario's driver for Strands: a file session manager keeps the agents."""

from strands import tool
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

from tests.integrations import outputs
from tests.integrations.scenario import Item
from tests.integrations.strands.world import (
    Scripted,
    agent_of,
    calls,
    look,
    recalls,
    says,
    turn,
)
from ullage import BudgetExceeded
from ullage.integrations.strands import UllageStrandsPlugin

__all__ = ["Process", "Script", "calls", "recalls", "says"]

TOO_LONG, SPENT = ContextWindowOverflowException, BudgetExceeded
BINDS = "claude-sonnet-6"
STREAMS_TELL_USAGE = True
Script = Scripted


def too_long():
    """What a provider says of a request that is too long."""
    return ContextWindowOverflowException(
        "prompt is too long: 15500 tokens > 8000 maximum"
    )


@tool(context=True)
def sign(n: int, tool_context) -> str:
    """Signs a paper."""
    tool_context.interrupt("sign", reason=n)
    return f"Signed: {n}."


class Process:
    """One plugin for all agents; each turn is that of an agent restored from its files."""

    def __init__(self, folder, **settings):
        self.folder, self.ullage = folder, UllageStrandsPlugin(**settings)
        self.taken = []

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        agent = self._agent(script, name, inner)
        if not stream:
            return _said(await agent.invoke_async(text))
        events = [event async for event in agent.stream_async(text)]
        return "".join(event["data"] for event in events if "data" in event)

    async def sign(self, script, name="t"):
        """Answer what was interrupted for."""
        agent = self._agent(script, name)
        (waiting,) = agent._interrupt_state.interrupts.values()
        answer = {"interruptId": waiting.id, "response": "yes"}
        return _said(await agent.invoke_async([{"interruptResponse": answer}]))

    async def stored(self, name="t"):
        """The messages that the session manager restores."""
        return self._agent(Script([]), name).messages

    async def close(self):
        """Let go of the plugin's sessions."""
        await self.ullage.sessions.close()

    def _agent(self, script, name, inner=None):
        manager = FileSessionManager(
            session_id=name, storage_dir=str(self.folder)
        )
        stories = [tool(outputs.story(name)) for name in self.taken]
        tools = [look, turn, sign, *stories]
        if inner is not None:
            colleague = agent_of(inner, self.ullage)

            @tool
            async def ask(request: str) -> str:
                """Asks a colleague."""
                return str(await colleague.invoke_async(request))

            tools.append(ask)
        return agent_of(script, self.ullage, tools, session_manager=manager)


def _said(result):
    return None if result.stop_reason == "interrupt" else str(result)


def items(messages):
    """See `tests.integrations.scenario`."""
    return [_item(message) for message in messages]


def _item(message):
    text = "\n".join(
        block["text"] for block in message["content"] if "text" in block
    )
    called = (
        block["toolUse"]["toolUseId"]
        for block in message["content"]
        if "toolUse" in block
    )
    given = [
        block["toolResult"]
        for block in message["content"]
        if "toolResult" in block
    ]
    results = tuple(
        (each["toolUseId"], each["content"][0]["text"]) for each in given
    )
    thoughts = sum("reasoningContent" in block for block in message["content"])
    return Item(message["role"], text, tuple(called), results, thoughts)


def faults(sent):
    """Converse has no rules here of its own: the pairs of calls and results are asked anyway."""
    return ()


def forbids(asked):
    """Strands cannot forbid tools."""
    return None


def offered(asked):
    """The names of the tools of a request."""
    return [spec["name"] for spec in asked["tools"]]
