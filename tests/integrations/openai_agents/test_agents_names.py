"""A tool of an MCP server, or a handoff, that has the name of a recall tool."""

import asyncio

import pytest

pytest.importorskip(
    "agents", reason="openai-agents is not installed (make openai-agents)"
)

from agents import Agent, RunConfig, Runner, handoff
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool

from tests.integrations.openai_agents.world import (
    Script,
    agent_of,
    calls,
    look,
    says,
    text_of,
)
from tests.integrations.outputs import GREP, NEEDLE, names_in, refs_in, story
from ullage.integrations.openai_agents import UllageModels

OTHER = f"ullage_{GREP}"
PROPERTIES = {"chapter": {"type": "string"}}
TOLD = "And then, in two, it rained."


class Server(MCPServer):
    """A server with one tool, which has the name of ours."""

    name = "stories"

    def __init__(self, *, keeps):
        super().__init__()
        self._keeps, self.listed, self.read = keeps, 0, 0
        schema = {"type": "object", "properties": PROPERTIES}
        self._tool = Tool.model_validate(
            {"name": GREP, "description": "Tells.", "inputSchema": schema}
        )

    @property
    def cached_tools(self):
        """What it listed last, where it keeps that."""
        self.read += 1
        return [self._tool] if self._keeps else None

    async def list_tools(self, run_context=None, agent=None):
        """See `MCPServer`."""
        self.listed += 1
        return [self._tool]

    async def call_tool(self, tool_name, arguments, meta=None):
        """See `MCPServer`."""
        text = story(tool_name)(**arguments)
        return CallToolResult(content=[TextContent(type="text", text=text)])

    async def connect(self):
        """There is nothing to connect to."""

    async def cleanup(self):
        """There is nothing to let go of."""

    async def list_prompts(self):
        """It has none."""

    async def get_prompt(self, name, arguments=None):
        """It has none."""


def search(call):
    """A reply that searches under the name that the last notice gives."""
    text = text_of(call.input)
    arguments = {"tool_call_id": refs_in(text)[-1], "pattern": "needle"}
    return calls((names_in(text)[-1], arguments))


def ask(agent, models):
    """A run, to its end."""
    config = RunConfig(model_provider=models.of("t"))
    return asyncio.run(Runner.run(agent, "Find it.", run_config=config))


def recall_names(script):
    """Of each request, the names of its tools that are called as ours may be."""
    requests = [
        [tool.name for tool in call.tools] for call in script.model.calls
    ]
    return [[n for n in names if n.endswith(GREP)] for names in requests]


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "forgets"])
def test_a_tool_of_a_server_keeps_its_name_and_ours_opens_all_the_same(keeps):
    script = Script(
        [
            calls(("look", {"n": 1})),
            search,
            calls((GREP, {"chapter": "two"})),
            says("In the fourth drawer."),
        ]
    )
    models = UllageModels(script)
    agent = agent_of(models).clone(mcp_servers=[Server(keeps=keeps)])
    assert ask(agent, models).final_output == "In the fourth drawer."
    assert recall_names(script) == [[GREP, OTHER]] * 4
    assert {*names_in(text_of(script.sent[1]))} == {OTHER}
    assert NEEDLE in text_of(script.sent[2][-1:])
    assert TOLD in text_of(script.sent[3][-1:])


def test_a_server_that_keeps_no_list_is_asked_once_for_all_our_tools():
    script = Script([calls(("look", {"n": 1})), says("Done.")])
    models, server = UllageModels(script), Server(keeps=False)
    ask(agent_of(models).clone(mcp_servers=[server]), models)
    # the SDK lists them once for each request, and asks of our tools twice
    assert server.listed <= 2 * 3


def test_a_list_that_a_server_keeps_is_read_once_for_all_our_tools():
    script = Script([calls(("look", {"n": 1})), says("Done.")])
    models, server = UllageModels(script), Server(keeps=True)
    ask(agent_of(models).clone(mcp_servers=[server]), models)
    # it is copied deeply for whoever reads it; the SDK asks of our tools twice for each list
    assert server.read <= 2 * server.listed


def test_a_handoff_that_has_our_name_keeps_it():
    script = Script(
        [
            calls(("look", {"n": 1})),
            search,
            calls((GREP, {})),
            says("I go on."),
        ]
    )
    models = UllageModels(script)
    colleague = Agent(name="colleague", model="gpt-5.2", tools=[look])
    given = handoff(colleague, tool_name_override=GREP)
    agent = agent_of(models).clone(handoffs=[given])
    done = ask(agent, models)
    assert done.last_agent is colleague
    assert recall_names(script)[:3] == [[OTHER]] * 3
    assert NEEDLE in text_of(script.sent[2][-1:])


def test_tools_that_are_listed_twice_are_ours_all_the_same():
    script = Script([calls(("look", {"n": 1})), search, says("There.")])
    models = UllageModels(script)
    agent = agent_of(models, tools=[look, *models.tools])
    ask(agent, models)
    assert set(recall_names(script)[0]) == {GREP}
    assert NEEDLE in text_of(script.sent[2][-1:])
