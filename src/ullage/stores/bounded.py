"""Any store, kept within bounds as it is used: no thread, no timer, no extra process.

A commit does a step of clean-up if the last clean-up of its tenant is long enough ago, and so
does each after it until that is done. The store remembers when that was, so of many processes
one does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from ullage.core.errors import StoreError
from ullage.core.values.effects import Output, Record
from ullage.stores._base import Store, StoreWrapper
from ullage.stores._clean import DAY_S, Bounds, Collected, is_recent

K = TypeVar("K")
V = TypeVar("V")

_DAILY = Bounds(older_than_s=30 * DAY_S, every_s=DAY_S)
_MOST = 50_000  # places in the ledger, and tenants, that are remembered


class BoundedStore(StoreWrapper):
    """A store that cleans up after itself. The contract is `ullage.stores.Store`.

    Before it cleans up, it looks up the ledger entries it has seen, at most 50,000, so that a
    process which runs for longer than ``older_than_s`` keeps what its sessions decided at their
    beginning.

    Args:
        store: the store underneath; closing this closes it.
        bounds: how long and how much is kept, and how often that is looked at.
        clock: the time in seconds since 1970.

    Attributes:
        last: what the last clean-up by this process did, or None.
        failure: why the last clean-up failed, or None. A commit never fails of it.
    """

    def __init__(
        self,
        store: Store,
        bounds: Bounds = _DAILY,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store)
        self.bounds = bounds
        self.last: Collected | None = None
        self.failure: StoreError | None = None
        self._clock = clock
        self._asked: dict[
            str, tuple[float, str | None]
        ] = {}  # when, and the cursor left
        self._seen: dict[tuple[str, bytes], None] = {}

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`, then a step of the tenant's clean-up, if one is due."""
        conflicts = self.store.commit(tenant, outputs, records)
        self._note(tenant, records)
        now_s = self._clock()
        checked_s, cursor = self._asked.get(tenant, (None, None))
        # a clean-up under way goes on with each commit; a new one begins when it is due
        if cursor or not is_recent(checked_s, now_s, self.bounds.every_s):
            _newest(self._asked, tenant, (now_s, None))
            keep = self.bounds.keep.union(output.ref for output in outputs)
            self._clean(tenant, replace(self.bounds, keep=keep), cursor, now_s)
        return conflicts

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        records = self.store.find(tenant, keys)
        self._note(tenant, records)
        return records

    def _note(self, tenant: str, records: Iterable[Record]) -> None:
        """Remember where something was decided; a report of usage is no decision."""
        for record in records:
            if record.is_once:
                _newest(self._seen, (tenant, record.key), None)

    def _clean(
        self, tenant: str, bounds: Bounds, cursor: str | None, now_s: float
    ) -> None:
        try:
            if cursor is None:  # what is looked up is marked as used
                seen = tuple(self._seen)
                self.store.find(
                    tenant, [key for owner, key in seen if owner == tenant]
                )
            collected = self.store.collect(tenant, bounds, cursor)
            if collected is not None:
                self._asked[tenant] = now_s, collected.cursor
                self.last = (
                    self.last.then(collected)
                    if cursor and self.last
                    else collected
                )
            self.failure = None
        except StoreError as error:
            self.failure = error


def _newest(entries: dict[K, V], key: K, value: V) -> None:
    """Add an entry as the newest one; the oldest go where there are too many."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > _MOST:
        for key_to_drop in tuple(entries)[: _MOST // 10]:
            entries.pop(key_to_drop, None)
