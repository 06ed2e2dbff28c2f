import asyncio
import threading
from contextlib import closing

import pytest

from ullage.core.errors import StoreError
from ullage.stores.postgres import AsyncPostgresStore, PostgresStore
from ullage.testing import BlobsContract, RecordsContract, StoreContract

pytestmark = pytest.mark.xdist_group("postgres")

TABLES = ("outputs", "chunks", "records", "names", "cleanings", "receipts")


class Emptied:
    """Each that is opened finds the tables of one server empty."""

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.url = server.url
        with (
            closing(PostgresStore(self.url)) as held,
            server.connect() as self._db,
        ):
            held.find(
                "t", [b"k"]
            )  # its connections are there for all that are opened
            yield

    def emptied(self):
        for table in TABLES:
            self._db.execute(f"DELETE FROM ullage.{table}")
        return self.url


class TestPostgres(Emptied, StoreContract):
    def open(self):
        return PostgresStore(self.emptied(), clock=self.clock)


class OnLoop:
    """An asynchronous store, its calls run on one loop, in a thread."""

    def __init__(self, store):
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def __getattr__(self, name):
        method = getattr(self._store, name)
        return lambda *given: asyncio.run_coroutine_threadsafe(
            method(*given), self._loop
        ).result(60)

    def put(self, tenant, outputs):
        self.commit(tenant, outputs, ())

    def append(self, tenant, records):
        return self.commit(tenant, (), records)

    def close(self):
        self.__getattr__("close")()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class TestAsyncPostgres(Emptied, BlobsContract, RecordsContract):
    def open(self):
        return OnLoop(AsyncPostgresStore(self.emptied(), clock=self.clock))


def test_an_asynchronous_store_that_was_closed_says_so(url):
    async def scene():
        store = AsyncPostgresStore(url)
        await store.commit("t", [], [])
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.find("t", [b"k"])

    asyncio.run(scene())
