"""A tool of the user's that has the name of a recall tool."""

import pytest

pytest.importorskip(
    "pydantic_ai", reason="pydantic-ai is not installed (make pydantic-ai)"
)

from tests.integrations.outputs import NEEDLE, refs_in
from tests.integrations.pydantic_ai.world import (
    Script,
    agent_of,
    calls,
    look,
    results,
    run,
    says,
    text_of,
)
from ullage import Limits
from ullage.integrations.pydantic_ai import UllageCapability

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
OTHER = "ullage_get_continuation"


def get_continuation(chapter: str) -> str:
    """Goes on with a story."""
    return f"And then, in {chapter}, it rained."


def searches(messages):
    """A reply that searches under the name that the last notice gives."""
    text = text_of(messages)
    name = OTHER if f"{OTHER}(" in text else "get_continuation"
    ref = refs_in(text)[-1]
    return calls((name, {"tool_call_id": ref, "pattern": "needle"}))


def test_ours_takes_another_name_beside_the_users():
    story = calls(("get_continuation", {"chapter": "two"}))
    first = calls(("look", {"n": 1}))
    script = Script([first, searches, story, says("In the fourth drawer.")])
    agent = agent_of(
        script, UllageCapability(limits=SMALL), tools=(look, get_continuation)
    )
    answer = run(agent, "Find the needle.")
    for asked in script.asked:
        names = sorted(tool.name for tool in asked.function_tools)
        assert names == ["get_continuation", "look", OTHER]
    assert " get_continuation(" not in text_of(script.sent[1])
    given = results(answer.all_messages())
    assert NEEDLE in given[1]
    assert given[2] == "And then, in two, it rained."


def test_a_name_taken_in_the_middle_of_a_conversation_renames_ours():
    script = Script([calls(("look", {"n": 1})), searches, says("There.")])
    capability = UllageCapability(limits=SMALL)
    agent = agent_of(script, capability, tools=(look,))
    history = run(agent, "Find the needle.").all_messages()
    names = {tool.name for tool in script.asked[0].function_tools}
    assert names == {"look", "get_continuation"}
    again = Script([searches, says("There.")])
    agent = agent_of(again, capability, tools=(look, get_continuation))
    answer = run(agent, "Once more.", message_history=history)
    assert f"{OTHER}(" in text_of(again.sent[0])
    assert NEEDLE in results(answer.all_messages())[-1]
