"""LangChain's agents, with its own checkpointer and runner, kept within the window."""

import asyncio
import sqlite3

import pytest

pytest.importorskip("langchain", reason="langchain is not installed (make langchain)")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.integrations.langchain import world
from tests.integrations.langchain.world import (
    Scripted,
    Streaming,
    agent_of,
    calls,
    recalls,
    says,
    shown,
    text_of,
    thread,
)
from tests.integrations.outputs import NEEDLE, big, page
from ullage import Budget, BudgetExceeded, FormatError, Limits, problems
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


def test_two_large_results_and_a_recall():
    model, middleware = Scripted(script=two_looks()), UllageMiddleware()
    agent = agent_of(model, middleware, checkpointer=InMemorySaver())
    messages = agent.invoke(GO, thread())["messages"]
    assert [m.content for m in messages[2:4]] == [big(1), big(2)]
    assert messages[-1].text == "In the fourth drawer."
    assert f"{NEEDLE} of cupboard 2" in messages[5].content
    assert len(text_of(model.sent[1])) < 20_000
    (session,) = middleware.sessions._alive.values()
    assert [event.kind for event in session.events].count("observed") == 3


def test_the_same_where_it_is_awaited(tmp_path):
    model, middleware = Scripted(script=two_looks()), UllageMiddleware()

    async def main():
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
            agent = agent_of(model, middleware, checkpointer=saver)
            return (await agent.ainvoke(GO, thread()))["messages"]

    messages = asyncio.run(main())
    assert [m.content for m in messages[2:4]] == [big(1), big(2)]
    assert f"{NEEDLE} of cupboard 2" in messages[5].content


def test_untouched_messages_are_the_very_same_objects():
    seen = []

    class Outer(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            seen.append(request.messages)
            return handler(request)

    model = Scripted(script=[*fifty()[:3], says("Done.")])
    agent = create_agent(model, [world.turn], middleware=[Outer(), UllageMiddleware()])
    agent.invoke(GO)
    assert all(a is b for a, b in zip(seen[-1], model.sent[-1], strict=True))


def test_a_hundred_calls_in_a_small_window_are_legal_and_share_their_prefix():
    script = [*fifty(), *fifty(start=51), says("Done.")]
    model = Scripted(script=script, model_name="claude-opus-4-5", kind="anthropic-chat")
    middleware = UllageMiddleware(limits=SMALL)
    agent = agent_of(model, middleware, checkpointer=InMemorySaver())
    messages = agent.invoke(GO, thread())["messages"]
    assert [m.content for m in messages if isinstance(m, ToolMessage)] == [
        page(n) for n in range(1, 101)
    ]
    kept = 0
    for before, after in zip(model.sent, model.sent[1:], strict=False):
        assert len(text_of(after)) / 3 < 16_000
        kept += shown(after)[: len(before)] == shown(before)
    assert kept > 70
    claude = ChatAnthropic(model="claude-opus-4-5", api_key="none", max_tokens=100)
    for sent in model.sent[::10]:
        assert not problems(claude._get_request_payload(sent), format="anthropic")


def restarted(path, script, **settings):
    model, middleware = Scripted(script=script, **settings), UllageMiddleware(limits=SMALL)
    return model, agent_of(model, middleware, checkpointer=saver_of(path))


def test_a_restart_shows_the_same_bytes(tmp_path):
    path = tmp_path / "c.db"
    warm, agent = restarted(path, [*fifty(), says("So far nothing."), says("Nothing.")])
    agent.invoke(GO, thread())
    cold, again = restarted(path, [says("Nothing.")])
    before = agent.get_state(thread()).config
    agent.invoke({"messages": [HumanMessage("And now?", id="q")]}, thread())
    again.invoke({"messages": [HumanMessage("And now?", id="q")]}, before)
    assert shown(cold.sent[0]) == shown(warm.sent[-1])


def test_after_a_restart_the_tools_may_run_first(tmp_path):
    path = tmp_path / "c.db"
    _, agent = restarted(path, two_looks())
    for _ in agent.stream(GO, thread(), stream_mode="updates", interrupt_before=["tools"]):
        pass
    for _ in agent.stream(None, thread(), stream_mode="updates", interrupt_before=["tools"]):
        pass
    assert agent.get_state(thread()).values["messages"][-1].tool_calls[0]["name"] == world.GREP
    _, again = restarted(path, [says("In the fourth drawer.")])
    messages = again.invoke(None, thread())["messages"]
    assert f"{NEEDLE} of cupboard 2" in messages[5].content
    assert messages[-1].text == "In the fourth drawer."


def test_a_request_that_is_refused_once_is_cut_deeper():
    too_long = ContextOverflowError("prompt is too long: 15500 tokens > 8000 maximum")
    model = Scripted(script=[*fifty()[:12], too_long, says("Done.")])
    agent = agent_of(model, UllageMiddleware(limits=SMALL))
    assert agent.invoke(GO, thread())["messages"][-1].text == "Done."
    assert len(text_of(model.sent[13])) < len(text_of(model.sent[12])) * 0.8


def test_what_is_refused_for_ever_comes_out_as_the_frameworks_error():
    def refuse(messages):
        return ContextOverflowError("prompt is too long: 15500 tokens > 8000 maximum")

    middleware = UllageMiddleware()
    with pytest.raises(ContextOverflowError):
        agent_of(Scripted(script=refuse), middleware).invoke(GO)


def test_any_other_error_comes_out_at_once():
    model = Scripted(script=[ValueError("no such key")])
    with pytest.raises(ValueError, match="no such key"):
        agent_of(model, UllageMiddleware()).invoke(GO)
    assert len(model.sent) == 1


def test_twelve_conversations_on_one_object_do_not_open_each_others_outputs():
    async def main():
        middleware, saver = UllageMiddleware(), InMemorySaver()

        async def talk(n):
            def reply(messages):
                results = [m for m in messages if isinstance(m, ToolMessage)]
                if not results:
                    return calls(("look", {"n": n}))
                return recalls(messages) if len(results) == 1 else says("Done.")

            agent = agent_of(Scripted(script=reply), middleware, checkpointer=saver)
            return (await agent.ainvoke(GO, thread(str(n))))["messages"]

        talks = await asyncio.gather(*map(talk, range(12)))
        return middleware, talks

    middleware, talks = asyncio.run(main())
    for n, messages in enumerate(talks):
        assert f"{NEEDLE} of cupboard {n}\n" in messages[-2].content
    assert len(middleware.asessions) == 12


def test_a_ref_of_another_conversation_does_not_open():
    middleware, saver = UllageMiddleware(), InMemorySaver()
    model = Scripted(script=two_looks())
    one = agent_of(model, middleware, checkpointer=saver).invoke(GO, thread("one"))["messages"]
    args = one[4].tool_calls[0]["args"]
    script = [calls((world.GREP, args)), says("Not there.")]
    other = agent_of(Scripted(script=script), middleware, checkpointer=saver)
    messages = other.invoke(GO, thread("other"))["messages"]
    assert messages[2].status == "error"
    assert "nothing is kept under" in messages[2].content


def test_an_agent_within_an_agent_has_a_conversation_of_its_own():
    middleware = UllageMiddleware()
    inner_model = Scripted(script=two_looks())
    inner = agent_of(inner_model, middleware)

    def ask(question: str) -> str:
        """Asks a colleague."""
        messages = inner.invoke({"messages": [HumanMessage(question)]})["messages"]
        return messages[-1].text

    outer_model = Scripted(script=[calls(("ask", {"question": "Where?"})), says("Found.")])
    outer = agent_of(outer_model, middleware, tools=[ask], checkpointer=InMemorySaver())
    messages = outer.invoke(GO, thread())["messages"]
    assert messages[2].content == "In the fourth drawer."
    assert len(middleware.sessions) == 2


def thinking(n):
    block = {"type": "thinking", "thinking": f"Page {n}.", "signature": "c2lnbmVk" * 30}
    call = {"type": "tool_use", "id": f"t{n}", "name": "turn", "input": {"n": n}}
    asked = {"name": "turn", "args": {"n": n}, "id": f"t{n}"}
    return AIMessage([block, call], tool_calls=[asked], usage_metadata=world.usage())


def thoughts(messages):
    blocks = [b for m in messages if isinstance(m.content, list) for b in m.content]
    return sum(b["type"] == "thinking" for b in blocks)


def test_bound_reasoning_behind_an_edit_is_left_out():
    """What is sent before a thought is what it was thought upon, to the byte."""
    script = [*map(thinking, range(1, 31)), says("Done.")]
    model = Scripted(script=script, model_name="claude-sonnet-6", kind="anthropic-chat")
    agent = agent_of(model, UllageMiddleware(limits=SMALL))
    messages = agent.invoke(GO, thread())["messages"]
    assert thoughts(messages) == 30
    upon = {f"t{n}": shown(sent) for n, sent in enumerate(model.sent, 1)}
    for sent in model.sent:
        for at, message in enumerate(sent):
            if thoughts([message]):
                assert shown(sent[:at]) == upon[message.tool_calls[0]["id"]]
    shown_after_batches = {thoughts(sent) for sent in model.sent[15:]}
    assert max(shown_after_batches) < 30
    assert len(shown_after_batches) > 1  # they go in batches, and new ones stay


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    reply = AIMessage("Done.", usage_metadata=world.usage(1_000, 20, read=700, written=200))
    middleware = UllageMiddleware(budget=(budget := Budget(tokens=0)))
    agent_of(Scripted(script=[*fifty()[:2], reply]), middleware).invoke(GO)
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


def test_the_last_request_of_a_budget_forbids_tools():
    for name, choice in (("gpt-4.1", "none"), ("claude-opus-4-5", {"type": "none"})):
        model = Scripted(script=[*fifty()[:4], says("That is all.")], model_name=name)
        middleware = UllageMiddleware(budget=Budget(tokens=4_000), limits=SMALL)
        agent = agent_of(model, middleware, checkpointer=InMemorySaver())
        assert agent.invoke(GO, thread())["messages"][-1].text == "That is all."
        assert model.asked[-1]["tool_choice"] == choice
        assert isinstance(model.sent[-1][-1], HumanMessage)
        with pytest.raises(BudgetExceeded):
            agent.invoke(GO, thread())


def test_a_budget_of_a_thread_goes_on_after_a_restart(tmp_path):
    def agent_in_new_process(script):
        middleware = UllageMiddleware(budget=lambda _: Budget(tokens=1_000_000))
        agent = agent_of(
            Scripted(script=script), middleware, checkpointer=saver_of(tmp_path / "c.db")
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
    words = [piece.text for piece, _ in agent.stream(GO, thread(), stream_mode="messages")]
    assert "In the fourth drawer." in "".join(words)
    (session,) = middleware.sessions._alive.values()
    assert session.usage.input_tokens == 3_000
    model.script, model.sent = Streaming(script=[says("One two three."), says("Yes.")]).script, []
    run = agent.stream({"messages": "More?"}, thread(), stream_mode="messages")
    next(run)
    run.close()
    assert agent.invoke({"messages": "More?"}, thread())["messages"][-1].text == "Yes."


def test_the_state_shows_nothing_of_ullage_to_whoever_reads_the_result():
    agent = agent_of(Scripted(script=two_looks()), UllageMiddleware(), checkpointer=InMemorySaver())
    assert set(agent.invoke(GO, thread())) == {"messages"}
    assert set(agent.get_state(thread()).values["ullage"])


def test_what_is_no_message_of_a_model_is_refused_by_name():
    with pytest.raises(FormatError, match="a dict is none"):
        HOST.parse({"role": "user"}, "messages[0]")
