"""Pydantic AI's agents, with its own runner and form of a history, kept within the window."""

import asyncio

import pytest

pytest.importorskip(
    "pydantic_ai", reason="pydantic-ai is not installed (make pydantic-ai)"
)

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.integrations.outputs import NEEDLE
from tests.integrations.pydantic_ai import world
from tests.integrations.pydantic_ai.world import (
    Script,
    agent_of,
    calls,
    recalls,
    results,
    run,
    says,
    text_of,
)
from ullage import Budget, BudgetExceeded, Limits
from ullage.integrations.pydantic_ai import UllageCapability

SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
GO = "Find the needle."


def two_looks():
    return [
        calls(("look", {"n": 1}), ("look", {"n": 2})),
        recalls,
        says("In the fourth drawer."),
    ]


def turns(count, start=1):
    return [calls(("turn", {"n": n})) for n in range(start, start + count)]


def stored(messages):
    """A history as an application keeps it: JSON, and read again."""
    return ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(messages)
    )


def test_untouched_messages_are_the_very_same_objects():
    script = Script([*turns(3), says("Done.")])
    done = run(agent_of(script, UllageCapability()), GO)
    history = done.all_messages()
    assert script.sent[-1][0] is history[0]
    assert all(
        a is b for a, b in zip(script.sent[-1][1:], history[1:-1], strict=True)
    )


def test_after_a_restart_the_tools_may_run_first():
    script = Script(two_looks())
    history = run(agent_of(script, UllageCapability()), GO).all_messages()
    open_call = stored(history[:-2])
    assert open_call[-1].tool_calls[0].tool_name == world.GREP
    again = Script([says("In the fourth drawer.")])
    done = run(
        agent_of(again, UllageCapability()), None, message_history=open_call
    )
    assert f"{NEEDLE} of cupboard 2\n" in results(done.all_messages())[2]


def test_usage_is_counted_once_for_each_call_with_the_cache_apart():
    script = Script([*turns(2), says("Done.", read=700, written=200)])
    budget = Budget(tokens=0)
    run(agent_of(script, UllageCapability(budget=budget)), GO)
    spent = budget.spent
    assert (spent.calls, spent.usage.cache_read_tokens) == (3, 700)
    assert spent.usage.cache_write_tokens == 200
    assert spent.usage.fresh_tokens == 2 * 1_000 + 100


WORDS = "one two three four\n" * 600


def note(n: int) -> str:
    """Notes a number."""
    return f"{n}: {WORDS}"


def noting(messages, info):
    """Six notes, then the end; nothing is counted."""
    replies = sum(isinstance(each, ModelResponse) for each in messages)
    if replies < 6:
        return ModelResponse(parts=[ToolCallPart("note", {"n": replies})])
    return ModelResponse(parts=[TextPart("Done.")])


async def noting_streamed(messages, info):
    """What `noting` says, as a stream."""
    (part,) = noting(messages, info).parts
    if isinstance(part, TextPart):
        yield part.content
    else:
        args = part.args_as_json_str()
        yield {0: DeltaToolCall("note", args, tool_call_id=part.tool_call_id)}


GUESSES = [
    (TestModel(call_tools=["note"]), False),
    (FunctionModel(noting), False),
    (FunctionModel(stream_function=noting_streamed), True),
]


@pytest.mark.parametrize(
    ("model", "stream"), GUESSES, ids=["test", "function", "streamed"]
)
def test_what_a_model_for_tests_guesses_is_taken_for_no_count(model, stream):
    capability = UllageCapability()
    agent = Agent(
        model,
        name="clerk",
        tools=[note],
        capabilities=[capability],
        instructions="Note it. " * 2_000,
    )

    async def main():
        history = []
        for _ in range(4):
            if stream:
                async with agent.run_stream(
                    GO, message_history=history
                ) as run:
                    await run.get_output()
            else:
                run = await agent.run(GO, message_history=history)
            history = run.all_messages()

    asyncio.run(main())
    (session,) = capability.sessions.find()
    kinds = {event.kind for event in session.events}
    assert not kinds & {"undercounted", "observed"}
    assert not any("refused" in event.why for event in session.events)


def test_the_last_request_of_a_budget_forbids_tools():
    script = Script([*turns(4), says("That is all.")])
    agent = agent_of(
        script, UllageCapability(budget=Budget(tokens=4_000), limits=SMALL)
    )
    done = run(agent, GO)
    assert done.output == "That is all."
    assert script.asked[-1].model_settings["tool_choice"] == "none"
    assert isinstance(script.sent[-1][-1].parts[-1], UserPromptPart)
    assert len(done.all_messages()) == 10
    with pytest.raises(BudgetExceeded):
        run(agent, "More?", message_history=done.all_messages())


def test_a_budget_of_a_conversation_goes_on_from_its_history():
    def asked(script, **more):
        capability = UllageCapability(
            budget=lambda _: Budget(tokens=1_000_000)
        )
        history = run(
            agent_of(Script(script), capability), GO, **more
        ).all_messages()
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
        await (
            capability.sessions.close()
        )  # a report too small to be true is counted now
        return "".join(words), run.all_messages()

    said, history = asyncio.run(main())
    assert said.strip() == "In the fourth drawer."
    assert budget.spent.calls == 3
    assert f"{NEEDLE} of cupboard 2\n" in results(history)[2]
    first, second, _ = (
        m for m in history if isinstance(m, ModelResponse)
    )  # the last has none
    assert first.metadata["ullage"]
    assert "ullage" in second.metadata


def test_no_model_is_shown_what_the_history_keeps_for_us():
    history = run(
        agent_of(Script(two_looks()), UllageCapability()), GO
    ).all_messages()
    assert isinstance(history[0], ModelRequest)
    assert not any("opened" in text_of([message]) for message in history[:2])
