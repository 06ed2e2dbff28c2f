"""LangChain's agents, with its own checkpointer and runner, kept within the window."""

import sqlite3

import pytest

pytest.importorskip(
    "langchain", reason="langchain is not installed (make langchain)"
)

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.integrations.langchain import world
from tests.integrations.langchain.world import (
    Scripted,
    Streaming,
    agent_of,
    calls,
    recalls,
    says,
    thread,
)
from tests.integrations.outputs import NEEDLE
from ullage import Budget, BudgetExceeded, FormatError, Limits
from ullage.integrations.langchain import HOST, UllageMiddleware

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
GO = {"messages": [HumanMessage("Find the needle.")]}


def saver_of(path):
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False))


def two_looks():
    both = calls(("look", {"n": 1}), ("look", {"n": 2}))
    return [both, recalls, says("In the fourth drawer.")]


def fifty(start=1):
    return [calls(("turn", {"n": n})) for n in range(start, start + 50)]


def test_untouched_messages_are_the_very_same_objects():
    seen = []

    class Outer(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            seen.append(request.messages)
            return handler(request)

    model = Scripted(script=[*fifty()[:3], says("Done.")])
    agent = create_agent(
        model, [world.turn], middleware=[Outer(), UllageMiddleware()]
    )
    agent.invoke(GO)
    assert all(a is b for a, b in zip(seen[-1], model.sent[-1], strict=True))


def restarted(path, script, **settings):
    model, middleware = (
        Scripted(script=script, **settings),
        UllageMiddleware(limits=SMALL),
    )
    return model, agent_of(model, middleware, checkpointer=saver_of(path))


def test_after_a_restart_the_tools_may_run_first(tmp_path):
    path = tmp_path / "c.db"
    _, agent = restarted(path, two_looks())
    for _ in agent.stream(
        GO, thread(), stream_mode="updates", interrupt_before=["tools"]
    ):
        pass
    for _ in agent.stream(
        None, thread(), stream_mode="updates", interrupt_before=["tools"]
    ):
        pass
    assert (
        agent.get_state(thread()).values["messages"][-1].tool_calls[0]["name"]
        == world.GREP
    )
    _, again = restarted(path, [says("In the fourth drawer.")])
    messages = again.invoke(None, thread())["messages"]
    assert f"{NEEDLE} of cupboard 2" in messages[5].content
    assert messages[-1].text == "In the fourth drawer."


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    reply = AIMessage(
        "Done.", usage_metadata=world.usage(1_000, 20, read=700, written=200)
    )
    middleware = UllageMiddleware(budget=(budget := Budget(tokens=0)))
    agent_of(Scripted(script=[*fifty()[:2], reply]), middleware).invoke(GO)
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


def test_the_last_request_of_a_budget_forbids_tools():
    for name, choice in (
        ("gpt-4.1", "none"),
        ("claude-opus-4-5", {"type": "none"}),
    ):
        model = Scripted(
            script=[*fifty()[:4], says("That is all.")], model_name=name
        )
        middleware = UllageMiddleware(
            budget=Budget(tokens=4_000), limits=SMALL
        )
        agent = agent_of(model, middleware, checkpointer=InMemorySaver())
        assert (
            agent.invoke(GO, thread())["messages"][-1].text == "That is all."
        )
        assert model.asked[-1]["tool_choice"] == choice
        assert isinstance(model.sent[-1][-1], HumanMessage)
        with pytest.raises(BudgetExceeded):
            agent.invoke(GO, thread())


def test_a_budget_of_a_thread_goes_on_after_a_restart(tmp_path):
    def agent_in_new_process(script):
        middleware = UllageMiddleware(
            budget=lambda _: Budget(tokens=1_000_000)
        )
        agent = agent_of(
            Scripted(script=script),
            middleware,
            checkpointer=saver_of(tmp_path / "c.db"),
        )
        return middleware, agent

    for calls_so_far in (3, 4):
        script = two_looks() if calls_so_far == 3 else [says("Yes.")]
        middleware, agent = agent_in_new_process(script)
        agent.invoke(GO, thread())
        (session,) = middleware.sessions._alive.values()
        assert session.budget.spent.calls == calls_so_far


def test_a_streamed_run_is_observed_and_one_that_is_broken_off_is_not_lost():
    model, middleware = Streaming(script=two_looks()), UllageMiddleware()
    agent = agent_of(model, middleware, checkpointer=InMemorySaver())
    words = [
        piece.text
        for piece, _ in agent.stream(GO, thread(), stream_mode="messages")
    ]
    assert "In the fourth drawer." in "".join(words)
    (session,) = middleware.sessions._alive.values()
    assert session.usage.input_tokens == 3_000
    model.script, model.sent = (
        Streaming(script=[says("One two three."), says("Yes.")]).script,
        [],
    )
    run = agent.stream({"messages": "More?"}, thread(), stream_mode="messages")
    next(run)
    run.close()
    assert (
        agent.invoke({"messages": "More?"}, thread())["messages"][-1].text
        == "Yes."
    )


def test_the_state_shows_nothing_of_ullage_to_whoever_reads_the_result():
    agent = agent_of(
        Scripted(script=two_looks()),
        UllageMiddleware(),
        checkpointer=InMemorySaver(),
    )
    assert set(agent.invoke(GO, thread())) == {"messages"}
    assert set(agent.get_state(thread()).values["ullage"])


def test_what_is_no_message_of_a_model_is_refused_by_name():
    with pytest.raises(FormatError, match="a dict is none"):
        HOST.parse({"role": "user"}, "messages[0]")
