"""Any store, for an event loop: each call runs in a worker thread.

A cancelled `commit` waits for its thread (`in_thread`). Reads are simply left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ParamSpec, TypeVar

from ullage.stores._base import Store
from ullage.stores._clean import STEP, Bounds, Collected
from ullage.values.effects import Output, Record, Shape

__all__ = ["Threaded", "in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run a function in a worker thread.

    Cancelled, it waits for the thread before it lets the cancellation through, so that when
    the caller goes on, the work has happened or never will.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, *given, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait((work,))
        if not work.cancelled():
            work.exception()  # seen: the cancellation is what the caller hears of
        raise


class Threaded:
    """An `AsyncStore` over a `Store`. The errors are those of the store.

    Attributes:
        store: the store underneath; closing this closes it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = store.name

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit` in a thread. Cancelled, it has happened whole or not at all."""
        return await in_thread(self.store.commit, tenant, outputs, records)

    async def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """`Blobs.put`, likewise."""
        await self.commit(tenant, outputs, ())

    async def append(self, tenant: str, records: Sequence[Record]) -> tuple[Record, ...]:
        """`Records.append`, likewise."""
        return await self.commit(tenant, (), records)

    async def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Store.find` in a thread."""
        return await asyncio.to_thread(self.store.find, tenant, tuple(keys))

    async def get(self, tenant: str, ref: str) -> Output:
        """`Store.get` in a thread."""
        return await asyncio.to_thread(self.store.get, tenant, ref)

    async def look(self, tenant: str, ref: str) -> Shape:
        """`Store.look` in a thread."""
        return await asyncio.to_thread(self.store.look, tenant, ref)

    async def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Store.chunk` in a thread."""
        return await asyncio.to_thread(self.store.chunk, tenant, ref, n)

    async def refs(self, tenant: str, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """`Store.refs` in a thread."""
        return await asyncio.to_thread(self.store.refs, tenant, after, limit)

    async def held(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.held` in a thread."""
        return await asyncio.to_thread(self.store.held, refs)

    async def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
        cursor: str | None = None,
        limit: int = STEP,
    ) -> Collected | None:
        """`Store.collect` in a thread."""
        return await asyncio.to_thread(
            self.store.collect,
            tenant,
            bounds,
            keep=keep,
            dry_run=dry_run,
            cursor=cursor,
            limit=limit,
        )

    async def close(self) -> None:
        """`Store.close` in a thread: it may wait for a commit that is under way."""
        await asyncio.to_thread(self.store.close)
