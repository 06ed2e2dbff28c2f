"""The contract of a store. Each store is proved by the same test, `tests/stores/contract.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from ullage.stores._clean import Bounds, Collected
from ullage.values.effects import Output, Record, Shape

__all__ = ["AsyncStore", "Store"]


class Store(Protocol):
    """Keeps outputs under their refs and ledger records under their keys, by tenant.

    Every method raises `StoreError` when the store itself fails. A method may be called
    from any thread. What one tenant put, no other tenant can read.
    """

    name: str

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Keep all of it in one transaction, or nothing.

        Outputs already kept are left as they are. A ``batch`` record whose (key, n) is
        taken by different data is not written; the record that stands there is returned,
        and then *nothing* of this commit's records is kept (the outputs are). The other
        kinds of record replace the older value.

        Raises:
            StoreError: the store failed, or a ref is taken by different content.
        """

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Every record under any of these keys, in order of (key as given, kind, n)."""

    def get(self, tenant: str, ref: str) -> Output:
        """The output under this ref, its integrity checked.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: what is kept there is damaged.
        """

    def look(self, tenant: str, ref: str) -> Shape:
        """How much is kept under this ref, and in which chunks. Reads no text of a huge one.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
        """

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """The text of one chunk, its integrity checked. All of them joined are the output.

        Raises:
            RefNotFound: nothing is kept under it for this tenant, or it has no such chunk.
            StoreError: what is kept there is damaged.
        """

    def refs(self, tenant: str) -> tuple[str, ...]:
        """Every ref of this tenant, oldest first."""

    def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Collected | None:
        """Let go of what is beyond the bounds, in one transaction (`ullage.stores._clean`).

        Args:
            tenant: whose outputs and records; None: everybody's.
            bounds: how long and how much is kept.
            keep: refs that stay whatever the bounds say.
            dry_run: say what would go, and keep it.

        Returns:
            What went, or None if the last clean-up is not ``bounds.every_s`` ago.
        """

    def close(self) -> None:
        """Let go of files and connections. A closed store raises StoreError."""


class AsyncStore(Protocol):
    """The same contract for an event loop."""

    name: str

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]: ...

    async def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]: ...

    async def get(self, tenant: str, ref: str) -> Output: ...

    async def look(self, tenant: str, ref: str) -> Shape: ...

    async def chunk(self, tenant: str, ref: str, n: int) -> str: ...

    async def refs(self, tenant: str) -> tuple[str, ...]: ...

    async def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Collected | None: ...

    async def close(self) -> None: ...
