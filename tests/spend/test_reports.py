"""What is counted whatever is reported: nothing, nonsense, too much, twice, late, by another."""

import gc
import threading
from contextlib import suppress

import pytest

from tests.spending import (
    FORMAT_NAMES,
    LIMITS,
    is_wrap_up,
    most_of,
    new_session,
    reply,
    request,
)
from ullage import Budget, BudgetExceeded, ConfigError, Session, Spent, Usage
from ullage.session.provider.reports import spent_by
from ullage.session.spend.account import Account, PendingCall
from ullage.session.spend.allowance import Claim
from ullage.session.spend.book import Book, UsageReport
from ullage.session.state import SessionState

NOBODY = object()
COUNTS = {
    "openai-chat": ("usage", "prompt_tokens", "completion_tokens"),
    "openai-responses": ("usage", "input_tokens", "output_tokens"),
    "anthropic": ("usage", "input_tokens", "output_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
    "ollama": ("", "prompt_eval_count", "eval_count"),
    "bedrock-converse": ("usage", "inputTokens", "outputTokens"),
}
ODD = {
    "nothing": {},
    "noughts": (0, 0),
    "negative": (-5_000, -1),
    "one negative": (-5_000, 7),
    "fractions": (500.0, 5.0),
    "text": ("500", "5"),
    "no number": (float("nan"), 5),
    "a bool": (True, True),
    "a list": [1],
    "null": None,
    "more than JSON holds": (2**60, 1),
    "more than a window": (2**53, 1),
    "a bit more than a window": (3_000_000, 1),
    "of the reply alone": (0, 5),
}


def told(session, kind="unreported"):
    return [event for event in session.events if event.kind == kind]


def odd_reply(format, counts, number):
    field, prompt, output = COUNTS[format]
    usage = (
        dict(zip((prompt, output), counts, strict=True))
        if type(counts) is tuple
        else counts
    )
    if not field:  # beside the message
        usage = usage if isinstance(usage, dict) else {prompt: usage}
        return {"id": f"r{number}", **usage}
    return {"id": f"r{number}", field: usage}


def calls_until_it_bites(format, budget, replied):
    session = new_session(format, budget=budget)
    for number in range(200):
        try:
            session.fit(request(format))
        except BudgetExceeded:
            return number, session
        if (said := replied(number)) is not NOBODY:
            session.observe(said)
    raise AssertionError("the budget never bites")


@pytest.mark.parametrize("counts", ODD.values(), ids=ODD)
@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_budget_bites_whatever_is_reported(format, counts):
    budget = Budget(tokens=2_000, on_exceeded="stop", warn_at=0)
    made, session = calls_until_it_bites(
        format, budget, lambda number: odd_reply(format, counts, number)
    )
    assert len(told(session)) >= made > 2
    assert not any(call.reported for call in session.calls)
    assert budget.spent.estimated_tokens == budget.spent.tokens >= 2_000
    output = counts[1] if counts == (0, 5) else 0
    assert {call.usage.output_tokens for call in session.calls} == {output}
    assert session.usage == Usage()


class Hostile:
    """A reply that raises whatever it is asked for."""

    def __getattr__(self, name):
        raise (
            AttributeError(name)
            if name.startswith("__")
            else RuntimeError(name)
        )


NO_REPLIES = (
    NOBODY,
    None,
    "x",
    b"{}",
    [],
    iter(()),
    object(),
    Hostile(),
    [Hostile()],
)


@pytest.mark.parametrize("said", [*NO_REPLIES, Usage(fresh_tokens="5")])
def test_a_budget_bites_where_nobody_observes_or_observes_what_is_no_reply(
    said,
):
    budget = Budget(tokens=2_000, on_exceeded="stop", warn_at=0)
    made, session = calls_until_it_bites(
        "openai-chat", budget, lambda number: said
    )
    assert budget.spent.calls == made > 3
    assert (
        told(session)[-1].tokens_after
        == session.calls[-1].usage.input_tokens
        > 0
    )


def test_money_is_spent_by_the_estimate_too():
    budget = Budget(usd=0.002, on_exceeded="stop")
    calls_until_it_bites("openai-chat", budget, lambda number: NOBODY)
    assert budget.spent.cost_usd >= 0.002


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_session_for_each_request_that_nobody_observes_is_counted(end):
    budget = Budget(tokens=2_000, on_exceeded="stop")
    for _ in range(4):
        session = new_session(budget=budget, agent="proxy")
        session.fit(request())
        estimate = session.window.estimate
        if end == "close":
            session.close()
        del session
        gc.collect()
    assert (
        budget.totals("agent")["proxy"].estimated_tokens
        == 4 * estimate
        == budget.spent.tokens
    )
    assert budget.reserved == Claim()


def test_where_nothing_is_limited_no_call_is_made_up():
    session = new_session(budget=Budget(tokens=0))
    for _ in range(3):
        session.fit(request())
    session.close()
    assert session.calls == ()
    assert told(session) == []


def test_a_late_report_takes_the_place_of_the_estimate():
    budget = Budget(tokens=100_000)
    session = new_session(budget=budget)
    first, second = session.fit(request()), session.fit(request())
    assert budget.spent.estimated_tokens == budget.spent.tokens > 0
    first.observe(reply(prompt=900, output=50))
    assert budget.reserved.tokens == most_of(session)
    second.observe(reply(prompt=1_000, output=60))
    first.observe({"choices": []})
    session.close()
    assert [call.usage.total_tokens for call in session.calls] == [950, 1_060]
    assert (
        budget.spent.tokens,
        budget.spent.estimated_tokens,
        budget.spent.calls,
    ) == (
        2_010,
        0,
        2,
    )
    assert session.cost_usd == pytest.approx(budget.spent.cost_usd)


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_view_knows_what_its_own_reply_reported(format):
    session = new_session(format)
    one, other = (
        session.fit(request(format)),
        session.fit(request(format, turns=2)),
    )
    other.observe(reply(format, 1_000, 100))
    assert (one.sent.reply_usage, other.sent.reply_usage.input_tokens) == (
        None,
        1_000,
    )
    one.observe({"id": "no usage"})
    assert one.sent.reply_usage is None
    for output in (
        20,
        30,
        10,
    ):  # as the events of a stream report it, and what is late
        one.observe(reply(format, 900, output))
    assert one.sent.reply_usage == Usage(fresh_tokens=900, output_tokens=30)
    assert session.usage == one.sent.reply_usage + other.sent.reply_usage


def test_without_an_id_a_view_is_counted_once_and_the_fuller_report_counts():
    session = new_session(budget=Budget(tokens=100_000))
    view = session.fit(request())
    for output in (10, 200, 200, 30):
        view.observe(reply(output=output))
    assert session.usage == session.budget.spent.usage
    assert session.usage == Usage(fresh_tokens=1_000, output_tokens=200)
    assert session.cost_usd == pytest.approx(session.budget.spent.cost_usd)
    assert session.budget.spent.calls == len(session.calls) == 1


def test_a_new_reply_is_compared_with_none_that_came_before(monkeypatch):
    """However long a conversation is: a view and an id of its own are of no other reply."""
    compared, is_of = [], UsageReport.is_of
    monkeypatch.setattr(
        UsageReport,
        "is_of",
        lambda one, two: compared.append(two) or is_of(one, two),
    )
    session = new_session()
    for number in range(5):
        view = session.fit(request(turns=number + 1))
        view.observe(said := reply(id=f"r{number}", prompt=1_000 + number))
    assert (session.budget.spent.calls, compared) == (5, [])
    view.observe(said)
    assert session.budget.spent.calls == 5
    assert compared


def test_a_reply_that_two_sessions_report_is_counted_once():
    budget = Budget(tokens=100_000)
    agent, proxy = new_session(budget=budget), new_session(budget=budget)
    for session in (agent, proxy):
        session.fit(request()).observe(reply(id="a"))
    assert (budget.spent.calls, budget.spent.tokens) == (1, 1_100)
    assert agent.usage.total_tokens + proxy.usage.total_tokens == 1_100


def test_a_server_that_names_all_replies_alike_is_counted():
    session = new_session(budget=Budget(tokens=100_000))
    for prompt in (1_000, 1_200, 1_400):
        session.fit(request()).observe(reply(id="same", prompt=prompt))
    assert session.budget.spent.calls == 3


def test_what_is_longer_than_the_window_is_refused_with_its_figures():
    session = new_session(budget=Budget(tokens=100_000))
    session.fit(request()).observe(reply(prompt=1_100_000))
    (event,) = told(session)
    assert "1,100,100 tokens for a window of 1,000,000" in event.why
    assert "refused" in event.why


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_budget_bites_though_the_provider_reports_next_to_nothing_of_each_prompt(
    format,
):
    """One token for 25 kB, again and again; the answer it reports is counted."""
    budget, asked = (
        Budget(tokens=60_000, on_exceeded="stop"),
        request(format, turns=50),
    )
    session = new_session(format, budget=budget)
    with suppress(BudgetExceeded):
        for number in range(200):
            session.fit(asked)
            session.observe(
                reply(format, prompt=1, output=100, id=f"r{number}")
            )
    assert budget.spent.tokens >= 60_000
    event = told(session)[0]
    assert "1 tokens of a prompt of some" in event.why
    assert budget.spent.estimated_tokens == budget.spent.tokens
    assert budget.spent.usage.output_tokens == 100 * budget.spent.calls


def test_a_prompt_of_which_the_provider_left_a_tenth_is_believed():
    """It may clear old results by itself."""
    session = new_session()
    session.fit(request(turns=50))
    session.observe(reply(prompt=session.window.tokens // 10))
    assert told(session) == []
    assert session.usage.input_tokens == session.window.tokens // 10


def test_of_a_model_that_nobody_knows_any_window_is_believed():
    for limits, counted in ((None, 1), (LIMITS, 0)):
        session = Session("no-such-model", format="openai-chat", limits=limits)
        session.fit({**request(), "model": "no-such-model"}).observe(
            reply(prompt=900_000)
        )
        assert session.budget.spent.calls == counted


def test_a_negative_report_gives_nothing_back():
    budget = Budget(tokens=1_000, on_exceeded="stop")
    budget.charge(Usage(fresh_tokens=5_000), "gpt-4.1")
    with pytest.raises(ConfigError, match="negative"):
        budget.charge(Usage(fresh_tokens=-5_000), "gpt-4.1")
    assert budget.spent.tokens == 5_000
    session = new_session(budget=Budget(tokens=1_000))
    session.fit(request()).observe(
        Usage(fresh_tokens=-5_000, output_tokens=9_000)
    )
    assert "negative" in told(session)[0].why
    assert session.usage == Usage()


def test_a_report_is_added_to_a_state_and_taken_out_again():
    session = new_session()
    session.fit(request()).observe(reply())
    more = Spent(usage=Usage(fresh_tokens=5), cost_usd=0.5)
    after = SessionState(session.state).with_spent(more)
    assert after.persisted.usage.fresh_tokens == 1_005
    assert after.with_spent(Spent() - more).persisted.usage == session.usage
    assert after.with_spent(Spent(cost_usd=None)).persisted.cost_usd is None


def test_a_fuller_report_of_a_reply_adds_what_the_first_had_not():
    less, more = (
        UsageReport(1, "r", Usage(fresh_tokens=n), n / 4) for n in (8, 12)
    )
    assert spent_by(more) == Spent(usage=Usage(fresh_tokens=12), cost_usd=3.0)
    both = spent_by(less) + spent_by(more, instead_of=less)
    assert both == spent_by(more)
    assert (
        spent_by(UsageReport(1, "r", Usage(), None), instead_of=less).cost_usd
        is None
    )


# The book


ONE, MORE = Usage(fresh_tokens=1), Usage(fresh_tokens=2)


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (UsageReport(1, "", ONE), UsageReport(1, "", MORE), True),
        (UsageReport(1, "", ONE), UsageReport(2, "", ONE), False),
        (UsageReport(1, "a", ONE), UsageReport(1, "a", MORE), True),
        (UsageReport(1, "a", ONE), UsageReport(2, "a", ONE), True),
        (UsageReport(1, "a", ONE), UsageReport(2, "a", MORE), False),
        (UsageReport(1, "a", ONE), UsageReport(1, "b", ONE), False),
        (UsageReport(1, "a", ONE), UsageReport(1, "", ONE), False),
    ],
)
def test_which_reports_are_of_one_reply(first, second, is_same):
    assert first.is_of(second) is second.is_of(first) is is_same


def test_a_row_that_is_replaced_is_in_no_sum():
    book = Book(Spent(usage=Usage(fresh_tokens=10), calls=1))
    estimate = PendingCall(
        view=7, model="gpt-4.1", tokens=500, output_tokens=3
    ).as_call("scout")
    book.add(estimate, 1, view=7)
    book.add(estimate, 2, view=8)
    report = UsageReport(7, "a", Usage(fresh_tokens=400))
    call = PendingCall(7, "gpt-4.1", 400).as_call("scout")
    booked = book.add(
        call, 1, view=7, report=report, replaces=book.row_for(1, 7)
    )
    assert book.spent.tokens == 10 + 503 + 400
    assert [each.usage.total_tokens for each in book.calls()] == [503, 400]
    assert book.calls(1) == (booked,)
    assert book.row_of(UsageReport(9, "a", report.usage)).account == 1
    assert book.row_of(UsageReport(9, "b", report.usage)) is None


def test_a_view_that_was_not_given_out_leaves_what_was_under_way():
    account = Account("", print, print)
    account.pending = before = PendingCall(1, "gpt-4.1", 5)

    def interrupted():
        with account.sending():
            account.pending = PendingCall(2, "gpt-4.1", 6)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert account.pending is before


# Reservations


def test_eight_agents_on_one_budget_all_go_on():
    """Each may come to a sixth of it; nobody is ended while nothing is spent."""
    budget, together = Budget(tokens=100_000), threading.Barrier(8)
    most = {"max_tokens": 16_000}
    done, refusals = [], []

    def agent():
        session = new_session(budget=budget)
        together.wait()
        replies = 0
        while replies < 5:
            try:
                view = session.fit({**request(), **most})
            except BudgetExceeded as error:
                refusals.append(error)
                continue
            assert not is_wrap_up(view)
            view.observe(
                reply(prompt=300, output=20, id=f"{id(session)}-{replies}")
            )
            replies += 1
        done.append(replies)

    threads = [threading.Thread(target=agent) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [5] * 8
    assert all(
        error.can_retry and error.spent < error.allowance for error in refusals
    )
    assert budget.spent.tokens == 8 * 5 * 320


def test_a_refusal_by_reservations_can_be_tried_again():
    budget = Budget(tokens=2_000)
    one, other = new_session(budget=budget), new_session(budget=budget)
    held = one.fit({**request(), "max_tokens": 4_000})
    with pytest.raises(
        BudgetExceeded, match=r"taken for now .* Try again"
    ) as caught:
        other.fit(request())
    assert caught.value.can_retry
    held.observe(reply(prompt=300, output=20))
    assert not is_wrap_up(other.fit(request()))
    assert told(other, "wrapped_up") == []


def test_a_wrap_up_is_taken_back_when_room_returns():
    budget = Budget(tokens=200)
    session = new_session(budget=budget)
    first = session.fit(request(turns=3))
    wrapped_up = session.fit(request(turns=3))
    assert is_wrap_up(wrapped_up)
    wrapped_up.observe(reply(prompt=20, output=1))
    with pytest.raises(BudgetExceeded):
        session.fit(request())
    first.observe(reply(prompt=50, output=1))
    assert budget.spent == Spent(
        usage=Usage(fresh_tokens=70, output_tokens=2),
        cost_usd=budget.spent.cost_usd,
        calls=2,
    )
    assert not is_wrap_up(session.fit(request()))


def test_an_account_that_was_interrupted_in_the_making_goes_in_silence():
    Account.__new__(Account).__del__()
