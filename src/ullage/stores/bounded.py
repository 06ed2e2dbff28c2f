"""Any store, kept within bounds as it is used: no thread, no timer, no extra process.

A commit does a step of clean-up if the last clean-up of its tenant is long enough ago, and so
does each after it until that is done. The store remembers when that was, so of many processes
one does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from ullage.errors import StoreError
from ullage.stores._around import Around
from ullage.stores._base import Store
from ullage.stores._clean import DAY_S, Bounds, Collected, is_recent
from ullage.values.effects import Output, Record

__all__ = ["BoundedStore"]

_DAILY = Bounds(older_than_s=30 * DAY_S, every_s=DAY_S)


class BoundedStore(Around):
    """A store that cleans up after itself. The contract is `ullage.stores.Store`.

    Before it cleans up, it looks up every ledger entry it has seen, so that a process which
    runs for longer than ``older_than_s`` keeps what its sessions decided at their beginning.

    Args:
        store: the store underneath; closing this closes it.
        bounds: how long and how much is kept, and how often that is looked at.
        clock: the time in seconds since 1970.

    Attributes:
        last: what the last clean-up by this process did, or None.
        failure: why the last clean-up failed, or None. A commit never fails of it.
    """

    def __init__(
        self, store: Store, bounds: Bounds = _DAILY, *, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(store)
        self.bounds = bounds
        self.last: Collected | None = None
        self.failure: StoreError | None = None
        self._clock = clock
        self._asked_s: dict[str, float] = {}
        self._cursors: dict[str, str | None] = {}
        self._seen: dict[str, set[bytes]] = {}

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`, then a step of clean-up of this tenant's if one is due."""
        first = self.store.commit(tenant, outputs, records)
        self._note(tenant, records)
        now_s, cursor = self._clock(), self._cursors.get(tenant)
        if cursor or not is_recent(self._asked_s.get(tenant), now_s, self.bounds.every_s):
            self._asked_s[tenant] = now_s
            self._clean(tenant, cursor, {output.ref for output in outputs})
        return first

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        found = self.store.find(tenant, keys)
        self._note(tenant, found)
        return found

    def _note(self, tenant: str, records: Iterable[Record]) -> None:
        """Remember where something was decided; a report of usage is no decision."""
        keys = {record.key for record in records if record.is_once}
        self._seen.setdefault(tenant, set()).update(keys)

    def _clean(self, tenant: str, cursor: str | None, keep: Collection[str]) -> None:
        try:
            self._cursors[tenant] = None
            if cursor is None:
                self.store.find(tenant, tuple(self._seen.get(tenant, ())))  # marks them as used
            done = self.store.collect(tenant, self.bounds, keep=keep, cursor=cursor)
            if done is not None:
                self._cursors[tenant] = done.cursor
                self.last = self.last.then(done) if cursor and self.last else done
            self.failure = None
        except StoreError as error:
            self.failure = error
