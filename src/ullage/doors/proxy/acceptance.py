"""What a request sets aside is stored once its upstream has accepted the credential.

Anybody who reaches a proxy can send requests with a credential of their own making. The upstream
answers them with a 401, and nothing of them may stay on the disk. So what is set aside for a tenant
is held in memory until the upstream answers one of its requests with a 2xx. Then it is committed,
before a byte of that answer goes on, and whatever comes later is committed at once. A 401 or 403
means that the tenant has to be accepted again, and lets go of what is held.

    fit ─▶ held in memory ─▶ sent ─┬─▶ 2xx: committed, then the answer is given
                                   ├─▶ 401, 403: let go
                                   └─▶ any other: held, within bounds; nothing was answered

What is read for a tenant comes from what is held and from the store, so that a ref opens before and
after alike. After a crash the client sends its history again, and what it holds is made from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ullage import Output, Record
from ullage.core.errors import RefNotFound, StoreError
from ullage.core.locks import Lock
from ullage.stores import (
    MemoryStore,
    Shape,
    Store,
    StoreWrapper,
    tenant_of,
)

_MOST_ACCEPTED = 50_000
_MOST_HELD = 1_000
_MOST_HELD_CHARS = 64 << 20


class _Held:
    """What one tenant set aside so far.

    Attributes:
        reads: the same, to be read.
        commits: outputs and records by owner, in the order in which they came.
        chars: characters of the outputs.
        is_open: whether more may come.
        lock: held while something comes, and while it is committed.
    """

    def __init__(self) -> None:
        self.reads = MemoryStore()
        self.commits: list[tuple[str, Sequence[Output], Sequence[Record]]] = []
        self.chars = 0
        self.is_open = True
        self.lock = Lock()

    def add(
        self, owner: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Hold more; the records that stand in the way, as `Store.commit` gives them."""
        conflicts = self.reads.commit(owner, outputs, records)
        own_records = () if conflicts else tuple(records)
        self.commits.append((owner, tuple(outputs), own_records))
        self.chars += sum(len(output.text) for output in outputs)
        return conflicts

    def commit_to(self, store: Store) -> bool:
        """Commit all of it; whether nothing stood in the way. No more of it is held."""
        is_first = True
        with self.lock:
            self.is_open = False
            for owner, outputs, records in self.merged():
                if store.commit(owner, outputs, records):
                    is_first = False
        return is_first

    def merged(self) -> Iterator[tuple[str, list[Output], list[Record]]]:
        """What is held, as one commit for each owner, with the newest record of each place."""
        outputs: dict[str, dict[str, Output]] = {}
        records: dict[str, dict[Any, Record]] = {}
        for owner, new_outputs, new_records in self.commits:
            outputs.setdefault(owner, {}).update(
                (item.ref, item) for item in new_outputs
            )
            records.setdefault(owner, {}).update(
                (item.place, item) for item in new_records
            )
        for owner in outputs:
            yield (
                owner,
                list(outputs[owner].values()),
                list(records[owner].values()),
            )


class Acceptance:
    """Which tenants an upstream has accepted, and what is held for others. Any thread may call."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted: dict[str, None] = {}
        self._refused: set[str] = set()
        self._held: dict[str, _Held] = {}
        self._running: Counter[str] = Counter()

    @contextmanager
    def request(self, tenant: str, over: list[str]) -> Iterator[None]:
        """A request of a tenant, for as long as the block lasts.

        Args:
            tenant: the owner.
            over: gets the tenants at the end of whom nothing is held any more. What sessions of
                theirs remember is no longer in the store.
        """
        with self._lock:
            self._running[tenant] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[tenant] -= 1
                if not self._running[tenant]:
                    del self._running[tenant]
                over += self._let_go()

    def _let_go(self) -> list[str]:
        """Whose things are let go: those who were refused, and the oldest of too many."""
        released = [
            tenant for tenant in self._refused if tenant not in self._running
        ]
        self._refused.difference_update(released)
        idle = [tenant for tenant in self._held if tenant not in self._running]
        chars = sum(entry.chars for entry in self._held.values())
        count = len(self._held)
        for tenant in idle:
            if count <= _MOST_HELD and chars <= _MOST_HELD_CHARS:
                break
            released.append(tenant)
            count -= 1
            chars -= self._held[tenant].chars
        return [
            tenant
            for tenant in released
            if self._held.pop(tenant, None) is not None
        ]

    def is_accepted(self, tenant: str) -> bool:
        """Whether an upstream has accepted a tenant, and nothing is held for it."""
        with self._lock:
            return tenant in self._accepted and tenant not in self._held

    def refuse(self, tenant: str) -> None:
        """An upstream did not accept the tenant's credential."""
        with self._lock:
            self._accepted.pop(tenant, None)
            self._refused.add(tenant)

    def accept(self, tenant: str, store: Store) -> bool:
        """An upstream accepted the tenant's credential: commit what is held.

        Args:
            tenant: the tenant.
            store: where it is committed.

        Returns:
            Whether all of it is kept as it is. If not, another worker decided otherwise first,
            and sessions of the tenant have to look again.

        Raises:
            StoreError: the store failed. What is held stays readable, and is tried again at the
                next answer; what comes later is committed at once and meets the error itself.
        """
        with self._lock:
            self._refused.discard(tenant)
            pending = self._held.get(tenant)
        try:
            is_first = pending is None or pending.commit_to(store)
        finally:
            with self._lock:
                _note(self._accepted, tenant)
        with self._lock:
            if pending is not None and self._held.get(tenant) is pending:
                del self._held[tenant]
        return is_first

    def held(self, owner: str) -> _Held | None:
        """What is held for an owner; None where there is nothing."""
        with self._lock:
            return self._held.get(tenant_of(owner))

    def holding(self, owner: str) -> _Held | None:
        """Where to hold more of an owner's content; None where it is committed at once."""
        tenant = tenant_of(owner)
        with self._lock:
            if tenant in self._accepted:
                return None
            return self._held.setdefault(tenant, _Held())


def _note(accepted: dict[str, None], tenant: str) -> None:
    """Note a tenant as the newest; the oldest of too many has to be accepted again."""
    accepted.pop(tenant, None)
    accepted[tenant] = None
    if len(accepted) > _MOST_ACCEPTED:
        del accepted[next(iter(accepted))]


class HoldingStore(StoreWrapper):
    """A store that holds what comes for tenants who are not accepted yet. The contract is `Store`.

    Args:
        store: where what is accepted is kept.
        acceptance: what is held; several handles of one store share it.
        waits: whether a call may wait for a commit that is under way.
    """

    def __init__(
        self, store: Store, acceptance: Acceptance, *, waits: bool = True
    ) -> None:
        super().__init__(store)
        self._acceptance = acceptance
        self._waits = waits

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`: held in memory until the tenant is accepted."""
        pending = self._acceptance.holding(tenant)
        if pending is None:
            return self.store.commit(tenant, outputs, records)
        if not pending.lock.acquire(self._waits):
            raise StoreError(
                self.name, "commit", "a commit is under way. Try again"
            )
        try:
            if pending.is_open:
                standing = self._standing(tenant, records)
                conflicts = pending.add(
                    tenant, outputs, () if standing else records
                )
                return standing or conflicts
        finally:
            pending.lock.release()
        return self.store.commit(tenant, outputs, records)

    def accept(self, tenant: str) -> bool:
        """See `Acceptance.accept`."""
        return self._acceptance.accept(tenant, self.store)

    def _standing(
        self, tenant: str, records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """The records in the store that are in the way of some, as `Store.commit` gives them."""
        once_records = {
            record.place: record for record in records if record.is_once
        }
        keys = list(
            dict.fromkeys(record.key for record in once_records.values())
        )
        there = self.store.find(tenant, keys) if keys else ()
        return tuple(
            stored
            for stored in there
            if stored.place in once_records
            and stored.data != once_records[stored.place].data
        )

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`: of what is held as well."""
        unique_keys = list(dict.fromkeys(keys))
        # before the store is asked: it may be committed meanwhile
        pending = self._acceptance.held(tenant)
        stored = self.store.find(tenant, unique_keys)
        if pending is None:
            return stored
        records = {record.place: record for record in stored}
        for record in pending.reads.find(tenant, unique_keys):
            if not record.is_once or record.place not in records:
                records[record.place] = record
        order = {key: at for at, key in enumerate(unique_keys)}
        return tuple(
            sorted(
                records.values(),
                key=lambda entry: (order[entry.key], *entry.place[1:]),
            )
        )

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`: of what is held as well."""
        pending = self._acceptance.held(tenant)
        if pending is not None:
            try:
                return pending.reads.stat(tenant, ref)
            except RefNotFound:
                pass
        return self.store.stat(tenant, ref)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`: of what is held as well."""
        pending = self._acceptance.held(tenant)
        if pending is not None:
            try:
                return pending.reads.chunk(tenant, ref, n)
            except RefNotFound:
                pass
        return self.store.chunk(tenant, ref, n)
