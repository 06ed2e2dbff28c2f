"""A budget and the loop: the wrap-up is an answer, what is spent ends it, no claim is left."""

import asyncio

import pytest

from tests.loop.replies import (
    FORMAT_NAMES,
    INPUT_TOKENS,
    asking,
    reply,
    request,
)
from tests.loop.test_turn import Scripted, arun, new_session, read_log, run
from ullage import Budget, BudgetExceeded, Usage
from ullage.doors.loop import run_turn

formats = pytest.mark.parametrize("format", FORMAT_NAMES)
LIMIT = 60_000


def wanting_logs(format):
    """Asks for a log each time, until it is told to sum up."""

    def script(view, number):
        if "last reply" in str(view):
            return reply(
                format, "What I have so far: all is well.", number=number
            )
        return reply(format, "", [("read_log", {"path": f"{number}"})], number)

    return script


@formats
def test_a_turn_whose_budget_is_spent_ends_with_what_the_model_has(format):
    budget = Budget(tokens=LIMIT)
    history, session = asking(format), new_session(format, budget=budget)
    budget.charge(Usage(fresh_tokens=LIMIT - 2 * INPUT_TOKENS), "gpt-4.1")
    outcome, client, _ = run(
        format,
        wanting_logs(format),
        history=history,
        session=session,
        tools=[read_log],
    )
    assert (outcome.text, outcome.why) == (
        "What I have so far: all is well.",
        "answered",
    )
    assert len(client.views) < 6
    assert [event.kind for event in session.events].count("wrapped_up") == 1
    history += asking(format, "Go on.")
    length = len(history)
    with pytest.raises(BudgetExceeded):
        run(
            format,
            wanting_logs(format),
            history=history,
            session=session,
            tools=[read_log],
        )
    assert len(history) == length


@formats
@pytest.mark.parametrize(
    "error", [ConnectionError("reset"), KeyboardInterrupt()]
)
def test_what_a_call_had_claimed_is_given_back(format, error):
    """Two sessions share it: what one did not use must not keep the other waiting."""
    budget = Budget(tokens=LIMIT)
    session, other = (new_session(format, budget=budget) for _ in range(2))
    with pytest.raises(type(error)):
        run_turn(
            Scripted(format, error), session, request(format, asking(format))
        )
    assert budget._claimed().tokens == 0
    outcome, _, _ = run(format, reply(format, "All is well."), session=other)
    assert outcome.why == "answered"
    assert budget._claimed().tokens == 0, "the last pass claims nothing"


def test_the_last_pass_never_asks_for_a_wrap_up():
    """The answer used the allowance up; that is for the next turn to tell."""
    format = "openai-chat"
    budget = Budget(tokens=LIMIT)
    budget.charge(Usage(fresh_tokens=LIMIT - 100), "gpt-4.1")
    session = new_session(format, budget=budget)
    outcome, _, _ = run(format, reply(format, "All is well."), session=session)
    assert outcome.why == "answered"
    assert "wrapped_up" not in [event.kind for event in session.events]


def test_the_async_loop_alike():
    outcome, _, session = asyncio.run(
        arun("gemini", reply("gemini", "All is well."))
    )
    assert outcome.why == "answered"
    assert session.budget._claimed().tokens == 0
