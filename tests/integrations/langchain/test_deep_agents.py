"""Deep Agents: in the place of its own summarisation, and the whole of every result."""

import pytest

pytest.importorskip(
    "deepagents", reason="deepagents is not installed (make langchain)"
)

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware import FilesystemMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from tests.integrations.langchain.test_middleware import GO, SMALL, two_looks
from tests.integrations.langchain.world import (
    Scripted,
    calls,
    look,
    says,
    text_of,
    thread,
    turn,
)
from tests.integrations.outputs import NEEDLE, big, page
from ullage.integrations.langchain import UllageMiddleware


def deep(model, ullage, **more):
    whole = FilesystemMiddleware(
        backend=StateBackend(), tool_token_limit_before_evict=None
    )
    return create_deep_agent(
        model,
        [look, turn],
        middleware=[ullage, whole],
        checkpointer=InMemorySaver(),
        **more,
    )


def test_results_stay_whole_and_a_recall_finds_the_needle():
    model, ullage = (
        Scripted(script=two_looks()),
        UllageMiddleware(name="SummarizationMiddleware"),
    )
    messages = deep(model, ullage).invoke(GO, thread())["messages"]
    results = [m for m in messages if isinstance(m, ToolMessage)]
    assert [m.content for m in results[:2]] == [big(1), big(2)]
    assert f"{NEEDLE} of cupboard 2" in results[2].content
    assert messages[-1].text == "In the fourth drawer."
    assert len(text_of(model.sent[1][1:])) < 20_000


def test_no_summary_of_its_own_is_made_of_a_long_run():
    script = [*(calls(("turn", {"n": n})) for n in range(60)), says("Done.")]
    model = Scripted(script=script)
    ullage = UllageMiddleware(name="SummarizationMiddleware")
    messages = deep(model, ullage).invoke(GO, thread())["messages"]
    assert [m.content for m in messages if isinstance(m, ToolMessage)] == list(
        map(page, range(60))
    )
    assert len(model.sent) == 61


def test_a_sub_agent_has_a_conversation_of_its_own_on_the_same_object():
    asked = {
        "description": "Look into both cupboards.",
        "subagent_type": "general-purpose",
    }

    def reply(messages):
        is_inner = any(
            "both cupboards" in m.text for m in messages if m.type == "human"
        )
        results = [m for m in messages if isinstance(m, ToolMessage)]
        if not is_inner:
            return (
                says("It says: fourth.") if results else calls(("task", asked))
            )
        script = two_looks()
        step = script[max(len(results) - 1, 0)]
        return step(messages) if callable(step) else step

    ullage = UllageMiddleware(name="SummarizationMiddleware")
    messages = deep(Scripted(script=reply), ullage).invoke(GO, thread())[
        "messages"
    ]
    (result,) = (m for m in messages if isinstance(m, ToolMessage))
    assert "In the fourth drawer." in result.text
    assert len(ullage.sessions) == 2
    assert isinstance(messages[0], HumanMessage)
    assert SMALL.window_tokens
