"""A server that is away costs one wait, and not one for each call."""

import asyncio
import logging

import pytest

from tests.stores.contract import output
from tests.stores.postgres.cable import Cable
from ullage.core.errors import StoreError
from ullage.stores import AsyncPostgresStore, PostgresStore
from ullage.stores.postgres import connecting
from ullage.stores.postgres.outage import AWAY_S, Outage

pytestmark = pytest.mark.xdist_group("postgres")


class Clock:
    """Says what it is told to."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_after_one_wait_in_vain_nobody_waits_and_then_one_call_tries(clock):
    outage = Outage(clock)
    assert outage.patience_s(10.0) == 10.0
    outage.fail(clock.now_s)
    assert outage.patience_s(10.0) == 0
    clock.now_s += AWAY_S
    assert outage.patience_s(10.0) == 1.0
    assert outage.patience_s(10.0) == 0, "one call is enough to find out"
    clock.now_s += AWAY_S
    assert outage.patience_s(0.5) == 0.5, "no trial is longer than a call"
    outage.answer()
    assert outage.patience_s(10.0) == 10.0


def test_a_server_that_answers_others_is_busy_and_not_away(clock):
    outage = Outage(clock)
    began_s = clock.now_s
    clock.now_s += 3
    outage.answer()
    clock.now_s += 7
    outage.fail(began_s)
    assert outage.patience_s(10.0) == 10.0


def test_it_is_told_once_and_that_it_is_over(clock, caplog):
    outage = Outage(clock)
    with caplog.at_level(logging.WARNING, "ullage.stores"):
        for _ in range(3):
            outage.fail(clock.now_s)
            clock.now_s += AWAY_S
        outage.answer()
        outage.answer()
    assert [record.getMessage() for record in caplog.records] == [
        "the PostgreSQL server cannot be reached; nothing is kept or found there until it"
        " answers, and it is tried again every 5 s",
        "the PostgreSQL server answers again",
    ]


@pytest.fixture
def cable(server, url):
    cable = Cable(server.port)
    cable.url = url.replace(f":{server.port}/", f":{cable.port}/")
    yield cable
    cable.close()


def test_a_store_whose_server_is_away_asks_no_pool_and_finds_it_again(
    cable, monkeypatch
):
    store = PostgresStore(cable.url, timeout_s=1.5)
    kept = output("kept")
    store.put("t", [kept])
    asked = []
    ask = connecting.ConnectionPool.connection

    def noted(pool, timeout=None):
        asked.append(timeout)
        return ask(pool, timeout)

    monkeypatch.setattr(connecting.ConnectionPool, "connection", noted)
    monkeypatch.setattr("ullage.stores.postgres.outage.AWAY_S", 3_600.0)
    cable.is_away = True
    with pytest.raises(StoreError, match="cannot be reached"):
        store.get("t", kept.ref)
    assert asked
    asked.clear()
    for _ in range(5):
        with pytest.raises(StoreError, match="cannot be reached"):
            store.get("t", kept.ref)
    assert not asked
    monkeypatch.setattr("ullage.stores.postgres.outage.AWAY_S", 0.0)
    cable.is_away = False
    outage = store._pool._pool("get").outage
    outage.fail(outage._now_s())
    while True:
        try:
            assert store.get("t", kept.ref) == kept
            break
        except StoreError:
            pass  # its pool connects again by itself, soon
    store.close()


async def _found_away(store):
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.find("t", [b"key"])


def test_so_does_one_for_an_event_loop(cable, monkeypatch):
    monkeypatch.setattr("ullage.stores.postgres.outage.AWAY_S", 3_600.0)
    asked = []
    ask = connecting.AsyncConnectionPool.connection

    def noted(pool, timeout=None):
        asked.append(timeout)
        return ask(pool, timeout)

    monkeypatch.setattr(connecting.AsyncConnectionPool, "connection", noted)

    async def run():
        store = AsyncPostgresStore(cable.url, timeout_s=1.5)
        await store.find("t", [b"key"])
        cable.is_away = True
        await _found_away(store)
        asked.clear()
        await _found_away(store)
        await store.close()

    asyncio.run(run())
    assert not asked
