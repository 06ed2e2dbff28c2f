"""A summary that several workers want at once is paid for once."""

import asyncio
import threading
import time

import pytest

from ullage.core.errors import StoreError
from ullage.core.values.usage import Usage
from ullage.session.drivers import asking, awaiting
from ullage.session.spend.budget import Budget
from ullage.session.summarise import Reply, Summaries, Summarise, of
from ullage.stores import (
    AsyncPostgresStore,
    MemoryStore,
    PostgresStore,
    forget,
)

pytestmark = pytest.mark.xdist_group("postgres")

ASKED = Summarise(system="Sum up.", texts=("all of it",), most_tokens=100)
OTHER = Summarise(system="Sum up.", texts=("something else",), most_tokens=100)


class Model:
    """A model that is slow, and knows how often it was asked."""

    def __init__(self, problem=""):
        self.asked, self.problem = [], problem
        self.was_asked, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, asked):
        self.asked.append(asked)
        self.was_asked.set()
        self.may_answer.wait(10)
        usage = Usage(fresh_tokens=100, output_tokens=10)
        return Reply(text="What was said.", problem=self.problem, usage=usage)


def summaries(model, budget=None):
    return Summaries(of(model), budget or Budget(tokens=0), "summaries")


def at_once(works):
    """What functions return that are called in threads; the model answers a little later."""
    found = [None] * len(works)

    def one(n):
        found[n] = works[n]()

    threads = [
        threading.Thread(target=one, args=(n,)) for n in range(len(works))
    ]
    for thread in threads:
        thread.start()
    return found, threads


def test_of_workers_that_want_the_same_one_pays(url):
    model, budgets = Model(), [Budget(tokens=0) for _ in range(3)]
    stores = [PostgresStore(url) for _ in budgets]
    asks = [
        asking(summaries(model, budget), store, "t")
        for budget, store in zip(budgets, stores, strict=True)
    ]
    found, threads = at_once([lambda ask=ask: ask(ASKED) for ask in asks])
    model.was_asked.wait(10)
    model.may_answer.set()
    for thread in threads:
        thread.join(20)
    assert [reply.text for reply in found] == ["What was said."] * 3
    assert len(model.asked) == 1
    assert sorted(budget.spent.tokens for budget in budgets) == [0, 0, 110]
    assert asks[0](OTHER).text == "What was said."
    assert len(model.asked) == 2, "another request is another summary"
    assert asking(summaries(model), stores[0], "u")(ASKED).text
    assert len(model.asked) == 3, "another tenant's is not shown"


def test_who_waits_is_not_kept_by_a_worker_that_died(url):
    model, store = Model(), PostgresStore(url)
    model.may_answer.set()
    dead = store.claim("t", b"k" * 32, b"dead", 0.05)
    assert dead.is_mine
    assert not store.claim("t", b"k" * 32, b"mine", 5).is_mine
    time.sleep(0.06)
    assert store.claim("t", b"k" * 32, b"mine", 5).is_mine
    assert store.claim("t", b"k" * 32, b"mine", 5).is_mine, (
        "asked twice, for the answer was lost"
    )
    store.fulfil("t", b"k" * 32, b"dead", b"too late", 60)
    assert not store.claim("t", b"k" * 32, b"other", 5).reply


def test_a_failure_is_not_handed_on(url):
    model, store = Model(problem="it is overloaded"), PostgresStore(url)
    model.may_answer.set()
    assert asking(summaries(model), store, "t")(ASKED).problem
    assert asking(summaries(model), store, "t")(ASKED).problem
    assert len(model.asked) == 2


def test_a_store_that_fails_is_no_reason_to_go_without(url):
    class Failing(PostgresStore):
        def claim(self, *given):
            raise StoreError(self.name, "claim", "the server is gone")

    model = Model()
    model.may_answer.set()
    assert (
        asking(summaries(model), Failing(url), "t")(ASKED).text
        == "What was said."
    )


def test_on_an_event_loop_too(url):
    model, budget = Model(), Budget(tokens=0)

    async def scene():
        store = AsyncPostgresStore(url)
        asks = [
            awaiting(summaries(model, budget), store, "t") for _ in range(3)
        ]
        tasks = [asyncio.create_task(ask(ASKED)) for ask in asks]
        await asyncio.to_thread(model.was_asked.wait, 10)
        model.may_answer.set()
        found = await asyncio.gather(*tasks)
        await store.close()
        return found

    assert [reply.text for reply in asyncio.run(scene())] == [
        "What was said."
    ] * 3
    assert len(model.asked) == 1
    assert budget.spent.tokens == 110


def test_what_a_model_said_is_forgotten_with_its_tenant(server, url):
    store = PostgresStore(url)
    store.claim("t", b"k", b"me", 5)
    store.fulfil("t", b"k", b"me", b"what was said", 600)
    forget(store, "t")
    with server.connect() as db:
        assert db.execute("SELECT count(*) FROM ullage.leases").fetchone() == (
            0,
        )


def test_without_leases_each_asks_for_itself():
    model = Model()
    model.may_answer.set()
    store = MemoryStore()
    assert asking(summaries(model), store, "t")(ASKED).text == "What was said."
    assert (
        asyncio.run(awaiting(summaries(model), store, "t")(ASKED)).text
        == "What was said."
    )
    assert len(model.asked) == 2
