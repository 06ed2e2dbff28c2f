"""The scenario's drivers for LangChain: threads are kept in an SQLite checkpointer."""

import sqlite3
from contextlib import asynccontextmanager

from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from tests.integrations import outputs
from tests.integrations.langchain.world import (
    Streaming,
    agent_of,
    calls,
    look,
    recalls,
    says,
    thread,
    turn,
)
from tests.integrations.scenario import Item
from ullage import BudgetExceeded, problems
from ullage.integrations.langchain import UllageMiddleware

__all__ = ["Awaited", "Process", "Script", "calls", "recalls", "says"]

TOO_LONG, SPENT = ContextOverflowError, BudgetExceeded
BINDS = "claude-sonnet-6"
STREAMS_TELL_USAGE = True


def Script(steps, model):
    """A model that streams where it is asked to."""
    return Streaming(script=steps, model_name=model, kind="anthropic-chat")


def too_long():
    """What a provider says of a request that is too long."""
    return ContextOverflowError(
        "prompt is too long: 15500 tokens > 8000 maximum"
    )


def sign(n: int) -> str:
    """Signs a paper."""
    interrupt(f"May {n} be signed?")
    return f"Signed: {n}."


class Process:
    """One middleware for all threads, in agents that are invoked."""

    def __init__(self, folder, **settings):
        self.file, self.ullage = (
            folder / "threads.db",
            UllageMiddleware(**settings),
        )
        self.taken = []
        self.saver = SqliteSaver(
            sqlite3.connect(self.file, check_same_thread=False)
        )

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        agent, asked = (
            self._agent(script, inner),
            {"messages": [HumanMessage(text)]},
        )
        if stream:
            pieces = agent.stream(asked, thread(name), stream_mode="messages")
            said = [
                piece
                for piece, _ in pieces
                if not isinstance(piece, ToolMessage)
            ]
            return "".join(piece.text for piece in said)
        return _said(agent.invoke(asked, thread(name)))

    async def sign(self, script, name="t"):
        """Resume what was interrupted."""
        return _said(
            self._agent(script).invoke(Command(resume=True), thread(name))
        )

    async def stored(self, name="t"):
        """The messages of the last checkpoint."""
        return self.saver.get_tuple(thread(name)).checkpoint["channel_values"][
            "messages"
        ]

    async def close(self):
        """Let go of the file."""
        self.saver.conn.close()

    def _agent(self, script, inner=None):
        def ask(request: str) -> str:
            """Asks a colleague."""
            said = agent_of(inner, self.ullage).invoke(
                {"messages": [HumanMessage(request)]}
            )
            return said["messages"][-1].text

        stories = map(outputs.story, self.taken)
        tools = [look, turn, sign, *stories, *([ask] if inner else ())]
        return agent_of(script, self.ullage, tools, checkpointer=self.saver)


class Awaited:
    """The same where agents are awaited."""

    def __init__(self, folder, **settings):
        self.file, self.ullage = (
            folder / "threads.db",
            UllageMiddleware(**settings),
        )
        self.taken = []

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        asked = {"messages": [HumanMessage(text)]}
        async with self._agent(script, inner) as agent:
            if not stream:
                return _said(await agent.ainvoke(asked, thread(name)))
            pieces = agent.astream(asked, thread(name), stream_mode="messages")
            said = [
                piece
                async for piece, _ in pieces
                if not isinstance(piece, ToolMessage)
            ]
            return "".join(piece.text for piece in said)

    async def sign(self, script, name="t"):
        """Resume what was interrupted."""
        async with self._agent(script) as agent:
            return _said(
                await agent.ainvoke(Command(resume=True), thread(name))
            )

    async def stored(self, name="t"):
        """The messages of the last checkpoint."""
        async with AsyncSqliteSaver.from_conn_string(str(self.file)) as saver:
            found = await saver.aget_tuple(thread(name))
            return found.checkpoint["channel_values"]["messages"]

    async def close(self):
        """There is nothing to let go of."""

    @asynccontextmanager
    async def _agent(self, script, inner=None):
        async def ask(request: str) -> str:
            """Asks a colleague."""
            asked = {"messages": [HumanMessage(request)]}
            return (await agent_of(inner, self.ullage).ainvoke(asked))[
                "messages"
            ][-1].text

        stories = map(outputs.story, self.taken)
        tools = [look, turn, sign, *stories, *([ask] if inner else ())]
        async with AsyncSqliteSaver.from_conn_string(str(self.file)) as saver:
            yield agent_of(script, self.ullage, tools, checkpointer=saver)


def _said(state):
    return None if "__interrupt__" in state else state["messages"][-1].text


def items(messages):
    """See `tests.integrations.scenario`."""
    return [_item(message) for message in messages]


def _item(message):
    if isinstance(message, ToolMessage):
        return Item("tool", results=((message.tool_call_id, message.text),))
    role = {AIMessage: "assistant", SystemMessage: "system"}.get(
        type(message), "user"
    )
    called = tuple(call["id"] for call in getattr(message, "tool_calls", ()))
    blocks = message.content if isinstance(message.content, list) else ()
    thoughts = sum(block["type"] == "thinking" for block in blocks)
    return Item(role, message.text, called, (), thoughts)


_CLAUDE = ChatAnthropic(
    model="claude-opus-4-5", api_key="none", max_tokens=100
)


def faults(sent):
    """What Anthropic would refuse of the messages, as LangChain's own class sends them."""
    return problems(_CLAUDE._get_request_payload(sent), format="anthropic")


def forbids(asked):
    """Whether tools were forbidden."""
    return asked.get("tool_choice") in ("none", {"type": "none"})


def offered(asked):
    """The names of the tools of a request."""
    return [_name(tool) for tool in asked["tools"]]


def _name(tool):
    return getattr(tool, "name", None) or tool["function"]["name"]
