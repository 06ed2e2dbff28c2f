"""Budgets: what is counted, when it is used up, and what happens then."""

import asyncio
import gc
import weakref
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spending import (
    is_wrap_up,
    most_of,
    new_async_session,
    new_session,
    reply,
    request,
)
from ullage import Budget, BudgetExceeded, ConfigError, Session, Spent, Usage
from ullage.core.tokens.catalog import lookup
from ullage.session.spend.allowance import WRAP_UP, Allowance, Claim


def told(session, kind):
    return [event for event in session.events if event.kind == kind]


def call(session, prompt=1_000, output=100):
    view = session.fit(request())
    session.observe(reply(prompt=prompt, output=output))
    return view


# The conversation of a session whose budget is used up


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "**Hard Budgeting**: A session-wide token budget can be enforced via "
    "`SRE_AGENT_TOKEN_BUDGET` (environment variable).",
    lives="ullage.session.spend.budget",
)
def test_a_session_is_let_go_on_until_the_allowance_is_used_up(monkeypatch):
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", "3,000")
    session = new_session(budget=Budget.from_env())
    for _ in range(3):
        assert not is_wrap_up(call(session))
    assert session.budget.spent.tokens == 3_300
    assert is_wrap_up(session.fit(request()))


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "If exceeded, the agent will pause and ask to summarize findings with available data.",
    lives="ullage.session.spend.budget",
)
def test_then_it_is_asked_once_to_sum_up_and_after_that_refused():
    session = new_session(budget=Budget(tokens=1_000))
    call(session, 900, 300)
    asked, view = request(), session.fit(request())
    assert view["messages"] == [
        *asked["messages"],
        {"role": "user", "content": WRAP_UP},
    ]
    assert view["tool_choice"] == "none"
    (event,) = told(session, "wrapped_up")
    assert "1,200 of 1,000 tokens" in event.why
    assert event.tokens_after > 0
    estimate = session.window.estimate
    for _ in range(2):
        with pytest.raises(BudgetExceeded) as caught:
            session.fit(request())
    error = caught.value
    assert (error.unit, error.allowance, error.spent) == (
        "tokens",
        1_000,
        1_200 + estimate,
    )
    assert not error.can_retry
    session.observe(reply())
    with pytest.raises(
        BudgetExceeded, match=r"1,000 tokens is spent \(2,300 used"
    ):
        session.fit(request())


def test_the_same_for_an_event_loop():
    async def played():
        async with new_async_session(budget=Budget(tokens=1_000)) as session:
            await session.fit(request())
            await session.observe(reply(prompt=2_000))
            assert is_wrap_up(await session.fit(request()))
            with pytest.raises(BudgetExceeded):
                await session.fit(request())

    asyncio.run(played())


def test_a_session_of_an_event_loop_gives_back_as_well():
    async def played():
        budget = Budget(tokens=5_000)
        async with new_async_session(budget=budget) as session:
            await session.fit(request())
            assert budget.reserved.tokens == most_of(session)
        assert budget.reserved == Claim()
        assert [each.reported for each in session.calls] == [False]

    asyncio.run(played())


def test_a_budget_that_stops_asks_nothing_more():
    session = new_session(budget=Budget(tokens=1_000, on_exceeded="stop"))
    call(session, 900, 300)
    with pytest.raises(BudgetExceeded):
        session.fit(request())
    assert told(session, "wrapped_up") == []


def test_a_budget_that_warns_tells_of_it_once_and_goes_on():
    session = new_session(
        budget=Budget(tokens=1_000, on_exceeded="warn", warn_at=0)
    )
    for _ in range(4):
        assert not is_wrap_up(call(session))
    (event,) = told(session, "warned")
    assert event.why == "the budget is spent: 1,100 of 1,000 tokens"


def test_the_warning_comes_once_for_all_sessions_of_a_budget():
    budget = Budget(tokens=10_000, warn_at=0.5)
    one, two = new_session(budget=budget), new_session(budget=budget)
    call(one, 4_000, 900)
    assert told(one, "warned") == []
    call(two, 90, 10)
    call(one, 1_000, 0)
    assert told(one, "warned") == []
    (event,) = told(two, "warned")
    assert event.why == "the budget is nearly spent: 5,000 of 10,000 tokens"


def test_each_session_of_a_budget_has_its_own_wrap_up():
    budget = Budget(tokens=1_000)
    one, two = new_session(budget=budget), new_session(budget=budget)
    call(one, 2_000)
    for session in (one, two):
        assert is_wrap_up(session.fit(request()))
        session.observe(reply())
        with pytest.raises(BudgetExceeded):
            session.fit(request())


def test_the_words_are_data():
    words = "Pause, and summarize your findings with available data."
    session = new_session(budget=Budget(tokens=1, words=words))
    call(session)
    assert session.fit(request())["messages"][-1]["content"] == words


def test_a_larger_budget_goes_on_from_what_was_spent():
    session = new_session(budget=Budget(tokens=1_000, usd=1.0))
    call(session, 900, 300)
    more = Budget(tokens=2_400, spent=session.budget.spent)
    later = new_session(budget=more, state=session.state)
    assert later.fit(request()) == request()
    later.observe(reply(prompt=900, output=300))
    assert more.spent.calls == 2
    assert is_wrap_up(later.fit(request()))


# Calls under way


def test_calls_side_by_side_do_not_all_pass_the_same_check():
    budget = Budget(
        tokens=10_000, spent=Spent(usage=Usage(fresh_tokens=9_900))
    )
    first, *others = (new_session(budget=budget) for _ in range(5))
    assert not is_wrap_up(first.fit(request()))
    for other in others:
        with pytest.raises(
            BudgetExceeded, match=r"9,900 used, .* reserved by others"
        ) as caught:
            other.fit(request())
        assert caught.value.can_retry


def test_a_call_that_failed_is_given_back_and_costs_nothing():
    budget = Budget(tokens=5_000, on_exceeded="stop")
    session = new_session(budget=budget)
    for _ in range(9):
        session.fit(request())
        assert budget.reserved.tokens == most_of(session)
        session.release()
    session.close()
    assert budget.spent == Spent()


@pytest.mark.parametrize("end", ["release", "close"])
def test_what_is_claimed_can_be_given_back(end):
    budget = Budget(tokens=5_000)
    session = new_session(budget=budget)
    session.fit(request())
    assert budget.reserved.tokens > 0
    getattr(session, end)()
    assert budget.reserved == Claim()


def test_a_session_that_is_dropped_claims_nothing_any_more():
    budget = Budget(tokens=5_000)
    session = new_session(budget=budget)
    session.fit(request())
    assert budget.reserved.tokens > 0
    del session
    gc.collect()
    assert budget.reserved == Claim()


def test_a_wrap_up_that_was_released_is_given_again():
    session = new_session(budget=Budget(tokens=1_000))
    call(session)
    assert is_wrap_up(session.fit(request()))
    session.release()
    assert is_wrap_up(session.fit(request()))
    session.observe(reply())
    session.release()
    with pytest.raises(BudgetExceeded):
        session.fit(request())


def test_no_more_is_claimed_than_the_model_can_say():
    budget = Budget(tokens=500_000)
    session = Session("gpt-4.1", budget=budget)
    session.fit({**request(), "max_tokens": 100_000})
    longest = lookup("gpt-4.1").max_output_tokens
    assert budget.reserved.tokens == most_of(session) - 1_000 + longest


# What is counted


def test_two_attempts_of_one_call_are_both_counted():
    session = new_session(budget=Budget(tokens=100_000))
    session.fit(request())
    session.observe(reply(id="a"))
    session.observe(reply(id="b"))
    assert session.budget.spent.calls == 2
    assert session.usage.total_tokens == session.budget.spent.tokens == 2_200


def test_the_very_same_reply_is_counted_once():
    session = new_session(budget=Budget(tokens=100_000))
    session.fit(request())
    for name in ("a", "b", "a", "a", "b"):
        session.observe(reply(id=name))
    assert session.budget.spent.calls == 2
    assert session.usage.total_tokens == session.budget.spent.tokens == 2_200


def test_a_reply_without_usage_is_counted_by_our_estimate_of_its_prompt():
    session = new_session(budget=Budget(tokens=100_000))
    session.fit(request())
    session.observe({"choices": []})
    estimate = session.window.estimate
    assert session.budget.spent.tokens == 0
    session.fit(request())
    (unreported,) = session.calls
    assert unreported.usage == Usage(fresh_tokens=estimate)
    assert not unreported.reported
    assert session.usage == Usage()


def test_pieces_of_a_stream_that_tell_nothing_are_not_counted():
    session = new_session(budget=Budget(tokens=100_000))
    session.fit(request())
    for piece in ({"choices": []}, {"choices": []}, reply(), {"choices": []}):
        session.observe(piece)
    session.fit(request())
    assert session.budget.spent.tokens == 1_100


def test_calls_of_others_can_be_charged():
    budget = Budget(tokens=1_000)
    budget.charge(Usage(fresh_tokens=2_000), "gpt-4.1", agent="summariser")
    assert is_wrap_up(new_session(budget=budget).fit(request()))


def test_a_rewind_gives_nothing_back():
    session = new_session(budget=Budget(tokens=100_000))
    for turns in (3, 1, 3):
        session.fit(request(turns=turns))
        session.observe(reply())
    assert session.budget.spent.tokens == 3_300


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(
            ("fit", "observe", "observe", "unreported", "release")
        ),
        st.integers(1, 3_000),
    ),
    max_size=25,
)


@given(
    STEPS,
    st.sampled_from((None, 4_000, 9_000)),
    st.sampled_from(("wrap_up", "stop", "warn")),
)
def test_spent_is_what_was_observed_and_nothing_stays_claimed(
    steps, tokens, mode
):
    budget = Budget(tokens=tokens or 0, on_exceeded=mode)
    sessions = [new_session(budget=budget, agent=str(n)) for n in range(3)]
    for session in sessions:
        session.fit(request())
    views, observed = [0, 0, 0], {}
    for who, step, size in steps:
        session = sessions[who]
        match step:
            case "fit":
                with suppress(BudgetExceeded):
                    session.fit(request())
                    views[who] += 1
            case "observe":
                session.observe(reply(prompt=size, output=7))
                view = who, views[who]
                observed[view] = max(observed.get(view, 0), size + 7)
            case "unreported":
                session.observe({"choices": []})
            case "release":
                session.release()
        assert budget.reserved.tokens >= 0
        reported = [each for each in budget.calls if each.reported]
        assert sum(each.usage.total_tokens for each in reported) == sum(
            observed.values()
        )
        assert (
            sum(each.usage.total_tokens for each in budget.calls)
            == budget.spent.tokens
        )
        assert budget.spent.estimated_tokens == sum(
            each.usage.total_tokens
            for each in budget.calls
            if not each.reported
        )
    for session in sessions:
        session.close()
    assert budget.reserved == Claim()
    assert [len(session.calls) for session in sessions] == [
        budget.totals("agent").get(str(n), Spent()).calls for n in range(3)
    ]


# Money


def test_money_is_an_allowance_too():
    session = new_session(budget=Budget(usd=0.01))
    call(session, 5_000, 10)
    assert session.cost_usd == session.budget.spent.cost_usd > 0.01
    view = session.fit(request())
    assert is_wrap_up(view)
    with pytest.raises(BudgetExceeded) as caught:
        session.fit(request())
    assert caught.value.unit == "usd"


def test_money_is_claimed_before_it_is_spent():
    budget = Budget(usd=0.005, on_exceeded="stop")
    new = [new_session(budget=budget) for _ in range(2)]
    new[0].fit(request())
    assert budget.reserved.usd == pytest.approx(
        (most_of(new[0]) - 1_000) * 2 / 1e6 + 1_000 * 8 / 1e6
    )
    with pytest.raises(BudgetExceeded):
        new[1].fit(request())


def test_money_cannot_be_limited_where_no_price_is_known():
    session = Session(
        "no-such-model", format="openai-chat", budget=Budget(usd=1.0)
    )
    unpriced = {**request(), "model": "no-such-model"}
    with pytest.raises(
        ConfigError, match="no price is known for 'no-such-model'"
    ):
        session.fit(unpriced)
    session.fit(
        request()
    )  # the request's model goes first, and this one has a price


def test_an_unknown_cost_is_never_nought():
    budget = Budget(usd=1.0)
    budget.charge(Usage(fresh_tokens=10), "no-such-model")
    assert budget.spent.cost_usd is None
    with pytest.raises(ConfigError, match="price is not known"):
        new_session(budget=budget).fit(request())


def test_tokens_can_be_limited_where_no_price_is_known():
    budget = Budget(tokens=1_000)
    session = Session("no-such-model", format="openai-chat", budget=budget)
    session.fit({**request(), "model": "no-such-model"})
    session.observe(reply())
    assert (
        session.calls[0].cost_usd
        is session.cost_usd
        is budget.spent.cost_usd
        is None
    )
    assert is_wrap_up(session.fit(request()))


# Settings


WRONG = {
    "nothing": {},
    "two noughts": {"tokens": 0, "usd": 0.0},
    "negative tokens": {"tokens": -1},
    "negative money": {"usd": -0.5},
    "not a number": {"usd": float("nan")},
    "infinite": {"usd": float("inf")},
    "a bool": {"tokens": True},
    "half a token": {"tokens": 1.5},
    "text": {"usd": "5 EUR"},
    "another currency": {"eur": 5.0},
    "a share over one": {"tokens": 1, "warn_at": 80},
    "a share that is none": {"tokens": 1, "warn_at": float("nan")},
    "another mode": {"tokens": 1, "on_exceeded": "explode"},
    "no words": {"tokens": 1, "words": " "},
}


@pytest.mark.parametrize("settings", WRONG.values(), ids=WRONG)
def test_a_budget_that_cannot_be_meant_is_refused(settings):
    with pytest.raises(ConfigError):
        Budget(**settings)


VARIABLE = {
    "": 0,
    "0": 0,
    "850000": 850_000,
    "850,000": 850_000,
    " 1_000_000 ": 1_000_000,
}


@pytest.mark.parametrize(("text", "tokens"), VARIABLE.items())
def test_the_budget_of_the_environment(monkeypatch, text, tokens):
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", text)
    assert Budget.from_env().allowance == Allowance(tokens=tokens)


@pytest.mark.says(
    "multi-stage-strategy",
    "Configuration",
    "`SRE_AGENT_TOKEN_BUDGET` | `0` (unlimited) | Max total tokens per session before halting.",
    lives="ullage.session.spend.budget",
)
def test_no_variable_means_no_limit(monkeypatch):
    monkeypatch.delenv("SRE_AGENT_TOKEN_BUDGET", raising=False)
    session = new_session(budget=Budget.from_env())
    for _ in range(3):
        assert call(session) == request()
    assert session.budget.spent.tokens == 3_300
    assert session.budget.reserved == Claim()


@pytest.mark.parametrize(
    "text", ["lots", "-1", "1.5", "5 EUR", "1,00", "8,50,000", "٣", "1e6"]
)
def test_nonsense_in_the_environment_is_refused_by_name(monkeypatch, text):
    monkeypatch.setenv("AGENT_BUDGET", text)
    with pytest.raises(ConfigError) as caught:
        Budget.from_env("AGENT_BUDGET", on_exceeded="stop")
    assert caught.value.setting == "AGENT_BUDGET"
    assert text not in str(caught.value).replace(
        "Give one such as 850000 or 850,000.", ""
    )


def test_an_account_does_not_hold_its_session():
    class Owner:
        def __init__(self, budget):
            self.told = []
            self.account = budget.join("agent", self.tell)

        def tell(self, event):
            self.told.append(event)

    owner = Owner(Budget(tokens=10))
    owner.account.tell("an event")
    assert owner.told == ["an event"]
    account, left = owner.account, weakref.ref(owner)
    del owner
    assert left() is None
    account.tell("another")
