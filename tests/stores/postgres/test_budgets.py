"""One budget for many machines, on a real server."""

import asyncio
import threading

import pytest

import ullage
from ullage.core.errors import BudgetExceeded, ConfigError, StoreError
from ullage.session.spend.shared import SharedBudget
from ullage.stores import BoundedStore, Bounds, PostgresStore

pytestmark = pytest.mark.xdist_group("postgres")

REQUEST = {
    "model": "gpt-4.1",
    "messages": [{"role": "user", "content": "What is wrong?"}],
}
CALL = ullage.Usage(fresh_tokens=900, output_tokens=100)


def spent(url, name="team"):
    with PostgresStore(url)._pool._pool("test").connections.connection() as db:
        asked = "SELECT count(*), sum(fresh_tokens + output_tokens) FROM ullage.calls"
        return db.execute(f"{asked} WHERE budget = '{name}'").fetchone()


def test_what_one_spends_is_spent_for_the_others(url):
    one, two = (SharedBudget("team", url, tokens=10_000) for _ in range(2))
    other = SharedBudget("another team", url, tokens=10_000)
    session = ullage.Session("gpt-4.1", budget=one, agent="scout")
    for _ in range(2):
        session.fit(REQUEST).observe(CALL)
    under_way = ullage.Session("gpt-4.1", budget=two)
    under_way.fit(REQUEST)
    assert two.spent.tokens == one.spent.tokens == 2_000
    assert two.spent.calls == 2
    assert two.spent.cost_usd == pytest.approx(one.spent.cost_usd)
    assert len(one.calls) == 2
    assert two.calls == ()
    assert other.spent.tokens == 0
    assert SharedBudget("team", url, tokens=10_000).spent.tokens == 2_000
    under_way.release()


def test_a_fleet_keeps_to_it_within_one_call_a_worker(url):
    workers, sums = 8, []

    def work():
        budget = SharedBudget("team", url, tokens=40_000, on_exceeded="stop")
        session = ullage.Session("gpt-4.1", budget=budget)
        try:
            for _ in range(100):
                session.fit(REQUEST).observe(CALL)
        except BudgetExceeded as error:
            sums.append(error.spent)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == workers
    calls, tokens = spent(url)
    assert tokens == calls * 1_000
    assert 40_000 <= tokens <= 40_000 + workers * 1_000


def test_a_server_that_fails_loses_no_call_and_doubles_none(url):
    store = PostgresStore(url)
    budget, book = SharedBudget("team", store, tokens=0), store.book
    session = ullage.Session("gpt-4.1", budget=budget)
    session.fit(REQUEST).observe(CALL)

    def answer_lost(name, calls):
        book(name, calls)
        raise StoreError("postgresql", "book", "the answer was lost")

    store.book = answer_lost
    budget.charge(CALL, "gpt-4.1")
    with pytest.raises(StoreError, match="lost"):
        budget.sync()
    assert budget.spent.tokens == 2_000
    store.book = book
    budget.sync()
    assert spent(url) == (2, 2_000)
    assert budget.spent.tokens == 2_000


def test_a_fuller_report_takes_the_place_of_the_estimate_everywhere(url):
    budget = SharedBudget("team", url, tokens=1_000_000)
    session = ullage.Session("gpt-4.1", budget=budget)
    first = session.fit(REQUEST)
    session.fit(REQUEST)  # nobody reported the first: our estimate counts
    assert budget.spent.estimated_tokens > 0
    first.observe(CALL)
    fresh = SharedBudget("team", url, tokens=1_000_000).spent
    assert (fresh.tokens, fresh.calls, fresh.estimated_tokens) == (1_000, 1, 0)


def test_an_event_loop_shares_it_too(url):
    async def scene():
        budget = SharedBudget("team", url, tokens=10_000)
        session = ullage.AsyncSession("gpt-4.1", budget=budget)
        view = await session.fit(REQUEST)
        await view.observe(CALL)
        await session.close()

    asyncio.run(scene())
    assert SharedBudget("team", url, tokens=10_000).spent.tokens == 1_000


def test_the_store_of_a_session_may_be_given_whatever_is_around_it(url):
    session = ullage.Session(
        "gpt-4.1", store=BoundedStore(PostgresStore(url), Bounds())
    )
    budget = SharedBudget("team", session.store, tokens=10_000)
    budget.charge(CALL, "gpt-4.1")
    budget.sync()
    assert SharedBudget("team", url, tokens=10_000).spent.tokens == 1_000


def test_what_cannot_be_meant_is_refused(url):
    with pytest.raises(ConfigError, match="server"):
        SharedBudget("team", ullage.MemoryStore(), tokens=1)
    with pytest.raises(ConfigError, match="Leave it out"):
        SharedBudget(
            "team", url, tokens=1, spent=ullage.Budget(tokens=1).spent
        )
    for name in ("te\0am", "te\ud800am"):  # text that no server takes
        with pytest.raises(ConfigError, match="does not take"):
            SharedBudget(name, url, tokens=1)
