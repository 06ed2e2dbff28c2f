"""A store around another: each call goes to the one underneath, unless it is done otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ullage.stores._base import Store
from ullage.stores._clean import Bounds, Collected
from ullage.values.effects import Output, Record, Shape

__all__ = ["Around"]


class Around:
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
        """`Store.commit`."""
        return self.store.commit(tenant, outputs, records)

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Store.find`."""
        return self.store.find(tenant, keys)

    def get(self, tenant: str, ref: str) -> Output:
        """`Store.get`."""
        return self.store.get(tenant, ref)

    def look(self, tenant: str, ref: str) -> Shape:
        """`Store.look`."""
        return self.store.look(tenant, ref)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Store.chunk`."""
        return self.store.chunk(tenant, ref, n)

    def refs(self, tenant: str) -> tuple[str, ...]:
        """`Store.refs`."""
        return self.store.refs(tenant)

    def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Collected | None:
        """`Store.collect`."""
        return self.store.collect(tenant, bounds, keep=keep, dry_run=dry_run)

    def close(self) -> None:
        """`Store.close`."""
        self.store.close()
