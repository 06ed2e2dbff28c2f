"""The scenario's driver for the OpenAI Agents SDK: SQLite sessions, and ullage's store on disk."""

from contextvars import ContextVar

from agents import (
    Agent,
    Model,
    ModelProvider,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
)

from tests.integrations import outputs
from tests.integrations.openai_agents import world
from tests.integrations.openai_agents.world import (
    calls,
    look,
    recalls,
    says,
    too_long,
    turn,
)
from tests.integrations.scenario import Hang, Item
from ullage import BudgetExceeded, problems
from ullage.integrations.openai_agents import UllageModels

__all__ = ["Process", "calls", "recalls", "says", "too_long"]

TOO_LONG, SPENT = ValueError, BudgetExceeded
BINDS = None  # the server leaves out what it would refuse
STREAMS_TELL_USAGE = True
_NOW = ContextVar("script")


class Script(Model):
    """The SDK's scripted model, which also tells the very items that it was given."""

    def __init__(self, steps, model):
        self.steps, self.model, self.sent, self.asked = steps, model, [], []
        self._inner = world.Script(
            [step for step in steps if not isinstance(step, Hang)]
        ).model

    async def get_response(self, *given, **named):
        """See `Model`."""
        await self._take(named)
        return await self._inner.get_response(*given, **named)

    async def stream_response(self, *given, **named):
        """See `Model`."""
        await self._take(named)
        async for event in self._inner.stream_response(*given, **named):
            yield event

    async def _take(self, named):
        step = self.steps[len(self.sent)]
        self.sent.append(named["input"])
        self.asked.append(named)
        if isinstance(step, Hang):
            await step.forever()


class _Models(ModelProvider):
    """The model whose turn it is."""

    def get_model(self, model_name):
        """See `ModelProvider`."""
        return _NOW.get()


@function_tool(needs_approval=True)
def sign(n: int) -> str:
    """Signs a paper."""
    return f"Signed: {n}."


class Process:
    """Models for all conversations; a run that waits is kept as the SDK writes it."""

    def __init__(self, folder, **settings):
        self.folder, self.taken = folder, []
        self.ullage = UllageModels(
            _Models(), store=folder / "ullage.db", **settings
        )

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        return await self._run(script, text, name, stream=stream, inner=inner)

    async def sign(self, script, name="t"):
        """Approve what waits."""
        agent = self._agent(script)
        state = await RunState.from_string(
            agent, (self.folder / f"{name}.json").read_text()
        )
        for waiting in state.get_interruptions():
            state.approve(waiting)
        return await self._run(script, state, name)

    async def stored(self, name="t"):
        """The items of the SDK's session."""
        memory = self._memory(name)
        items = await memory.get_items()
        memory.close()
        return items

    async def close(self):
        """Close the store."""
        await self.ullage.close()

    async def _run(self, script, asked, name, *, stream=False, inner=None):
        _NOW.set(script)
        agent, memory = self._agent(script, inner), self._memory(name)
        config = RunConfig(model_provider=self.ullage.of(name))
        more = {"session": memory, "run_config": config, "max_turns": 200}
        try:
            if stream:
                done = Runner.run_streamed(agent, asked, **more)
                async for _ in done.stream_events():
                    pass
            else:
                done = await Runner.run(agent, asked, **more)
        finally:
            memory.close()
        if done.interruptions:
            (self.folder / f"{name}.json").write_text(
                done.to_state().to_string()
            )
            return None
        return done.final_output

    def _memory(self, name):
        return SQLiteSession(name, self.folder / "sessions.db")

    def _agent(self, script, inner=None):
        stories = [function_tool(outputs.story(name)) for name in self.taken]
        tools = [look, turn, sign, *stories, *self.ullage.tools]

        @function_tool
        async def ask(request: str) -> str:
            """Asks a colleague."""
            outer = _NOW.set(inner)
            config = RunConfig(model_provider=self.ullage.of("inner"))
            done = await Runner.run(
                self._agent(inner), request, run_config=config
            )
            _NOW.reset(outer)
            return done.final_output

        told = "You look for things."
        tools += [ask] if inner else []
        return Agent(
            name="finder", instructions=told, model=script.model, tools=tools
        )


def items(messages):
    """See `tests.integrations.scenario`."""
    return [_item(each) for each in messages]


def _item(item):
    kind = item.get("type", "message")
    if kind == "function_call":
        return Item("assistant", "", (item["call_id"],))
    if kind == "function_call_output":
        return Item("tool", "", (), ((item["call_id"], item["output"]),))
    if kind == "reasoning":
        return Item("assistant", thoughts=1)
    content = item["content"]
    if not isinstance(content, str):
        content = "\n".join(block["text"] for block in content)
    return Item(item["role"], content)


def faults(sent):
    """What the Responses API would refuse of the items."""
    return problems(
        {"model": "gpt-5.2", "input": sent}, format="openai-responses"
    )


def forbids(asked):
    """Whether tools were forbidden."""
    return asked["model_settings"].tool_choice == "none"


def offered(asked):
    """The names of the tools of a request."""
    return [tool.name for tool in asked["tools"]]
