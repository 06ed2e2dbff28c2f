"""The contract of a store. Each store is proved by the same test, `tests/stores/contract.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ullage.effects import Output, Record

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

    def refs(self, tenant: str) -> tuple[str, ...]:
        """Every ref of this tenant, oldest first."""

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

    async def refs(self, tenant: str) -> tuple[str, ...]: ...

    async def close(self) -> None: ...
