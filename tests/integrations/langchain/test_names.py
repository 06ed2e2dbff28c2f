"""A tool of the user's that has the name of a recall tool."""

import pytest

pytest.importorskip(
    "langchain", reason="langchain is not installed (make langchain)"
)

import asyncio

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from tests.integrations.langchain.world import (
    Scripted,
    agent_of,
    calls,
    look,
    says,
    text_of,
    thread,
)
from tests.integrations.outputs import NEEDLE, refs_in
from ullage import Limits
from ullage.integrations.langchain import UllageMiddleware

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
GO = {"messages": [HumanMessage("Find the needle.")]}
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


def offered(model):
    """The names of the tools in each request."""
    tools = [asked["tools"] for asked in model.asked]
    return [[_name(tool) for tool in request] for request in tools]


def _name(tool):
    return getattr(tool, "name", None) or tool["function"]["name"]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_ours_takes_another_name_beside_the_users(is_awaited):
    script = [
        calls(("look", {"n": 1})),
        searches,
        calls(("get_continuation", {"chapter": "two"})),
        says("In the fourth drawer."),
    ]
    model, middleware = Scripted(script=script), UllageMiddleware(limits=SMALL)
    agent = agent_of(model, middleware, tools=(look, get_continuation))
    if is_awaited:
        messages = asyncio.run(agent.ainvoke(GO))["messages"]
    else:
        messages = agent.invoke(GO)["messages"]
    for names in offered(model):
        assert sorted(names) == ["get_continuation", "look", OTHER]
    notices = text_of(model.sent[1])
    assert f"{OTHER}(" in notices
    assert " get_continuation(" not in notices
    assert messages[4].name == OTHER
    assert NEEDLE in messages[4].text
    assert messages[6].text == "And then, in two, it rained."


def test_without_such_a_tool_the_model_is_offered_one_name():
    model = Scripted(script=[calls(("look", {"n": 1})), says("Done.")])
    agent_of(model, UllageMiddleware(limits=SMALL), tools=(look,)).invoke(GO)
    assert [sorted(names) for names in offered(model)] == 2 * [
        ["get_continuation", "look"]
    ]


def test_a_name_taken_in_the_middle_of_a_thread_renames_ours_and_back():
    saver = InMemorySaver()

    def run(script, *tools):
        model = Scripted(script=script)
        middleware = UllageMiddleware(limits=SMALL)
        agent = agent_of(model, middleware, tools=tools, checkpointer=saver)
        return model, agent.invoke(GO, thread())["messages"]

    run([calls(("look", {"n": 1})), searches, says("There.")], look)
    model, messages = run([searches, says("There.")], look, get_continuation)
    assert f"{OTHER}(" in text_of(model.sent[0])
    assert messages[-2].name == OTHER
    assert NEEDLE in messages[-2].text
    model, messages = run([searches, says("There.")], look)
    assert f"{OTHER}(tool_call_id" not in text_of(model.sent[0][:4])
    assert messages[-2].name == "get_continuation"
    assert NEEDLE in messages[-2].text
