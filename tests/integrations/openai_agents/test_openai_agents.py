"""The OpenAI Agents SDK's agents, with its own runner and sessions, kept within the window."""

import asyncio

import pytest

pytest.importorskip(
    "agents", reason="openai-agents is not installed (make openai-agents)"
)

from agents import RunConfig, Runner

from tests.integrations.openai_agents import world
from tests.integrations.openai_agents.world import (
    Script,
    agent_of,
    calls,
    recalls,
    run,
    says,
)
from tests.integrations.outputs import NEEDLE
from ullage.integrations.openai_agents import UllageModels

GO = "Find the needle."


def two_looks():
    return [
        calls(("look", {"n": 1}), ("look", {"n": 2})),
        recalls,
        says("In the fourth drawer."),
    ]


def test_a_tool_that_runs_before_any_model_opens_what_the_store_has(tmp_path):
    script = Script(two_looks())
    with_store = UllageModels(script, store=tmp_path / "u.db")
    done = run(agent_of(with_store), GO, with_store.of("t"))
    items = done.to_input_list()
    (arguments,) = (
        item["arguments"] for item in items if item.get("name") == world.GREP
    )
    again = UllageModels(Script([]), store=tmp_path / "u.db")

    async def open_it():
        context = type("Context", (), {})()
        context.run_config, context.tool_call_id = (
            RunConfig(model_provider=again.of("t")),
            "c",
        )
        (grep,) = (tool for tool in again.tools if tool.name == world.GREP)
        return await grep.on_invoke_tool(context, arguments)

    assert f"{NEEDLE} of cupboard 2\n" in asyncio.run(open_it())


def test_a_history_that_the_provider_holds_passes_as_it_is():
    script = Script([says("Yes.")])
    ullage = UllageModels(script)

    async def main():
        config = RunConfig(model_provider=ullage.of("t"))
        return await Runner.run(
            agent_of(ullage), GO, run_config=config, conversation_id="conv_1"
        )

    assert asyncio.run(main()).final_output == "Yes."
    assert script.model.calls[0].conversation_id == "conv_1"
