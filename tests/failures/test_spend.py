"""F101 to F110: what was paid, and what the account said of it."""

import asyncio

import pytest

from tests.failures.scenes import Writer, new_session, requests, steps, tagged
from tests.spending import is_wrap_up, most_of, reply, request
from tests.spending import new_session as spending
from ullage import AsyncSession, Budget, BudgetExceeded, Limits, Session, Usage

CHAT = "openai-chat"


def whole(turns, format=CHAT):
    return list(requests(format, turns))[-1]


def call(session, **more):
    view = session.fit(request())
    session.observe(reply(**more))
    return view


def test_f101_a_cached_token_is_counted_once_whoever_reports_it():
    """Some providers count cached tokens in, others beside; they were paid for twice."""
    inside = {
        "prompt_tokens": 1_000,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    beside = {
        "input_tokens": 100,
        "cache_read_input_tokens": 900,
        "output_tokens": 5,
    }
    for format, usage in (
        ("openai-chat", {**inside, "completion_tokens": 5}),
        ("anthropic", beside),
    ):
        session = spending(format)
        session.fit(request(format))
        session.observe({"usage": usage})
        assert session.usage == Usage(
            fresh_tokens=100, cache_read_tokens=900, output_tokens=5
        )


def test_f102_what_compaction_costs_is_in_the_account():
    """The calls for summaries, and the refused ones, were in no sum."""
    paid = Usage(fresh_tokens=1_000, output_tokens=10)
    model, budget = Writer(tagged("", usage=paid)), Budget(tokens=10**6)
    session = new_session(CHAT, 100_000, summariser=model, budget=budget)
    session.compact(whole(steps(9)))
    assert len(model.asked) == 2
    assert budget.spent.tokens == 2 * paid.total_tokens


def test_f103_an_attempt_that_failed_after_it_reported_is_counted():
    """A stream that died, and what was tried instead: one of the two was dropped."""
    session = spending(budget=Budget(tokens=10**6))
    session.fit(request())
    session.observe(reply(id="a", output=3))
    session.observe(reply(id="b", output=100))
    assert [one.usage.output_tokens for one in session.calls] == [3, 100]


def test_f104_a_reply_that_is_observed_again_counts_once():
    """Events were replayed, and paid for again."""
    session = spending(budget=Budget(tokens=10**6))
    session.fit(request())
    for id in "abaab":
        session.observe(reply(id=id))
    assert session.budget.spent.calls == 2


def test_f105_agents_side_by_side_do_not_all_pass_the_same_check():
    """Five agents looked at the same 9.90 of 10.00, and all of them called."""
    budget = Budget(tokens=4_000)
    agents = [spending(budget=budget) for _ in range(5)]
    views = list[object]()
    with pytest.raises(BudgetExceeded, match="reserved by others"):
        views.extend(agent.fit(request()) for agent in agents)
    assert 0 < len(views) < 5
    assert (len(views) - 1) * most_of(agents[0]) < 4_000


def test_f106_every_way_to_call_a_model_asks_the_budget():
    """The budget was advice: twelve times as much was spent."""
    budget = Budget(tokens=1_000)
    session = spending(budget=budget)
    call(session, prompt=1_000)
    assert is_wrap_up(session.fit(request()))
    session.observe(reply())
    with pytest.raises(BudgetExceeded):
        session.fit(request())
    with pytest.raises(BudgetExceeded):
        session.call(lambda **view: pytest.fail("it was called"), **request())
    model = Writer(tagged("It went on."))
    other = new_session(CHAT, 100_000, budget=budget, summariser=model)
    other.compact(whole(steps(9)))
    assert not model.asked


def test_f107_what_was_spent_is_not_forgotten_by_compaction_or_rewind():
    """The counters began at nought after a compaction."""
    session = spending(budget=Budget(tokens=10**6))
    for turns in (3, 9, 1):
        session.fit(request(turns=turns))
        session.observe(reply())
        session.compact(request(turns=turns))
    assert session.budget.spent.tokens == session.usage.total_tokens == 3_300
    assert Session("gpt-4.1", state=session.state).usage == session.usage


def test_f108_a_summariser_that_fails_spends_no_more_than_there_is():
    """Failed summaries were charged to nobody, and never stopped."""
    paid = Usage(fresh_tokens=400, output_tokens=10)
    model, budget = (
        Writer(tagged("", usage=paid)),
        Budget(tokens=1_000, on_exceeded="warn"),
    )
    session = new_session(CHAT, 200_000, summariser=model, budget=budget)
    for count in range(4, 20):
        session.compact(whole(steps(count)))
    assert len(model.asked) <= 3


def test_f106_the_same_for_an_event_loop():
    """The budget was advice: twelve times as much was spent."""
    limits = Limits(window_tokens=20_000)

    async def spent():
        session = AsyncSession(
            "gpt-4.1", limits=limits, format=CHAT, budget=Budget(tokens=900)
        )
        await session.fit(request())
        await session.observe(reply())
        return await session.fit(request())

    assert is_wrap_up(asyncio.run(spent()))
