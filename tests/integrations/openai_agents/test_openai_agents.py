"""The OpenAI Agents SDK's agents, with its own runner and sessions, kept within the window."""

import asyncio

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed (make openai-agents)")

from agents import RunConfig, Runner, SQLiteSession, function_tool
from agents.testing.model import ModelStep

from tests.integrations.openai_agents import world
from tests.integrations.openai_agents.world import (
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
from tests.integrations.outputs import NEEDLE, big, page
from ullage import Budget, BudgetExceeded, Limits
from ullage.integrations.openai_agents import UllageModels

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
GO = "Find the needle."


def two_looks():
    return [calls(("look", {"n": 1}), ("look", {"n": 2})), recalls, says("In the fourth drawer.")]


def turns(count, start=1):
    return [calls(("turn", {"n": n})) for n in range(start, start + count)]


def test_two_large_results_and_a_recall(tmp_path):
    script = Script(two_looks())
    ullage, memory = UllageModels(script), SQLiteSession("t", tmp_path / "s.db")
    done = run(agent_of(ullage), GO, ullage.of("t"), memory)
    assert done.final_output == "In the fourth drawer."
    given = results(asyncio.run(memory.get_items()))
    assert given[:2] == [big(1), big(2)]
    assert f"{NEEDLE} of cupboard 2\n" in given[2]
    assert len(text_of(script.sent[1])) < 20_000
    memory.close()


def test_a_hundred_calls_stay_in_a_small_window_and_share_their_prefix():
    def counted(n):
        return lambda call: calls(("turn", {"n": n}), prompt=len(text_of(call.input)) // 3)

    script = Script([*map(counted, range(1, 101)), says("Done.")])
    ullage = UllageModels(script, limits=SMALL)
    done = run(agent_of(ullage), GO, ullage.of("t"))
    assert results(done.to_input_list()) == list(map(page, range(1, 101)))
    kept = 0
    for before, after in zip(script.sent[1:], script.sent[2:], strict=False):
        assert len(text_of(after)) // 3 < 15_000
        kept += shown(after)[: len(before)] == shown(before)
    assert kept > 70


def test_a_restart_from_the_sdks_session_shows_the_same(tmp_path):
    async def ask(script, text):
        memory = SQLiteSession("t", tmp_path / "s.db")
        async with UllageModels(script, store=tmp_path / "u.db", limits=SMALL) as ullage:
            config = RunConfig(model_provider=ullage.of("t"))
            agent = agent_of(ullage)
            await Runner.run(agent, text, session=memory, run_config=config, max_turns=99)
        memory.close()

    first, second = Script([*turns(50), says("So far nothing.")]), Script([says("Nothing.")])
    asyncio.run(ask(first, GO))
    asyncio.run(ask(second, "And now?"))
    before = shown(first.sent[-1])
    assert shown(second.sent[0])[: len(before)] == before
    assert "[ullage" in text_of(second.sent[0])


def test_a_tool_that_runs_before_any_model_opens_what_the_store_has(tmp_path):
    script = Script(two_looks())
    with_store = UllageModels(script, store=tmp_path / "u.db")
    done = run(agent_of(with_store), GO, with_store.of("t"))
    items = done.to_input_list()
    (arguments,) = (item["arguments"] for item in items if item.get("name") == world.GREP)
    again = UllageModels(Script([]), store=tmp_path / "u.db")

    async def open_it():
        context = type("Context", (), {})()
        context.run_config, context.tool_call_id = RunConfig(model_provider=again.of("t")), "c"
        (grep,) = (tool for tool in again.tools if tool.name == world.GREP)
        return await grep.on_invoke_tool(context, arguments)

    assert f"{NEEDLE} of cupboard 2\n" in asyncio.run(open_it())


def too_long():
    return ModelStep.raise_error(ValueError("prompt is too long: 15500 tokens > 8000 maximum"))


def test_a_request_that_is_refused_once_is_cut_deeper():
    script = Script([*turns(12), too_long(), says("Done.")])
    ullage = UllageModels(script, limits=SMALL)
    assert run(agent_of(ullage), GO, ullage.of("t")).final_output == "Done."
    assert len(text_of(script.sent[13])) < len(text_of(script.sent[12])) * 0.8


def test_what_is_refused_for_ever_comes_out_as_it_is():
    ullage = UllageModels(Script([too_long(), too_long()]))
    with pytest.raises(ValueError, match="too long"):
        run(agent_of(ullage), GO, ullage.of("t"))


def test_twelve_conversations_on_one_object_do_not_open_each_others_outputs():
    class Many(world.ModelProvider):
        def __init__(self):
            self.models = {}

        def get_model(self, model_name):
            steps = [calls(("look", {"n": int(model_name)})), recalls, says("Done.")]
            return self.models.setdefault(model_name, Script(steps).model)

    async def main():
        ullage = UllageModels(Many())

        async def talk(n):
            config = RunConfig(model_provider=ullage.of(str(n)))
            agent = agent_of(ullage).clone(model=str(n))
            return await Runner.run(agent, GO, run_config=config)

        return ullage, await asyncio.gather(*map(talk, range(12)))

    ullage, talks = asyncio.run(main())
    for n, done in enumerate(talks):
        assert f"{NEEDLE} of cupboard {n}\n" in results(done.to_input_list())[1]
    assert len(ullage.sessions) == 12


def test_a_ref_of_another_conversation_does_not_open():
    script = Script(two_looks())
    ullage = UllageModels(script)
    items = run(agent_of(ullage), GO, ullage.of("one")).to_input_list()
    (arguments,) = (item["arguments"] for item in items if item.get("name") == world.GREP)
    script.model.extend([calls((world.GREP, arguments)), says("Not there.")])
    done = run(agent_of(ullage), GO, ullage.of("other"))
    assert "nothing is kept under" in results(done.to_input_list())[0]


def test_an_agent_as_a_tool_may_have_a_conversation_of_its_own():
    inner_models = UllageModels(Script(two_looks()))
    inner = agent_of(inner_models)

    @function_tool
    async def ask(question: str) -> str:
        """Asks a colleague."""
        config = RunConfig(model_provider=inner_models.of("inner"))
        return (await Runner.run(inner, question, run_config=config)).final_output

    ullage = UllageModels(Script([calls(("ask", {"question": "Where?"})), says("Found.")]))
    done = run(agent_of(ullage, tools=[ask]), GO, ullage.of("outer"))
    assert results(done.to_input_list()) == ["In the fourth drawer."]


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    budget = Budget(tokens=0)
    ullage = UllageModels(Script([*turns(2), says("Done.", read=700)]), budget=budget)
    run(agent_of(ullage), GO, ullage.of("t"))
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.fresh_tokens == 2 * 1_000 + 300


def test_the_last_request_of_a_budget_forbids_tools():
    script = Script([*turns(4), says("That is all.")])
    ullage = UllageModels(script, budget=Budget(tokens=4_000), limits=SMALL)
    done = run(agent_of(ullage), GO, ullage.of("t"))
    assert done.final_output == "That is all."
    assert script.model.calls[-1].model_settings.tool_choice == "none"
    with pytest.raises(BudgetExceeded):
        run(agent_of(ullage), done.to_input_list(), ullage.of("t"))


def test_a_streamed_run_is_observed():
    budget, script = Budget(tokens=0), Script(two_looks())
    ullage = UllageModels(script, budget=budget)

    async def main():
        config = RunConfig(model_provider=ullage.of("t"))
        stream = Runner.run_streamed(agent_of(ullage), GO, run_config=config)
        kinds = [event.type async for event in stream.stream_events()]
        return kinds, stream.final_output

    kinds, said = asyncio.run(main())
    assert said == "In the fourth drawer."
    assert "raw_response_event" in kinds
    assert (budget.spent.calls, budget.spent.usage.input_tokens) == (3, 3_000)


def test_a_history_that_the_provider_holds_passes_as_it_is():
    script = Script([says("Yes.")])
    ullage = UllageModels(script)

    async def main():
        config = RunConfig(model_provider=ullage.of("t"))
        return await Runner.run(agent_of(ullage), GO, run_config=config, conversation_id="conv_1")

    assert asyncio.run(main()).final_output == "Yes."
    assert script.model.calls[0].conversation_id == "conv_1"
