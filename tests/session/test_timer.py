"""Receipts are written in time by a loop: also where no more replies come."""

import asyncio
import gc

import pytest

from tests.session.test_receipts import Awaited, Failing, asked
from ullage import AsyncSession, MemoryStore, Session
from ullage.core.values.usage import Usage
from ullage.session.receipts import writer
from ullage.session.receipts.timer import write_in_time
from ullage.stores import SqliteStore
from ullage.stores.threaded import Threaded


async def _until(holds):
    while not holds():  # noqa: ASYNC110 - nobody tells of what a store has
        await asyncio.sleep(0.01)


async def _replies(session, count):
    for number in range(count):
        await session.fit(asked(f"Go {number}."))
        await session.observe(Usage(fresh_tokens=3))


def _written(store):
    """How many requests the rows of a store are of, as another process reads them."""
    store = getattr(store, "kept", store)
    return sum(receipt.sums.requests for receipt in store.receipts())


@pytest.mark.parametrize("kind", [MemoryStore, Awaited])
def test_an_idle_session_on_an_event_loop_writes_what_waits(kind, monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.5)
    store = kind()

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 26)
        await _until(lambda: _written(store) == 26)

    asyncio.run(run())


def test_a_store_that_fails_is_tried_again_without_another_reply(monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.2)
    store = Failing(3)

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 3)
        await _until(lambda: _written(store) == 3)
        await _until(lambda: store.times < 0)
        return session

    asyncio.run(run())


def test_what_a_thread_notes_is_written_by_the_loop(monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.5)
    store = MemoryStore()

    def elsewhere():
        session = Session("gpt-4.1", store=store)
        for number in range(3):
            session.fit(asked(f"Elsewhere {number}."))
            session.observe(Usage(fresh_tokens=3))

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 1)
        await asyncio.to_thread(elsewhere)
        await _until(lambda: _written(store) == 4)

    asyncio.run(run())


def test_the_loop_of_another_run_writes_what_the_first_left(monkeypatch):
    store = MemoryStore()
    session = AsyncSession("gpt-4.1", store=store)
    asyncio.run(_replies(session, 2))
    assert _written(store) == 1
    monkeypatch.setattr(writer, "EVERY_S", 0.0)

    async def run():
        await session.fit(asked("Go on."))
        await _until(lambda: _written(store) == 2)

    asyncio.run(run())


def test_nothing_runs_where_nothing_waits(monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.1)
    store = MemoryStore()

    async def run():
        for number in range(8):
            session = AsyncSession("gpt-4.1", store=store)
            await _replies(session, number)
        await _until(lambda: _written(store) == 28)
        loop = asyncio.get_running_loop()
        await _until(
            lambda: all(handle.cancelled() for handle in loop._scheduled)
        )
        await _until(lambda: len(asyncio.all_tasks()) == 1)

    asyncio.run(run())


def test_the_sessions_of_one_store_have_one_timer():
    store = MemoryStore()
    ledger = writer.ledger_of(store)

    async def run():
        write_in_time(store)
        first = ledger.timer
        write_in_time(Threaded(store))
        assert ledger.timer is first
        return first

    first, second = asyncio.run(run()), asyncio.run(run())
    assert first is not second
    assert not second.runs


def test_a_store_that_is_closed_has_none():
    store = MemoryStore()

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 2)
        await session.close()

    asyncio.run(run())
    assert writer.ledger_of(store).timer is None


class Slow(Awaited):
    """Waits before it keeps receipts of a process that goes on, as a server far away does."""

    def __init__(self):
        super().__init__()
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    async def keep_receipts(self, receipts):
        if any(receipt.is_open for receipt in receipts):
            self.asked.set()
            await self.answers.wait()
        await super().keep_receipts(receipts)


def test_a_write_under_way_does_not_come_after_the_last_one(monkeypatch):
    monkeypatch.setattr(writer, "EVERY_S", 0.2)

    async def run():
        store = Slow()
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 2)
        store.asked.clear()
        store.answers.clear()
        await store.asked.wait()
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        store.answers.set()
        await closing
        await asyncio.sleep(0.05)
        (receipt,) = store.kept.receipts()
        assert (receipt.sums.requests, receipt.is_open) == (2, False)

    asyncio.run(run())


def test_the_store_that_noted_last_may_go_and_the_others_are_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(writer, "EVERY_S", 0.2)
    store = SqliteStore(tmp_path / "kept.db")
    ledger = writer.ledger_of(store)

    async def run():
        session = AsyncSession("gpt-4.1", store=store)
        await _replies(session, 2)
        # another one at the same place, which nobody holds
        writer.ledger_of(SqliteStore(tmp_path / "kept.db"))
        gc.collect()
        assert ledger.keeper is None
        await _until(lambda: not ledger.timer._is_awake)
        await _replies(session, 2)
        await _until(lambda: _written(store) == 4)

    asyncio.run(run())
