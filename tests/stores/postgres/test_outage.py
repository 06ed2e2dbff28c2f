"""A server that is away costs one wait, and not one for each call."""

import asyncio
import logging
import threading
from contextlib import closing

import pytest
from psycopg import errors

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
    outage = Outage(8, clock)
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
    outage = Outage(8, clock)
    began_s = clock.now_s
    clock.now_s += 3
    outage.answer()
    clock.now_s += 7
    outage.fail(began_s)
    assert outage.patience_s(10.0) == 10.0


def test_it_is_told_once_and_that_it_is_over(clock, caplog):
    outage = Outage(8, clock)
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


def test_a_full_pool_is_no_outage(url):
    has_connection = threading.Event()
    is_waited_for = threading.Event()

    def long(db):
        has_connection.set()
        assert is_waited_for.wait(50)

    with closing(
        PostgresStore(url, timeout_s=0.2, most_connections=1)
    ) as store:
        thread = threading.Thread(
            target=store._pool.run, args=("collect", long)
        )
        thread.start()
        assert has_connection.wait(50)
        for _ in range(2):
            with pytest.raises(StoreError, match="connections are in use"):
                store.find("t", [b"key"])
        is_waited_for.set()
        thread.join()
        assert store.find("t", [b"key"]) == ()


def test_a_pooler_that_does_not_reach_its_server_tells_of_an_outage(url):
    asked, tried = [], []

    def refuse(db):
        asked.append(db)
        raise errors.lookup("08P01")("server login has been failing")

    with closing(PostgresStore(url, timeout_s=0.2)) as store:
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be reached"):
                store._pool.run("get", refuse)
            tried.append(len(asked))
        assert tried[0] == tried[1], "the second call asks nobody"


def test_what_the_driver_refuses_tells_nothing_of_the_server(url):
    with closing(PostgresStore(url)) as store:
        outage = store._pool._pool("find").outage
        outage.fail(outage._now_s())
        outage._tried_again_s = 0.0
        with pytest.raises(StoreError, match="it takes"):
            store._pool.run(
                "find", lambda db: db.execute("SELECT %s", ("\0",))
            )
        assert outage.patience_s(1.0) == 0


def test_a_pool_that_is_closed_while_a_call_waits_is_no_outage(url, caplog):
    async def run():
        store = AsyncPostgresStore(url, timeout_s=5.0, most_connections=1)
        await store.find("t", [b"key"])
        pool = store._pool
        has_connection = asyncio.Event()

        async def long(db):
            has_connection.set()
            await asyncio.sleep(0.2)

        working = asyncio.create_task(pool.run("collect", long))
        await has_connection.wait()
        waiting = asyncio.create_task(store.find("t", [b"key"]))
        await asyncio.sleep(0.05)
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await waiting
        await working

    with caplog.at_level(logging.WARNING, "ullage.stores"):
        asyncio.run(run())
    assert not caplog.records


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
