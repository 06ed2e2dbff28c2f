"""A store around another: each call goes to the one underneath, unless it is done otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ullage.stores._base import Store, Transactional
from ullage.stores._clean import STEP, Bounds, Collected
from ullage.values.effects import Output, Record, Shape

__all__ = ["Around"]


class Around(Transactional):
    """The contract of `ullage.stores.Store`, done by the store underneath.

    Attributes:
        store: the store underneath; closing this closes it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = store.name

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`; `put` and `append` come by here too."""
        return self.store.commit(tenant, outputs, records)

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        return self.store.find(tenant, keys)

    def look(self, tenant: str, ref: str) -> Shape:
        """`Blobs.look`."""
        return self.store.look(tenant, ref)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        return self.store.chunk(tenant, ref, n)

    def refs(self, tenant: str, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """`Store.refs`."""
        return self.store.refs(tenant, after, limit)

    def held(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.held`."""
        return self.store.held(refs)

    def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
        cursor: str | None = None,
        limit: int = STEP,
    ) -> Collected | None:
        """`Store.collect`."""
        return self.store.collect(
            tenant, bounds, keep=keep, dry_run=dry_run, cursor=cursor, limit=limit
        )

    def close(self) -> None:
        """`Store.close`."""
        self.store.close()
