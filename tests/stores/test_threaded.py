import asyncio
import threading

import pytest

from tests.stores.contract import FileContract, batch, output
from ullage.core.errors import RefNotFound
from ullage.stores import MemoryStore, SqliteStore
from ullage.stores.threaded import Threaded
from ullage.testing import StoreContract


class Driven:
    """An AsyncStore seen as a Store, so that the one contract proves it."""

    def __init__(self, store):
        self.store = store
        self.name = store.name

    def __getattr__(self, name):
        method = getattr(self.store, name)

        def call(*args, **options):
            async def one():
                return await method(*args, **options)

            return asyncio.run(one())

        return call


class TestThreadedMemory(StoreContract):
    def open(self):
        store = MemoryStore(clock=self.clock)
        return Driven(Threaded(store))


class TestThreadedSqlite(FileContract):
    def open(self):
        store = SqliteStore(self.place(), clock=self.clock)
        return Driven(Threaded(store))


class Slow(MemoryStore):
    """Holds each commit until told, as a busy disk would."""

    def __init__(self):
        super().__init__()
        self.started, self.go_on = threading.Event(), threading.Event()

    def commit(self, tenant, outputs, records):
        self.started.set()
        self.go_on.wait()
        return super().commit(tenant, outputs, records)


def test_a_cancelled_commit_is_settled_when_the_caller_goes_on():
    store = Slow()

    async def scene():
        task = asyncio.create_task(
            Threaded(store).commit("t", [output("x")], [])
        )
        await asyncio.to_thread(store.started.wait)
        task.cancel()
        for _ in range(
            9
        ):  # a task that does not wait is over when the loop has gone round
            await asyncio.sleep(0)
        was_done = task.done()
        store.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return was_done, store.refs("t")

    assert asyncio.run(scene()) == (False, (output("x").ref,))


def test_a_commit_that_fails_after_its_cancellation_disturbs_nobody():
    class Failing(Slow):
        def commit(self, tenant, outputs, records):
            super().commit(tenant, outputs, records)
            raise RefNotFound(self.name, "x")

    store, complaints = Failing(), []

    async def scene():
        asyncio.get_running_loop().set_exception_handler(
            lambda _, told: complaints.append(told)
        )
        task = asyncio.create_task(Threaded(store).commit("t", [], []))
        await asyncio.to_thread(store.started.wait)
        task.cancel()
        store.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert complaints == []


def test_concurrent_commits_agree_on_a_winner(tmp_path):
    store = SqliteStore(tmp_path / "a.db")

    async def scene():
        shared = Threaded(store)
        jobs = (
            shared.commit("t", [], [batch(b"k", 0, b"%d" % n)])
            for n in range(20)
        )
        return await asyncio.gather(*jobs), await shared.find("t", [b"k"])

    lost, winner = asyncio.run(scene())
    store.close()
    assert lost.count(()) == 1
    assert set(lost) == {(), winner}
