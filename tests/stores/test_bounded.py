import pytest

from tests.stores.contract import Clock, batch, decided, output, replaced
from ullage.core.errors import RefNotFound, StoreError
from ullage.stores import BoundedStore, Bounds, Collected, MemoryStore, bounded
from ullage.stores._clean import DAY_S
from ullage.testing import StoreContract

WEEKLY = Bounds(older_than_s=30 * DAY_S, every_s=7 * DAY_S)


class TestBounded(StoreContract):
    def open(self):
        never = Bounds(every_s=float("inf"))
        store = BoundedStore(
            MemoryStore(clock=self.clock), never, clock=self.clock
        )
        store.commit("never", [], [])
        return store


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def inner(clock):
    return MemoryStore(clock=clock)


def test_a_commit_cleans_up_when_it_is_due(clock, inner):
    store = BoundedStore(inner, WEEKLY, clock=clock)
    store.commit("t", [output("old")], [])
    clock.days_pass(31)
    store.commit("t", [output("new")], [])
    assert store.refs("t") == (output("new").ref,)
    assert [gone.ref for gone in store.last.removed] == [output("old").ref]
    store.commit("t", [output("old")], [])
    clock.days_pass(6)
    assert store.last.removed != ()
    store.commit("t", [], [])
    assert store.last.removed != ()  # not due yet: this is still the last one
    clock.days_pass(1)
    store.commit("t", [], [])
    assert store.last.removed == ()


def test_of_many_processes_one_cleans_up(clock, inner):
    stores = [BoundedStore(inner, WEEKLY, clock=clock) for _ in range(3)]
    for n, store in enumerate(stores):
        store.commit("t", [output(str(n))], [])
    assert [store.last is not None for store in stores] == [True, False, False]


def test_a_session_that_runs_for_months_keeps_what_it_decided_at_its_beginning(
    clock, inner
):
    long_ago, other = output("long ago"), output("of a session that ended")
    ended = BoundedStore(inner, WEEKLY, clock=clock)
    ended.commit("t", [other], [decided(b"ended", replaced(other.ref))])
    store = BoundedStore(inner, WEEKLY, clock=clock)
    store.commit("t", [long_ago], [decided(b"k", replaced(long_ago.ref))])
    for day in range(0, 90, 5):
        clock.days_pass(5)
        store.commit("t", [output(f"day {day}")], [])
    assert store.get("t", long_ago.ref) == long_ago
    assert len(store.find("t", [b"k"])) == 1
    with pytest.raises(RefNotFound):
        store.get("t", other.ref)


def test_what_a_commit_just_kept_is_there_when_it_returns(clock, inner):
    store = BoundedStore(inner, Bounds(max_bytes=1), clock=clock)
    store.commit("t", [output("one")], [])
    store.commit("t", [output("two")], [])
    assert store.refs("t") == (output("two").ref,)


def test_a_clean_up_that_fails_fails_no_commit(clock):
    class Failing(MemoryStore):
        def collect(self, tenant, bounds, cursor=None):
            raise StoreError(
                self.name, "collect", "the disk is full. Free some space"
            )

    store = BoundedStore(Failing(clock=clock), WEEKLY, clock=clock)
    assert store.commit("t", [output("x")], []) == ()
    assert "disk is full" in str(store.failure)
    assert store.get("t", output("x").ref) == output("x")


def test_a_long_clean_up_takes_a_step_at_each_commit(clock, inner):
    stale = [output(f"number {n}") for n in range(5)]
    steps = []

    class Stepping(MemoryStore):
        def collect(self, tenant, bounds, cursor=None):
            steps.append(cursor)
            if len(steps) < 4:
                return Collected((), 0, 0, f"step {len(steps)}")
            return super().collect(tenant, bounds)

    store = BoundedStore(Stepping(clock=clock), WEEKLY, clock=clock)
    store.store.put("t", stale)
    clock.days_pass(31)
    for _ in range(6):
        store.commit("t", [], [])
    assert steps == [None, "step 1", "step 2", "step 3"]
    assert len(store.last.removed) == 5


def test_a_clock_that_was_ahead_once_stops_no_clean_up(clock, inner):
    store = BoundedStore(inner, WEEKLY, clock=clock)
    clock.days_pass(5_000)
    store.commit("t", [], [])
    clock.days_pass(-5_000)
    store.commit("t", [output("old")], [])
    clock.days_pass(31)
    store.commit("t", [], [])
    assert [gone.ref for gone in store.last.removed] == [output("old").ref]


def test_what_it_remembers_of_the_ledger_is_bounded(clock, inner, monkeypatch):
    monkeypatch.setattr(bounded, "_MOST", 100)
    store = BoundedStore(inner, WEEKLY, clock=clock)
    for n in range(500):
        store.commit(f"tenant {n}", [], [batch(b"%d" % n, 0, b"d")])
    assert len(store._seen) <= 100
    assert len(store._asked) <= 100
    assert ("tenant 499", b"499") in store._seen
