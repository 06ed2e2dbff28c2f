"""Pydantic AI's agents, with its own runner and form of a history, kept within the window."""

import asyncio

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed (make pydantic-ai)")

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ThinkingPart,
    UserPromptPart,
)

from tests.integrations.outputs import NEEDLE, big, page
from tests.integrations.pydantic_ai import world
from tests.integrations.pydantic_ai.world import (
    Script,
    agent_of,
    calls,
    recalls,
    results,
    run,
    says,
    shown,
    text_of,
)
from ullage import Budget, BudgetExceeded, Limits
from ullage.integrations.pydantic_ai import UllageCapability

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
GO = "Find the needle."


def two_looks():
    return [calls(("look", {"n": 1}), ("look", {"n": 2})), recalls, says("In the fourth drawer.")]


def turns(count, start=1):
    return [calls(("turn", {"n": n})) for n in range(start, start + count)]


def stored(messages):
    """A history as an application keeps it: JSON, and read again."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))


def test_two_large_results_and_a_recall():
    script = Script(two_looks())
    done = run(agent_of(script, UllageCapability()), GO)
    given = results(done.all_messages())
    assert given[:2] == [big(1), big(2)]
    assert f"{NEEDLE} of cupboard 2\n" in given[2]
    assert done.output == "In the fourth drawer."
    assert len(text_of(script.sent[1])) < 20_000


def test_untouched_messages_are_the_very_same_objects():
    script = Script([*turns(3), says("Done.")])
    done = run(agent_of(script, UllageCapability()), GO)
    history = done.all_messages()
    assert script.sent[-1][0] is history[0]
    assert all(a is b for a, b in zip(script.sent[-1][1:], history[1:-1], strict=True))


def test_a_hundred_calls_stay_in_a_small_window_and_share_their_prefix():
    script = Script([*turns(100), says("Done.")], model="claude-opus-4-5")
    done = run(agent_of(script, UllageCapability(limits=SMALL)), GO)
    assert results(done.all_messages()) == list(map(page, range(1, 101)))
    kept = 0
    for before, after in zip(script.sent, script.sent[1:], strict=False):
        assert len(text_of(after)) / 3 < 16_000
        kept += shown(after)[: len(before)] == shown(before)
    assert kept > 70


def test_a_restart_from_the_stored_history_shows_the_same():
    warm = Script([*turns(50), says("So far nothing."), says("Nothing.")])
    agent = agent_of(warm, UllageCapability(limits=SMALL))
    history = run(agent, GO).all_messages()
    kept = stored(history)
    run(agent, "And now?", message_history=history)
    cold = Script([says("Nothing.")])
    again = agent_of(cold, UllageCapability(limits=SMALL))
    run(again, "And now?", message_history=kept)
    assert shown(cold.sent[0]) == shown(warm.sent[-1])
    assert " in short, a record" in text_of(cold.sent[0])


def test_after_a_restart_the_tools_may_run_first():
    script = Script(two_looks())
    history = run(agent_of(script, UllageCapability()), GO).all_messages()
    open_call = stored(history[:-2])
    assert open_call[-1].tool_calls[0].tool_name == world.GREP
    again = Script([says("In the fourth drawer.")])
    done = run(agent_of(again, UllageCapability()), None, message_history=open_call)
    assert f"{NEEDLE} of cupboard 2\n" in results(done.all_messages())[2]


def too_long(messages=None):
    body = {"error": {"message": "prompt is too long: 15500 tokens > 8000 maximum"}}
    return ModelHTTPError(400, "claude-opus-4-5", body)


def test_a_request_that_is_refused_once_is_cut_deeper():
    script = Script([*turns(12), too_long(), says("Done.")])
    done = run(agent_of(script, UllageCapability(limits=SMALL)), GO)
    assert done.output == "Done."
    assert len(text_of(script.sent[13])) < len(text_of(script.sent[12])) * 0.8


def test_what_is_refused_for_ever_comes_out_as_the_frameworks_error():
    script = Script(lambda _: too_long())
    with pytest.raises(ModelHTTPError):
        run(agent_of(script, UllageCapability()), GO)
    assert len(script.sent) <= 3


def test_any_other_error_comes_out_at_once_and_claims_nothing():
    script, budget = Script(lambda _: ValueError("no such key")), Budget(tokens=9_000)
    with pytest.raises(ValueError, match="no such key"):
        run(agent_of(script, UllageCapability(budget=budget)), GO)
    assert len(script.sent) == 1
    assert budget.reserved.tokens == 0


def test_twelve_conversations_on_one_object_do_not_open_each_others_outputs():
    async def main():
        capability = UllageCapability()

        async def talk(n):
            def reply(messages):
                given = results(messages)
                if not given:
                    return calls(("look", {"n": n}))
                return recalls(messages) if len(given) == 1 else says("Done.")

            done = await agent_of(Script(reply), capability).run(GO)
            return results(done.all_messages())

        return capability, await asyncio.gather(*map(talk, range(12)))

    capability, talks = asyncio.run(main())
    for n, given in enumerate(talks):
        assert f"{NEEDLE} of cupboard {n}\n" in given[1]
    assert len(capability.sessions) == 12


def test_a_ref_of_another_conversation_does_not_open():
    capability, script = UllageCapability(), Script(two_looks())
    history = run(agent_of(script, capability), GO).all_messages()
    args = history[3].tool_calls[0].args_as_dict()
    other = Script([calls((world.GREP, args)), says("Not there.")])
    given = results(run(agent_of(other, capability), GO).all_messages())
    assert "nothing is kept under" in given[0]


def test_an_agent_within_an_agent_has_a_conversation_of_its_own():
    capability = UllageCapability()
    inner = agent_of(Script(two_looks()), capability)

    async def ask(question: str) -> str:
        """Asks a colleague."""
        return (await inner.run(question)).output

    outer = Script([calls(("ask", {"question": "Where?"})), says("Found.")])
    done = run(agent_of(outer, capability, tools=[ask]), GO)
    assert results(done.all_messages()) == ["In the fourth drawer."]
    assert len(capability.sessions) == 2


def test_what_is_sent_before_a_bound_thought_is_what_it_was_thought_upon():
    def thinking(n):
        thought = ThinkingPart(f"Page {n}.", signature="c2lnbmVk" * 30, provider_name="anthropic")
        return calls(("turn", {"n": n}), before=[thought])

    steps = [*map(thinking, range(1, 31)), says("Done.")]
    script = Script(steps, model="claude-sonnet-6")
    run(agent_of(script, UllageCapability(limits=SMALL)), GO)
    upon = {
        step.tool_calls[0].tool_call_id: shown(sent)
        for step, sent in zip(steps[:-1], script.sent, strict=False)
    }
    counts = []
    for sent in script.sent:
        thoughts = 0
        for at, message in enumerate(sent):
            if any(isinstance(part, ThinkingPart) for part in message.parts):
                assert shown(sent[:at]) == upon[message.tool_calls[0].tool_call_id]
                thoughts += 1
        counts.append(thoughts)
    assert max(counts) < 30
    assert len(set(counts[15:])) > 1  # they go in batches, and new ones stay


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    script = Script([*turns(2), says("Done.", cache_read_tokens=700, cache_write_tokens=200)])
    budget = Budget(tokens=0)
    run(agent_of(script, UllageCapability(budget=budget)), GO)
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


def test_the_last_request_of_a_budget_forbids_tools():
    script = Script([*turns(4), says("That is all.")])
    agent = agent_of(script, UllageCapability(budget=Budget(tokens=4_000), limits=SMALL))
    done = run(agent, GO)
    assert done.output == "That is all."
    assert script.asked[-1].model_settings["tool_choice"] == "none"
    assert isinstance(script.sent[-1][-1].parts[-1], UserPromptPart)
    assert len(done.all_messages()) == 10
    with pytest.raises(BudgetExceeded):
        run(agent, "More?", message_history=done.all_messages())


def test_a_budget_of_a_conversation_goes_on_from_its_history():
    def asked(script, **more):
        capability = UllageCapability(budget=lambda _: Budget(tokens=1_000_000))
        history = run(agent_of(Script(script), capability), GO, **more).all_messages()
        (session,) = capability.sessions._alive.values()
        return history, session.budget.spent.calls

    history, calls_so_far = asked(two_looks())
    assert calls_so_far == 3
    assert asked([says("Yes.")], message_history=stored(history))[1] == 4


def test_a_streamed_run_is_observed_and_keeps_its_ledger():
    budget = Budget(tokens=0)
    capability, script = UllageCapability(budget=budget), Script(two_looks())

    async def main():
        async with agent_of(script, capability).run_stream(GO) as run:
            words = [word async for word in run.stream_text(delta=True)]
            return "".join(words), run.all_messages()

    said, history = asyncio.run(main())
    assert said.strip() == "In the fourth drawer."
    assert budget.spent.calls == 3
    assert f"{NEEDLE} of cupboard 2\n" in results(history)[2]
    first, second, _ = (m for m in history if isinstance(m, ModelResponse))  # the last has none
    assert first.metadata["ullage"]
    assert second.metadata["ullage"]


def test_a_run_that_is_cancelled_claims_nothing():
    budget = Budget(tokens=9_000)

    async def main():
        began, script = asyncio.Event(), Script([])

        async def reply(messages, info):
            began.set()
            await asyncio.sleep(60)

        script.model.function = reply
        run = asyncio.ensure_future(agent_of(script, UllageCapability(budget=budget)).run(GO))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert budget.reserved.tokens == 0


def test_no_model_is_shown_what_the_history_keeps_for_us():
    history = run(agent_of(Script(two_looks()), UllageCapability()), GO).all_messages()
    assert isinstance(history[0], ModelRequest)
    assert not any("opened" in text_of([message]) for message in history[:2])
