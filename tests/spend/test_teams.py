"""Budgets of teams: what several workers on one store may spend together, and what they say."""

import asyncio
import pickle
import threading
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage import (
    ConfigError,
    MemoryStore,
    SqliteStore,
    StoreError,
    TeamBudget,
    TeamBudgetExceeded,
    TeamBudgets,
    Usage,
)
from ullage.session.drivers import adrive, drive
from ullage.stores import spending_totals
from ullage.testing._samples import Clock

MODEL, UNPRICED = "claude-opus-4-8", "a-model-of-our-own"
NOON = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()


def budget(**settings):
    return TeamBudget(**{"name": "research", "tokens": 1_000, **settings})


class Workers:
    """Several processes on one store, by one clock."""

    def __init__(self, *budgets, count=2, store=None, **settings):
        self.clock = Clock()
        self.clock.now_s = NOON
        self.store = store or MemoryStore(clock=self.clock)
        self.all = [
            TeamBudgets(
                budgets,
                self.store.book_spending,
                now_s=self.clock,
                **settings,
            )
            for _ in range(count)
        ]

    def ask(
        self, worker=0, tenant="anna", model=MODEL, prompt=100, output=100
    ):
        """A call that is allowed; it is under way."""
        call = self.all[worker].call(tenant)
        drive(call.claim(model, prompt, output))
        return call

    def end(self, call, worker=0, usage=None, **given):
        """The call's reply is there."""
        call.settle(usage, **given)
        drive(self.all[worker].flush())

    def spend(self, tokens, worker=0, **asked):
        call = self.ask(worker, **asked)
        self.end(call, worker, Usage(fresh_tokens=tokens))
        return call


# ── what it is ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "a b"}, "budgets.name: it is not a name"),
        ({"tokens": 0}, "budgets.research: it limits nothing"),
        ({"tokens": -1}, "budgets.research.tokens: -1 is no amount"),
        ({"usd": float("nan")}, "budgets.research.usd: nan is no amount"),
        ({"warn_at": 80}, "warn_at: 80 is not a share"),
        ({"wrap_up_at": 1.5}, "wrap_up_at: 1.5 is not a share"),
        ({"period": "week"}, "'week' is not known. Use 'day' or 'month'"),
        ({"timezone": "Mars/Base"}, "no time zone 'Mars/Base' is known here"),
        ({"timezone": "../etc"}, "no time zone"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_do(given, words):
    with pytest.raises(ConfigError) as error:
        budget(**given)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("period", "zone", "moment", "name", "end"),
    [
        ("day", "UTC", "2026-11-27T23:59Z", "2026-11-27", "2026-11-28T00:00Z"),
        ("day", "Asia/Tokyo", "2026-11-27T15:00Z", "2026-11-28",
         "2026-11-28T15:00Z"),
        ("month", "UTC", "2026-12-31T10:00Z", "2026-12", "2027-01-01T00:00Z"),
        ("month", "America/New_York", "2026-12-01T04:59Z", "2026-11",
         "2026-12-01T05:00Z"),
        # days on which clocks change have 23 and 25 hours
        ("day", "Europe/Berlin", "2026-03-29T12:00Z", "2026-03-29",
         "2026-03-29T22:00Z"),
        ("day", "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-25",
         "2026-10-25T23:00Z"),
    ],
)  # fmt: skip
def test_a_day_or_month_begins_where_its_time_zone_says(
    period, zone, moment, name, end
):
    at = datetime.fromisoformat(moment).timestamp()
    current = budget(period=period, timezone=zone).period_at(at)
    assert current.name == name
    assert current.resets_s == datetime.fromisoformat(end).timestamp()


def test_it_counts_for_the_tenants_and_models_that_it_names():
    some = budget(tenants=["anna"], models=["claude-opus-*", "gpt-5.4"])
    assert some.covers("anna", "claude-opus-4-8")
    assert some.covers("anna", "gpt-5.4")
    assert not some.covers("anna", "gpt-5.4-mini")
    assert not some.covers("ben", "gpt-5.4")
    assert budget().covers("whoever", "whatever")


# ── what may be spent ────────────────────────────────────────────────────────────────────


def test_each_tenant_has_the_allowance_and_a_shared_one_is_everybodys():
    workers = Workers(budget(), budget(name="all", tokens=1_500, shared=True))
    workers.spend(1_000, tenant="anna")
    with pytest.raises(TeamBudgetExceeded, match="the budget research"):
        workers.ask(tenant="anna")
    workers.spend(600, tenant="ben")
    with pytest.raises(TeamBudgetExceeded, match="the budget all"):
        workers.ask(tenant="clara")


def test_what_another_worker_spent_counts_here_at_once():
    workers = Workers(budget())
    workers.spend(999, worker=0)
    call = workers.ask(worker=1)
    assert call.use.percent == 99
    workers.end(call, 1, Usage(fresh_tokens=1))
    for worker in (0, 1):
        with pytest.raises(TeamBudgetExceeded):
            workers.ask(worker=worker)


def test_calls_under_way_fill_it_and_a_retry_succeeds_once_they_are_over():
    workers = Workers(budget())
    call = workers.ask(worker=0, prompt=900, output=100)
    with pytest.raises(TeamBudgetExceeded) as error:
        workers.ask(worker=1)
    assert error.value.can_retry
    assert error.value.retry_s < 10
    assert "under way" in str(error.value)
    workers.end(call, 0, Usage(fresh_tokens=100))
    assert workers.ask(worker=1).use.percent == 10


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(1, 200), st.sampled_from("abcx")
        ),
        max_size=60,
    )
)
def test_whatever_they_do_they_spend_no_more_than_all_and_a_call_each(steps):
    """A call comes to no more than it reserved; some die, some fail, some report nothing."""
    workers = Workers(budget(), count=3)
    running, spent = [[], [], []], 0
    for worker, tokens, what in steps:
        if what == "x":  # a worker is killed with all that it had under way
            running[worker] = []
            workers.all[worker] = TeamBudgets(
                workers.all[worker].budgets,
                workers.store.book_spending,
                now_s=workers.clock,
            )
        elif what == "a" or not running[worker]:
            try:
                running[worker].append(workers.ask(worker))
            except TeamBudgetExceeded:
                continue
        else:
            call = running[worker].pop()
            usage = Usage(fresh_tokens=tokens) if what == "b" else None
            workers.end(call, worker, usage, estimated_tokens=tokens)
            spent += tokens
    assert spent <= 1_000 + 3 * 200
    (total,) = spending_totals(workers.store.spending()) or (None,)
    assert (total.tokens if total else 0) == spent


def test_threads_of_one_worker_spend_together_no_more_than_all_and_a_call():
    workers = Workers(budget(tokens=5_000), count=1)

    def spend():
        for _ in range(20):
            try:
                call = workers.ask()
            except TeamBudgetExceeded:
                continue
            workers.end(call, usage=Usage(fresh_tokens=200))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (total,) = spending_totals(workers.store.spending())
    assert 5_000 <= total.tokens <= 5_200


def test_a_dead_workers_reservation_lapses():
    workers = Workers(budget())
    workers.ask(worker=0, prompt=900)  # and it is killed
    with pytest.raises(TeamBudgetExceeded):
        workers.ask(worker=1)
    workers.clock.now_s += 91
    assert workers.ask(worker=1).use.share == 0


def test_a_worker_that_lives_keeps_its_reservation():
    workers = Workers(budget())
    workers.ask(worker=0, prompt=900)
    for _ in range(5):
        workers.clock.now_s += 60
        drive(workers.all[0].renew())
    with pytest.raises(TeamBudgetExceeded):
        workers.ask(worker=1)


def test_who_takes_a_dead_workers_place_goes_on_from_its_sums():
    workers = Workers(budget(), writer="a" * 16, count=1)
    workers.spend(300)
    workers.ask(prompt=600)  # and it is killed
    again = TeamBudgets(
        workers.all[0].budgets,
        workers.store.book_spending,
        now_s=workers.clock,
        writer="a" * 16,
    )
    again.resume(workers.store.spending())
    drive(again.flush())
    (row,) = workers.store.spending()
    assert (row.tokens, row.calls, row.reserved_tokens) == (300, 1, 0)
    workers.all[0] = again
    workers.spend(200)
    (row,) = workers.store.spending()
    assert (row.tokens, row.calls) == (500, 2)


def test_it_does_not_take_what_another_booked():
    workers = Workers(budget(), count=1)
    workers.spend(300)
    other = TeamBudgets(workers.all[0].budgets, workers.store.book_spending)
    other.resume(workers.store.spending())
    assert other.totals() == []


def test_a_call_counts_in_the_period_in_which_it_began():
    workers = Workers(budget(period="day"))
    workers.clock.now_s = datetime(
        2026, 11, 27, 23, 59, tzinfo=UTC
    ).timestamp()
    call = workers.ask()
    workers.clock.now_s += 120
    drive(call.claim(MODEL, 100, 100, Usage(fresh_tokens=50)))
    workers.end(call, usage=Usage(fresh_tokens=300))
    (row,) = workers.store.spending()
    assert (row.key.period, row.tokens) == ("2026-11-27", 300)
    assert workers.ask().use.share == 0
    assert workers.all[0].totals() == []


def test_a_failed_call_costs_nothing_and_one_settled_twice_counts_once():
    workers = Workers(budget())
    workers.end(workers.ask(), usage=None)
    call = workers.spend(300)
    workers.end(call, usage=Usage(fresh_tokens=300))
    (row,) = workers.store.spending()
    assert (row.tokens, row.calls, row.reserved_tokens) == (300, 1, 0)


def test_nonsense_of_a_provider_counts_as_our_estimate():
    workers = Workers(budget())
    call = workers.ask()
    workers.end(call, usage=Usage(fresh_tokens=-5), estimated_tokens=70)
    (row,) = workers.store.spending()
    assert (row.tokens, row.calls, row.estimated_calls) == (70, 1, 1)


def test_a_further_round_of_a_reply_is_reserved_and_never_refused():
    workers = Workers(budget())
    call = workers.ask(prompt=400, output=100)
    drive(call.claim(MODEL, 900, 100, Usage(fresh_tokens=450)))
    with pytest.raises(TeamBudgetExceeded) as error:
        workers.ask()
    assert error.value.reserved == 1_450


# ── money ────────────────────────────────────────────────────────────────────────────────


def test_money_is_counted_at_list_price():
    workers = Workers(budget(tokens=0, usd=1.0))
    call = workers.ask()
    usage = Usage(
        fresh_tokens=1_000, cache_read_tokens=90_000, output_tokens=2_000
    )
    workers.end(call, usage=usage)
    (row,) = workers.store.spending()
    assert 0 < row.usd < 1
    assert workers.ask().use.share == pytest.approx(row.usd)


def test_an_unknown_price_is_no_gift():
    workers = Workers(budget(tokens=0, usd=1.0))
    with pytest.raises(TeamBudgetExceeded) as error:
        workers.ask(model=UNPRICED)
    assert "no price is known" in str(error.value)
    assert (error.value.retry_s, error.value.can_retry) == (0, False)
    passing = Workers(budget(tokens=0, usd=1.0, unpriced="pass"))
    passing.spend(500, model=UNPRICED)
    (row,) = passing.store.spending()
    assert (row.tokens, row.usd, row.unpriced_calls) == (500, 0, 1)


# ── what is said ─────────────────────────────────────────────────────────────────────────


def test_it_warns_once_a_worker_and_period():
    workers = Workers(budget(period="day"))
    assert workers.spend(850).event is None
    call = workers.ask()
    workers.end(call)
    event = call.event
    assert (event.kind, event.where) == ("warned", "budget")
    assert "research (today) 850 tokens of 1,000 tokens" in event.why
    assert workers.ask().event is None
    workers.clock.now_s += 86_400
    workers.spend(900)
    assert workers.ask().event is not None


def test_the_model_is_told_if_asked_for_and_to_come_to_an_end():
    quiet, told = Workers(budget()), Workers(budget(tell_model=True))
    ending = Workers(budget(wrap_up_at=0.7))
    for workers in (quiet, told, ending):
        workers.spend(715)
    assert quiet.ask().sentence == ""
    assert told.ask().sentence == (
        "A note from the proxy, not from the user: 71% of this budget (this month) is used."
    )
    assert "71% of this budget" in ending.ask().sentence
    assert "Come to an end now" in ending.ask().sentence


def test_of_two_budgets_the_one_nearer_its_end_is_told():
    workers = Workers(
        budget(tell_model=True),
        budget(name="wide", tokens=9_000, tell_model=True),
    )
    workers.spend(500)
    call = workers.ask()
    assert (call.use.budget, call.use.state) == ("research", "within")
    assert "50%" in call.sentence


def test_where_it_stops_it_says_how_much_until_when_and_what_to_do():
    workers = Workers(budget(period="day", timezone="Europe/Berlin"))
    workers.spend(1_200)
    with pytest.raises(TeamBudgetExceeded) as error:
        workers.ask()
    assert str(error.value) == (
        "the budget research for today is spent: 1,200 tokens of 1,000 tokens. It starts again on "
        "2026-11-28 at 00:00 Europe/Berlin. Until then, ask whoever runs this proxy for more, or "
        "use a model that the budget does not cover."
    )
    assert error.value.retry_s == 11 * 3_600
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.resets_s) == (
        str(error.value),
        error.value.resets_s,
    )


def test_a_budget_that_only_warns_refuses_nothing():
    workers = Workers(budget(on_exceeded="warn"))
    workers.spend(5_000)
    call = workers.ask()
    assert (call.use.percent, call.use.state) == (500, "warned")


# ── the store ────────────────────────────────────────────────────────────────────────────


def test_a_store_that_fails_stops_nobody_and_no_limit_is_forgotten():
    workers, calls = Workers(budget()), []

    def failing(rows):
        calls.append(rows)
        raise StoreError("test", "book_spending", "it is away")

    workers.spend(600)
    one = workers.all[0]
    one._book, book = failing, one._book
    workers.spend(300)
    assert (one.store_errors, len(calls)) == (1, 1), "then left alone"
    workers.spend(150)
    with pytest.raises(TeamBudgetExceeded):
        workers.ask()
    one._book = book
    workers.clock.now_s += 6
    drive(one.flush())
    with pytest.raises(TeamBudgetExceeded):
        workers.ask(worker=1)
    row = max(workers.store.spending(), key=lambda row: row.tokens)
    assert (row.tokens, row.reserved_tokens) == (1_050, 0)


def test_nothing_is_kept_of_a_tenant_that_nobody_knows():
    known = {"anna"}
    workers = Workers(budget(), is_known=known.__contains__)
    for number in range(20):
        workers.end(workers.ask(tenant=f"forged {number}"))
    assert workers.store.spending() == ()
    assert workers.all[0]._accounts == {}
    workers.spend(100, tenant="new")  # and an upstream took it
    assert [row.key.tenant for row in workers.store.spending()] == ["new"]
    workers.ask(tenant="anna")
    assert len(workers.store.spending()) == 2


def test_periods_that_are_over_are_let_go():
    workers = Workers(budget(period="day"), count=1)
    for _ in range(40):
        workers.spend(10)
        workers.clock.now_s += 86_400
    assert len(workers.all[0]._accounts) <= 2
    assert len(workers.store.spending()) == 40


def test_it_outlives_its_process_in_a_file(tmp_path):
    path = tmp_path / "kept.db"
    with closing(SqliteStore(path)) as store:
        Workers(budget(), store=store).spend(1_000)
    with closing(SqliteStore(path)) as store:
        workers = Workers(budget(), store=store)
        with pytest.raises(TeamBudgetExceeded):
            workers.ask()
        (row,) = spending_totals(store.spending())
        assert (row.limit_tokens, row.key.period) == (1_000, "2026-11")


def test_on_an_event_loop_it_holds_among_many_tasks():
    workers = Workers(budget(tokens=2_000), count=2)

    async def spend(worker):
        ledger = workers.all[worker]
        for _ in range(30):
            call = ledger.call("anna")
            try:
                await adrive(call.claim(MODEL, 50, 50))
            except TeamBudgetExceeded:
                continue
            await asyncio.sleep(0)
            call.settle(Usage(fresh_tokens=100))
            await adrive(ledger.flush())

    async def run():
        await asyncio.gather(*(spend(n % 2) for n in range(10)))

    asyncio.run(run())
    (total,) = spending_totals(workers.store.spending())
    assert 2_000 <= total.tokens <= 2_200
