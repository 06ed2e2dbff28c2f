"""A store that lives as long as its process: dictionaries behind a lock.

The default of a session (DESIGN §10 "which store by default?"). It keeps the very objects it
is given, so an output that is still in the caller's history costs a reference, not a copy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

from ullage.core.errors import RefNotFound
from ullage.core.locks import Lock
from ullage.core.values.effects import Output, Record, Shape
from ullage.core.values.receipts import LAST_DAY, Receipt, ReceiptKey, in_order
from ullage.stores._base import Transactional, closed, refuse_contradictions, taken
from ullage.stores._clean import Bounds, Collected, Cursor, clean, is_recent, named_in


class _Tenant:
    """What one tenant keeps: outputs by ref, records by key and then by kind, n and name.

    Beside them: when each ref and key was last used, the shapes asked for so far, and which
    refs the records of a key need, as far as a clean-up has looked.
    """

    __slots__ = ("needs_of", "outputs", "records", "shapes", "used_s")

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.records: dict[bytes, dict[tuple[str, int, str], Record]] = {}
        self.shapes: dict[str, Shape] = {}
        self.used_s: dict[str | bytes, float] = {}
        self.needs_of: dict[bytes, set[str]] = {}

    def needs(self, key: bytes) -> set[str]:
        """The refs that the records of a key need; to find them takes too long for a commit."""
        if key not in self.needs_of:
            held, found = self.outputs.keys(), set[str]()
            for record in self.records[key].values():
                if record.is_once:
                    found |= named_in(
                        record.data, lambda refs: held & {*refs}, self._text_of
                    )
            self.needs_of[key] = found
        return self.needs_of[key]

    def needed(self, last_s: float) -> set[str]:
        """The refs that a ledger used after ``last_s`` needs."""
        live = (self.needs(key) for key in self.records if self.used_s[key] > last_s)
        return set[str]().union(*live)

    def _text_of(self, ref: str) -> str:
        return self.outputs[ref].text


def _records(own: _Tenant) -> tuple[Record, ...]:
    return tuple(record for kept in own.records.values() for record in kept.values())


def _holding(
    kind: type[MemoryStore], contents: Any, receipts: Sequence[Receipt] = ()
) -> MemoryStore:
    """A new store that holds what another one held."""
    store = kind()
    for tenant, outputs, records in contents:
        store.commit(tenant, outputs, records)
    store.keep_receipts(receipts)
    return store


class MemoryStore(Transactional):
    """Keeps everything in this process and nothing after it. Thread safe.

    The contract is `ullage.stores.Store`.

    Args:
        clock: the time in seconds since 1970, for clean-up.
    """

    name: str = "memory"

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._collected_s: dict[str | None, float] = {}
        self._lock = Lock()
        self._tenants: dict[str, _Tenant] | None = {}
        self._receipts: dict[tuple[ReceiptKey, str], Receipt] = {}

    def __copy__(self) -> MemoryStore:
        return self

    def __deepcopy__(self, memo: Any) -> MemoryStore:
        return self

    def __reduce__(self) -> Any:
        """Pickled, it is what it holds: there is nothing else to find it in."""
        with self._lock:
            contents = [
                (name, tuple(own.outputs.values()), _records(own))
                for name, own in self._open("pickle").items()
            ]
            receipts = tuple(self._receipts.values())
        return _holding, (type(self), contents, receipts)

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`, all of it or nothing."""
        with self._lock:
            own = self._open("commit").setdefault(tenant, _Tenant())
            new = dict[str, Output]()
            for output in outputs:
                known = own.outputs.get(output.ref) or new.setdefault(
                    output.ref, output
                )
                if known is not output and known != output:
                    raise taken(self.name, output.ref)
            refuse_contradictions(self.name, records)
            now_s = self._clock()
            own.outputs.update(new)
            own.used_s.update((output.ref, now_s) for output in outputs)
            first = _first(own, records)
            if not first:
                for record in records:
                    under = own.records.setdefault(record.key, {})
                    under[record.place[1:]] = record
                    own.used_s[record.key] = now_s
                    own.needs_of.pop(record.key, None)
            return first

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        with self._lock:
            own = self._open("find").get(tenant)
            if own is None:
                return ()
            kept = own.records
            found = [key for key in dict.fromkeys(keys) if key in kept]
            own.used_s.update(dict.fromkeys(found, self._clock()))
            return tuple(
                kept[key][place] for key in found for place in sorted(kept[key])
            )

    def newest(
        self, tenant: str, kind: str, limit: int
    ) -> tuple[tuple[Record, float], ...]:
        """`Records.newest`."""
        with self._lock:
            own = self._open("newest").get(tenant)
            if own is None:
                return ()
            used = own.used_s
            under = (
                record for places in own.records.values() for record in places.values()
            )
            rows = [
                (record, used[record.key]) for record in under if record.kind == kind
            ]
            rows.sort(key=lambda row: row[1], reverse=True)
            return tuple(rows[:limit])

    def look(self, tenant: str, ref: str) -> Shape:
        """`Blobs.look`: the output as one chunk, measured once."""
        with self._lock:
            own, output = self._used("look", tenant, ref)
            found = own.shapes.get(ref)
            if found is None:
                found = own.shapes[ref] = Shape.of(output)
            return found

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`: chunk 0 is the string that was put there, the object itself."""
        with self._lock:
            text = self._used("chunk", tenant, ref)[1].text
        if n or not text:
            raise RefNotFound(self.name, ref)
        return text

    def refs(self, tenant: str, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """`Store.refs`."""
        with self._lock:
            own = self._open("refs").get(tenant)
            behind = [ref for ref in own.outputs if ref > after] if own else []
        return tuple(nsmallest(limit, behind))

    def held(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.held`."""
        with self._lock:
            tenants = self._open("held").values()
            return frozenset(
                ref for ref in refs if any(ref in own.outputs for own in tenants)
            )

    def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """`ullage.stores.ReceiptStore.keep_receipts`."""
        with self._lock:
            self._open("keep_receipts")
            for receipt in receipts:
                key = in_order(receipt)
                before = self._receipts.get(key)
                if before is None or receipt.sums.requests >= before.sums.requests:
                    self._receipts[key] = receipt

    def receipts(self, since: str = "", until: str = LAST_DAY) -> tuple[Receipt, ...]:
        """`ullage.stores.ReceiptStore.receipts`."""
        with self._lock:
            self._open("receipts")
            kept = [
                one for one in self._receipts.values() if since <= one.key.day <= until
            ]
        return tuple(sorted(kept, key=in_order))

    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`. An output's size is what its string takes in memory.

        A caller's history may hold the same string.
        """
        with self._lock:
            tenants = self._open("collect")
            some = (
                tenants
                if tenant is None
                else {t: tenants[t] for t in (tenant,) if t in tenants}
            )
            contents = _Contents(some, self._collected_s, tenant, bounds.dry_run)
            return clean(contents, bounds, cursor, self._clock())

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._tenants = None
            self._receipts = {}

    def _used(self, operation: str, tenant: str, ref: str) -> tuple[_Tenant, Output]:
        """An output and what its tenant keeps, marked as used now. The lock is held."""
        own = self._open(operation).get(tenant)
        output = own.outputs.get(ref) if own else None
        if own is None or output is None:
            raise RefNotFound(self.name, ref)
        own.used_s[ref] = self._clock()
        return own, output

    def _open(self, operation: str) -> dict[str, _Tenant]:
        if self._tenants is None:
            raise closed(self.name, operation)
        return self._tenants


def _first(own: _Tenant, records: Sequence[Record]) -> tuple[Record, ...]:
    """The records written once that are in the place of one of these, with different data."""
    once = (record for record in records if record.is_once)
    pairs = ((each, own.records.get(each.key, {}).get(each.place[1:])) for each in once)
    return tuple(
        theirs for ours, theirs in pairs if theirs and theirs.data != ours.data
    )


class _Contents(NamedTuple):
    """What clean-up asks of some tenants: `ullage.stores._clean.Contents`."""

    tenants: Mapping[str, _Tenant]
    began_s: dict[str | None, float]
    scope: str | None
    keeps: bool

    def begun(self, now_s: float, every_s: float) -> int | None:
        if is_recent(self.began_s.get(self.scope), now_s, every_s):
            return None
        if not self.keeps:
            self.began_s[self.scope] = now_s
        for own in self.tenants.values():
            own.used_s = {name: min(at_s, now_s) for name, at_s in own.used_s.items()}
        return sum(
            sys.getsizeof(output.text)
            for own in self.tenants.values()
            for output in own.outputs.values()
        )

    def keys(self, after: Cursor, limit: int) -> list[tuple[str, bytes, float, int]]:
        """`Contents.keys`; what their records need is found out here, for `outputs`."""
        rows = (
            (who, key, own.used_s[key], len(records))
            for who, own in self.tenants.items()
            for key, records in own.records.items()
        )
        found = nsmallest(
            limit, (row for row in rows if row[:2] > (after.tenant, after.key))
        )
        for who, key, *_ in found:
            self.tenants[who].needs(key)
        return found

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> list[tuple[float, str, str, bool]]:
        needed = {who: own.needed(last_s) for who, own in self.tenants.items()}
        rows = (
            (own.used_s[ref], who, ref, ref in needed[who])
            for who, own in self.tenants.items()
            for ref in own.outputs
        )
        behind = after.used_s, after.tenant, after.ref
        return nsmallest(limit, (row for row in rows if row[:3] > behind))

    def drop(self, tenant: str, key: bytes) -> None:
        if not self.keeps:
            own = self.tenants[tenant]
            del own.records[key], own.used_s[key], own.needs_of[key]

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        self.tenants[tenant].used_s[key] = now_s

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        own = self.tenants[tenant]
        size_bytes = sys.getsizeof(own.outputs[ref].text)
        if not self.keeps:
            del own.outputs[ref], own.used_s[ref]
            own.shapes.pop(ref, None)
        return size_bytes, size_bytes
