"""The store on a PostgreSQL server, and the same for an event loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ullage.core.values.carried import Portable
from ullage.core.values.effects import Output, Record, Shape
from ullage.core.values.receipts import LAST_DAY, Receipt
from ullage.core.values.spending import SpendingRow, SpendingSum
from ullage.stores._base import Transactional
from ullage.stores._clean import Bounds, Collected
from ullage.stores._packing import from_utf8, to_utf8
from ullage.stores.leases import Lease
from ullage.stores.objects.rows import Objects, and_objects
from ullage.stores.postgres import leases, schema, team_spending
from ullage.stores.postgres import outputs as output_queries
from ullage.stores.postgres import receipts as receipt_queries
from ullage.stores.postgres import records as ledger
from ullage.stores.postgres.asking import (
    Asking,
    Query,
    answered,
    async_answered,
)
from ullage.stores.postgres.cleaning import collect
from ullage.stores.postgres.connecting import AsyncPool, conninfo_of, prepared
from ullage.stores.postgres.spending import CallRow, book_calls

if TYPE_CHECKING:
    from ullage.stores.objects import ObjectStorage

T = TypeVar("T")

_NONE = Objects(lambda: True)

_REFS = """
SELECT ref FROM ullage.outputs WHERE tenant = %(tenant)s AND ref > %(after)s
ORDER BY ref LIMIT %(limit)s
"""
_AGREED = """
INSERT INTO ullage.agreed AS kept (name, value) VALUES (%(name)s, %(proposed)s)
ON CONFLICT (name) DO UPDATE SET value = kept.value RETURNING value
"""
_HAS_OBJECTS = "SELECT value FROM ullage.agreed WHERE name = 'objects'"
_NAMED = """
SELECT body FROM ullage.chunks
WHERE body = ANY(%(names)s::bytea[]) AND coding IN ('raw in object', 'zstd in object')
"""
_HELD = "SELECT DISTINCT ref FROM ullage.outputs WHERE ref = ANY(%(refs)s::bytea[])"


class PostgresStore(Portable, Transactional):
    """Keeps everything on a PostgreSQL server (15 or newer). Safe over threads, forks, machines.

    The contract is `ullage.stores.Store`. Stores of one process at one address share their
    connections.

    Args:
        url: the server and the database, ``postgresql://user@host:5432/database``, with any
            parameter of libpq. Its tables are in a schema ``ullage``, which is made if need be.
        timeout_s: how long a call is tried, over deadlocks and restarts, before it fails.
        most_connections: the most connections of this process at once.
        objects: where the larger bodies are kept; None: on the server with the rest.
        clock: the time in seconds since 1970; None for the server's.

    Raises:
        ConfigError: the address cannot be read.
        StoreError: the server cannot be reached, or has tables that a later version made.
    """

    name: str = schema.NAME

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 10.0,
        most_connections: int = 8,
        objects: ObjectStorage | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._pool = prepared(url, timeout_s, most_connections)
        self._objects = Objects(self._has_objects)
        self._has_storage = objects is not None
        if objects is not None:
            self._objects = objects.of(
                self.agreed("objects", os.urandom(32)), self._named
            )

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit` in one transaction; of a lost race the outputs are kept."""
        owner = to_utf8(tenant)
        blobs = output_queries.blobs_of(owner, outputs)
        if blobs and self._has_storage:
            existing = self._run(
                "commit", output_queries.existing, owner, blobs
            )
            missing = [ref for ref in blobs if ref not in existing]
            moved = self._objects.moved(owner, [blobs[ref] for ref in missing])
            blobs.update(zip(missing, moved, strict=True))
        return self._run(
            "commit", ledger.commit, owner, blobs, records, self._objects
        )

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        return self._run("find", ledger.find, tenant, tuple(keys))

    def newest(
        self, tenant: str, kind: str, limit: int
    ) -> tuple[tuple[Record, float], ...]:
        """`Records.newest`."""
        return self._run("newest", ledger.newest, tenant, kind, limit)

    def holdings(self, tenant: str) -> ledger.Holdings:
        """How much a tenant has on the server, for `ullage watch`.

        Args:
            tenant: the owner.

        Raises:
            StoreError: the store failed.
        """
        return self._run("holdings", ledger.holdings, tenant)

    def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        rows = self._run("get", output_queries.read, tenant, ref)
        return output_queries.decode_output(ref, rows, self._objects)

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`. Reads no text."""
        return self._run("stat", output_queries.stat, tenant, ref)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`, checked by its seal and its counts."""
        rows = self._run("chunk", output_queries.read, tenant, ref, n)
        return output_queries.decode_output(ref, rows, self._objects).text

    def refs(
        self, tenant: str, after: str = "", limit: int = 1_000
    ) -> tuple[str, ...]:
        """`Store.refs`."""
        values = {
            "tenant": to_utf8(tenant),
            "after": to_utf8(after),
            "limit": limit,
        }
        return tuple(
            map(
                from_utf8, self._run("refs", _fetch_refs, Query(_REFS, values))
            )
        )

    def existing_refs(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.existing_refs`."""
        query = Query(_HELD, {"refs": [to_utf8(ref) for ref in refs]})
        return frozenset(
            map(from_utf8, self._run("existing_refs", _fetch_refs, query))
        )

    @and_objects
    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`. An output's size is that of its compressed chunks."""
        now_s = _now_s(self._clock)
        return self._pool.run(
            "collect", lambda db: collect(db, tenant, bounds, cursor, now_s)
        )

    @property
    def shared(self) -> object:
        """The object that all stores of this process at one address share."""
        return self._pool

    def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """`ullage.stores.ReceiptStore.keep_receipts`."""
        self._run("keep_receipts", receipt_queries.keep, receipts)

    def receipts(
        self, since: str = "", until: str = LAST_DAY
    ) -> tuple[Receipt, ...]:
        """`ullage.stores.ReceiptStore.receipts`."""
        return self._run("receipts", receipt_queries.read, since, until)

    def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """`ullage.stores.SpendingStore.book_spending`."""
        return self._run("book_spending", team_spending.book, rows)

    def spending(self, since_s: int = 0) -> tuple[SpendingRow, ...]:
        """`ullage.stores.SpendingStore.spending`."""
        return self._run("spending", team_spending.read, since_s)

    def claim(
        self, tenant: str, key: bytes, holder: bytes, for_s: float
    ) -> Lease:
        """`ullage.stores.leases.Leases.claim`."""
        return self._run("claim", leases.claim, tenant, key, holder, for_s)

    def fulfil(
        self,
        tenant: str,
        key: bytes,
        holder: bytes,
        reply: bytes | None,
        for_s: float,
    ) -> None:
        """`ullage.stores.leases.Leases.fulfil`."""
        self._run("fulfil", leases.fulfil, tenant, key, holder, reply, for_s)

    def agreed(self, name: str, proposed: bytes) -> bytes:
        """The value that all workers use under a name: the one that the first of them proposed.

        Args:
            name: of the value.
            proposed: the value, if no worker has proposed one.
        """
        return self._run("agree", _agree, name, proposed)

    def book(self, budget: str, calls: Sequence[CallRow]) -> tuple[float, ...]:
        """Add calls to what a budget has spent, each once, however often it is booked.

        Returns:
            What is spent then: the sum of each column of `CallRow` from ``fresh_tokens`` on.
        """
        return self._run("book", book_calls, budget, calls)

    def close(self) -> None:
        """Let go of the connections. May be called twice."""
        self._pool.close()

    def _has_objects(self) -> bool:
        return bool(self._run("collect", _fetch_refs, Query(_HAS_OBJECTS)))

    def _named(self, objects: Collection[bytes]) -> set[bytes]:
        return {
            *self._run(
                "collect", _fetch_refs, Query(_NAMED, {"names": list(objects)})
            )
        }

    def _run(
        self, operation: str, ask: Callable[..., Asking[T]], *given: Any
    ) -> T:
        now_s = _now_s(self._clock)
        return self._pool.run(
            operation, lambda db: answered(db, ask(*given), now_s)
        )


class AsyncPostgresStore(Portable):
    """An `AsyncStore` on a PostgreSQL server: no call of it takes a thread.

    It belongs to the event loop that uses it first. The server is asked, and the tables are made,
    at the first call. The arguments are those of `PostgresStore`, but for ``objects``: what is in
    object storage is opened by a `PostgresStore` alone.

    Raises:
        ConfigError: the address cannot be read.
    """

    name: str = schema.NAME

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 10.0,
        most_connections: int = 8,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._pool = AsyncPool(
            conninfo_of(url, timeout_s), timeout_s, most_connections
        )
        self._is_prepared = False

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`. Cancelled, it is kept whole or not at all."""
        owner = to_utf8(tenant)
        blobs = output_queries.blobs_of(owner, outputs)
        return await self._run(
            "commit", ledger.commit, owner, blobs, records, _NONE
        )

    async def find(
        self, tenant: str, keys: Iterable[bytes]
    ) -> tuple[Record, ...]:
        """`Records.find`."""
        return await self._run("find", ledger.find, tenant, tuple(keys))

    async def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        return output_queries.decode_output(
            ref,
            await self._run("get", output_queries.read, tenant, ref),
            _NONE,
        )

    async def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`."""
        return await self._run("stat", output_queries.stat, tenant, ref)

    async def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        return output_queries.decode_output(
            ref,
            await self._run("chunk", output_queries.read, tenant, ref, n),
            _NONE,
        ).text

    async def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """`ullage.stores.ReceiptStore.keep_receipts`."""
        await self._run("keep_receipts", receipt_queries.keep, receipts)

    async def receipts(
        self, since: str = "", until: str = LAST_DAY
    ) -> tuple[Receipt, ...]:
        """`ullage.stores.ReceiptStore.receipts`."""
        return await self._run("receipts", receipt_queries.read, since, until)

    async def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """`ullage.stores.SpendingStore.book_spending`."""
        return await self._run("book_spending", team_spending.book, rows)

    async def spending(self, since_s: int = 0) -> tuple[SpendingRow, ...]:
        """`ullage.stores.SpendingStore.spending`."""
        return await self._run("spending", team_spending.read, since_s)

    async def claim(
        self, tenant: str, key: bytes, holder: bytes, for_s: float
    ) -> Lease:
        """`ullage.stores.leases.Leases.claim`."""
        return await self._run(
            "claim", leases.claim, tenant, key, holder, for_s
        )

    async def fulfil(
        self,
        tenant: str,
        key: bytes,
        holder: bytes,
        reply: bytes | None,
        for_s: float,
    ) -> None:
        """`ullage.stores.leases.Leases.fulfil`."""
        await self._run(
            "fulfil", leases.fulfil, tenant, key, holder, reply, for_s
        )

    async def close(self) -> None:
        """Let go of the connections. May be called twice."""
        await self._pool.close()

    async def _run(
        self, operation: str, ask: Callable[..., Asking[T]], *given: Any
    ) -> T:
        if not self._is_prepared:
            await self._pool.run(
                "open", lambda db: async_answered(db, schema.prepare())
            )
            self._is_prepared = True
        now_s = _now_s(self._clock)
        return await self._pool.run(
            operation, lambda db: async_answered(db, ask(*given), now_s)
        )


def _now_s(clock: Callable[[], float] | None) -> int | None:
    return None if clock is None else int(clock())


def _agree(name: str, proposed: bytes) -> Asking[bytes]:
    (rows,) = yield (Query(_AGREED, {"name": name, "proposed": proposed}),)
    return bytes(rows[0][0])


def _fetch_refs(query: Query) -> Asking[list[bytes]]:
    (rows,) = yield (query,)
    return [value for (value,) in rows]
