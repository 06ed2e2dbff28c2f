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

from msgspec.structs import replace

from ullage.core.errors import RefNotFound
from ullage.core.locks import Lock
from ullage.core.values.effects import Output, Record, Shape
from ullage.core.values.receipts import LAST_DAY, Receipt, ReceiptKey, in_order
from ullage.core.values.spending import SpendingRow, SpendingSum
from ullage.stores._base import (
    Transactional,
    closed_error,
    ref_taken_error,
    refuse_contradictions,
)
from ullage.stores._clean import (
    Bounds,
    Collected,
    Cursor,
    clean,
    is_recent,
    named_in,
)


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
            existing = self.outputs.keys()
            refs = set[str]()
            for record in self.records[key].values():
                if record.is_once:
                    refs |= named_in(
                        record.data,
                        lambda refs: existing & {*refs},
                        self._text_of,
                    )
            self.needs_of[key] = refs
        return self.needs_of[key]

    def needed(self, last_s: float) -> set[str]:
        """The refs that a ledger used after ``last_s`` needs."""
        live = (
            self.needs(key)
            for key in self.records
            if self.used_s[key] > last_s
        )
        return set[str]().union(*live)

    def _text_of(self, ref: str) -> str:
        return self.outputs[ref].text


def _records(contents: _Tenant) -> tuple[Record, ...]:
    return tuple(
        record
        for places in contents.records.values()
        for record in places.values()
    )


def _restore(
    kind: type[MemoryStore],
    contents: Any,
    receipts: Sequence[Receipt] = (),
    spending: Sequence[SpendingRow] = (),
) -> MemoryStore:
    """A new store with the contents of a pickled one."""
    store = kind()
    for tenant, outputs, records in contents:
        store.commit(tenant, outputs, records)
    store.keep_receipts(receipts)
    store.book_spending(spending)
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
        self._spending: dict[tuple[Any, ...], SpendingRow] = {}

    def __copy__(self) -> MemoryStore:
        return self

    def __deepcopy__(self, memo: Any) -> MemoryStore:
        return self

    def __reduce__(self) -> Any:
        """Pickled, it takes its contents along: there is nothing else to find them in."""
        with self._lock:
            tenants = [
                (name, tuple(contents.outputs.values()), _records(contents))
                for name, contents in self._open("pickle").items()
            ]
            receipts = tuple(self._receipts.values())
            spending = tuple(self._spending.values())
        return _restore, (type(self), tenants, receipts, spending)

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """`Store.commit`, all of it or nothing."""
        with self._lock:
            contents = self._open("commit").setdefault(tenant, _Tenant())
            added = dict[str, Output]()
            for output in outputs:
                stored = contents.outputs.get(output.ref) or added.setdefault(
                    output.ref, output
                )
                if stored is not output and stored != output:
                    raise ref_taken_error(self.name, output.ref)
            refuse_contradictions(self.name, records)
            now_s = self._clock()
            # nothing is changed before everything is checked: all of it or nothing
            contents.outputs.update(added)
            contents.used_s.update((output.ref, now_s) for output in outputs)
            conflicts = _find_conflicts(contents, records)
            if not conflicts:
                for record in records:
                    places = contents.records.setdefault(record.key, {})
                    places[record.place[1:]] = record
                    contents.used_s[record.key] = now_s
                    # found out again by the next clean-up
                    contents.needs_of.pop(record.key, None)
            return conflicts

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        with self._lock:
            contents = self._open("find").get(tenant)
            if contents is None:
                return ()
            records = contents.records
            present = [key for key in dict.fromkeys(keys) if key in records]
            contents.used_s.update(dict.fromkeys(present, self._clock()))
            return tuple(
                records[key][place]
                for key in present
                for place in sorted(records[key])
            )

    def newest(
        self, tenant: str, kind: str, limit: int
    ) -> tuple[tuple[Record, float], ...]:
        """`Records.newest`."""
        with self._lock:
            contents = self._open("newest").get(tenant)
            if contents is None:
                return ()
            used_s = contents.used_s
            records = (
                record
                for places in contents.records.values()
                for record in places.values()
            )
            rows = [
                (record, used_s[record.key])
                for record in records
                if record.kind == kind
            ]
            rows.sort(key=lambda row: row[1], reverse=True)
            return tuple(rows[:limit])

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`: the output as one chunk, measured once."""
        with self._lock:
            contents, output = self._use_output("stat", tenant, ref)
            shape = contents.shapes.get(ref)
            if shape is None:
                shape = contents.shapes[ref] = Shape.of(output)
            return shape

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`: chunk 0 is the string that was put there, the object itself."""
        with self._lock:
            text = self._use_output("chunk", tenant, ref)[1].text
        if n or not text:
            raise RefNotFound(self.name, ref)
        return text

    def refs(
        self, tenant: str, after: str = "", limit: int = 1_000
    ) -> tuple[str, ...]:
        """`Store.refs`."""
        with self._lock:
            contents = self._open("refs").get(tenant)
            later = (
                [ref for ref in contents.outputs if ref > after]
                if contents
                else []
            )
        return tuple(nsmallest(limit, later))

    def existing_refs(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.existing_refs`."""
        with self._lock:
            tenants = self._open("existing_refs").values()
            return frozenset(
                ref
                for ref in refs
                if any(ref in contents.outputs for contents in tenants)
            )

    def keep_receipts(self, receipts: Sequence[Receipt]) -> None:
        """`ullage.stores.ReceiptStore.keep_receipts`."""
        with self._lock:
            self._open("keep_receipts")
            for receipt in receipts:
                key = in_order(receipt)
                stored = self._receipts.get(key)
                if (
                    stored is None
                    or receipt.sums.requests >= stored.sums.requests
                ):
                    self._receipts[key] = receipt

    def receipts(
        self, since: str = "", until: str = LAST_DAY
    ) -> tuple[Receipt, ...]:
        """`ullage.stores.ReceiptStore.receipts`."""
        with self._lock:
            self._open("receipts")
            matching = [
                receipt
                for receipt in self._receipts.values()
                if since <= receipt.key.day <= until
            ]
        return tuple(sorted(matching, key=in_order))

    def book_spending(
        self, rows: Sequence[SpendingRow]
    ) -> tuple[SpendingSum, ...]:
        """`ullage.stores.SpendingStore.book_spending`."""
        with self._lock:
            self._open("book_spending")
            now_s = int(self._clock())
            for row in rows:
                place = (row.key, row.writer)
                stored = self._spending.get(place)
                is_newer = stored is None or row.version >= stored.version
                if row.version and is_newer:
                    self._spending[place] = replace(row, written_s=now_s)
            return tuple(self._spent_by_others(row, now_s) for row in rows)

    def spending(self, since_s: int = 0) -> tuple[SpendingRow, ...]:
        """`ullage.stores.SpendingStore.spending`."""
        with self._lock:
            self._open("spending")
            rows = sorted(self._spending.items())
        return tuple(row for _, row in rows if row.resets_s > since_s)

    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`. An output's size is what its string takes in memory.

        A caller's history may hold the same string.
        """
        with self._lock:
            tenants = self._open("collect")
            owners: Iterable[str]
            if tenant is None or bounds.has_conversations:
                owners = (
                    owner for owner in tenants if bounds.covers(tenant, owner)
                )
            else:
                owners = (tenant,)
            selected = {
                owner: tenants[owner] for owner in owners if owner in tenants
            }
            contents = _Contents(
                selected, self._collected_s, tenant, bounds.dry_run
            )
            return clean(contents, bounds, cursor, self._clock())

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._tenants = None
            self._receipts = {}
            self._spending = {}

    def _spent_by_others(self, row: SpendingRow, now_s: int) -> SpendingSum:
        """What other writers have spent and reserved under the key of a row; under the lock."""
        others = [
            stored
            for (key, writer), stored in self._spending.items()
            if key == row.key and writer != row.writer
        ]
        live = [
            stored
            for stored in others
            if stored.written_s + stored.lapse_s > now_s
        ]
        return SpendingSum(
            sum(stored.tokens for stored in others),
            sum(stored.usd for stored in others),
            sum(stored.reserved_tokens for stored in live),
            sum(stored.reserved_usd for stored in live),
        )

    def _use_output(
        self, operation: str, tenant: str, ref: str
    ) -> tuple[_Tenant, Output]:
        """An output, marked as used now, and its tenant's contents; under the lock."""
        contents = self._open(operation).get(tenant)
        output = contents.outputs.get(ref) if contents else None
        if contents is None or output is None:
            raise RefNotFound(self.name, ref)
        contents.used_s[ref] = self._clock()
        return contents, output

    def _open(self, operation: str) -> dict[str, _Tenant]:
        if self._tenants is None:
            raise closed_error(self.name, operation)
        return self._tenants


def _find_conflicts(
    contents: _Tenant, records: Sequence[Record]
) -> tuple[Record, ...]:
    """The records written once that are in the place of one of these, with different data."""
    unique = (record for record in records if record.is_once)
    pairs = (
        (record, contents.records.get(record.key, {}).get(record.place[1:]))
        for record in unique
    )
    return tuple(
        stored
        for record, stored in pairs
        if stored and stored.data != record.data
    )


class _Contents(NamedTuple):
    """What clean-up asks of some tenants: `ullage.stores._clean.StoreContents`."""

    tenants: Mapping[str, _Tenant]
    began_s: dict[str | None, float]
    scope: str | None
    keeps: bool

    def begun(self, now_s: float, every_s: float) -> int | None:
        if is_recent(self.began_s.get(self.scope), now_s, every_s):
            return None
        if not self.keeps:
            self.began_s[self.scope] = now_s
        for contents in self.tenants.values():
            contents.used_s = {
                name: min(at_s, now_s)
                for name, at_s in contents.used_s.items()
            }
        return sum(
            sys.getsizeof(output.text)
            for contents in self.tenants.values()
            for output in contents.outputs.values()
        )

    def keys(
        self, after: Cursor, limit: int
    ) -> list[tuple[str, bytes, float, int]]:
        """`StoreContents.keys`; what their records need is found out here, for `outputs`."""
        rows = (
            (tenant, key, contents.used_s[key], len(records))
            for tenant, contents in self.tenants.items()
            for key, records in contents.records.items()
        )
        page = nsmallest(
            limit, (row for row in rows if row[:2] > (after.tenant, after.key))
        )
        for tenant, key, *_ in page:
            self.tenants[tenant].needs(key)
        return page

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> list[tuple[float, str, str, bool]]:
        needed = {
            tenant: contents.needed(last_s)
            for tenant, contents in self.tenants.items()
        }
        rows = (
            (contents.used_s[ref], tenant, ref, ref in needed[tenant])
            for tenant, contents in self.tenants.items()
            for ref in contents.outputs
        )
        position = after.used_s, after.tenant, after.ref
        return nsmallest(limit, (row for row in rows if row[:3] > position))

    def drop(self, tenant: str, key: bytes) -> None:
        if not self.keeps:
            contents = self.tenants[tenant]
            del (
                contents.records[key],
                contents.used_s[key],
                contents.needs_of[key],
            )

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        self.tenants[tenant].used_s[key] = now_s

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        contents = self.tenants[tenant]
        size_bytes = sys.getsizeof(contents.outputs[ref].text)
        if not self.keeps:
            del contents.outputs[ref], contents.used_s[ref]
            contents.shapes.pop(ref, None)
        return size_bytes, size_bytes
