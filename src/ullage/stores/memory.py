"""A store that lives as long as its process: dictionaries behind a lock.

The default of a session (DESIGN §10 "which store by default?"). It keeps the very objects it
is given, so an output that is still in the caller's history costs a reference, not a copy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from threading import Lock

from ullage.errors import RefNotFound
from ullage.stores._base import Transactional
from ullage.stores._chunks import shape
from ullage.stores._clean import STEP, Bounds, Collected, Removed, is_recent, named_in
from ullage.stores._refusals import closed, refuse_contradictions, taken
from ullage.values.effects import Output, Record, Shape

__all__ = ["MemoryStore"]


class _Room:
    """What one tenant keeps: outputs by ref, records by key and then by kind, n and name.

    Beside them: when each ref and key was last used, and the shapes asked for so far.
    """

    __slots__ = ("outputs", "records", "shapes", "used_s")

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.records: dict[bytes, dict[tuple[str, int, str], Record]] = {}
        self.shapes: dict[str, Shape] = {}
        self.used_s: dict[str | bytes, float] = {}


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
        self._rooms: dict[str, _Room] | None = {}

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Keep all of it, or nothing; see `Store.commit`.

        Raises:
            StoreError: the store is closed, a ref is taken by different content, or two of
                the records contradict each other.
        """
        with self._lock:
            room = self._open("commit").setdefault(tenant, _Room())
            new = _checked(room, outputs)
            refuse_contradictions(self.name, records)
            now_s = self._clock()
            room.outputs.update(new)
            room.used_s.update((output.ref, now_s) for output in outputs)
            first = _first(room, records)
            if not first:
                for record in records:
                    under = room.records.setdefault(record.key, {})
                    under[record.kind, record.n, record.name] = record
                    room.used_s[record.key] = now_s
            return first

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Every record under any of these keys; see `Records.find`.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            room = self._open("find").get(tenant)
            if room is None:
                return ()
            kept = room.records
            found = [key for key in dict.fromkeys(keys) if key in kept]
            room.used_s.update(dict.fromkeys(found, self._clock()))
            return tuple(kept[key][place] for key in found for place in sorted(kept[key]))

    def look(self, tenant: str, ref: str) -> Shape:
        """The output as one chunk, measured once.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store is closed.
        """
        with self._lock:
            room, output = self._used("look", tenant, ref)
            found = room.shapes.get(ref)
            if found is None:
                found = room.shapes[ref] = shape(output)
            return found

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """Chunk 0 is the string that was put there, the object itself.

        Raises:
            RefNotFound: nothing is kept under it for this tenant, or it has no such chunk.
            StoreError: the store is closed.
        """
        with self._lock:
            text = self._used("chunk", tenant, ref)[1].text
        if n or not text:
            raise RefNotFound(self.name, ref)
        return text

    def refs(self, tenant: str, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """A page of this tenant's refs, in their own order.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            room = self._open("refs").get(tenant)
            kept = sorted(room.outputs, key=_utf8) if room else []
        return tuple(ref for ref in kept if _utf8(ref) > _utf8(after))[:limit]

    def held(self, refs: Collection[str]) -> frozenset[str]:
        """Those of some refs that any tenant holds.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            rooms = self._open("held").values()
            return frozenset(ref for ref in refs if any(ref in room.outputs for room in rooms))

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
        """Let go of what is beyond the bounds, all in one step; see `Store.collect`.

        An output's size is what its string takes in memory, though a caller's history may hold
        the same string.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            rooms = self._open("collect")
            now_s = self._clock()
            if is_recent(self._collected_s.get(tenant), now_s, bounds.every_s):
                return None
            some = rooms if tenant is None else {t: rooms[t] for t in (tenant,) if t in rooms}
            for room in some.values():
                room.used_s = {name: min(at_s, now_s) for name, at_s in room.used_s.items()}
            last_s = bounds.last_s(now_s)
            dead = [
                (room, key)
                for room in some.values()
                for key in room.records
                if room.used_s[key] <= last_s
            ]
            records = sum(len(room.records[key]) for room, key in dead)
            removed, left_bytes = _chosen(some, bounds, keep, last_s)
            if not dry_run:
                self._collected_s[tenant] = now_s
                for room, key in dead:
                    del room.records[key], room.used_s[key]
                for gone in removed:
                    room = rooms[gone.tenant]
                    del room.outputs[gone.ref], room.used_s[gone.ref]
                    room.shapes.pop(gone.ref, None)
            return Collected(removed, records, left_bytes)

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._rooms = None

    def _used(self, operation: str, tenant: str, ref: str) -> tuple[_Room, Output]:
        """An output and the room it is in, marked as used now. The lock is held."""
        room = self._open(operation).get(tenant)
        output = room.outputs.get(ref) if room else None
        if room is None or output is None:
            raise RefNotFound(self.name, ref)
        room.used_s[ref] = self._clock()
        return room, output

    def _open(self, operation: str) -> dict[str, _Room]:
        if self._rooms is None:
            raise closed(self.name, operation)
        return self._rooms


def _checked(room: _Room, outputs: Sequence[Output]) -> dict[str, Output]:
    """The outputs not kept yet, by ref."""
    new: dict[str, Output] = {}
    for output in outputs:
        known = room.outputs.get(output.ref) or new.setdefault(output.ref, output)
        if known is not output and known != output:
            raise taken(MemoryStore.name, output.ref)
    return new


def _first(room: _Room, records: Sequence[Record]) -> tuple[Record, ...]:
    """The records written once that are in the place of one of these, with different data."""
    kept = (
        (record, room.records.get(record.key, {}).get((record.kind, record.n, record.name)))
        for record in records
        if record.is_once
    )
    return tuple(theirs for ours, theirs in kept if theirs and theirs.data != ours.data)


def _chosen(
    rooms: Mapping[str, _Room],
    bounds: Bounds,
    keep: Collection[str],
    last_s: float,
) -> tuple[tuple[Removed, ...], int]:
    """The outputs of some rooms that are to go, in order, and what those left take."""
    left_bytes = sum(
        sys.getsizeof(o.text) for room in rooms.values() for o in room.outputs.values()
    )
    needed = {(tenant, ref) for tenant, room in rooms.items() for ref in _needed(room, last_s)}
    free = [
        (is_needed, room.used_s[ref], tenant, ref)
        for tenant, room in rooms.items()
        for ref in room.outputs
        if ref not in keep
        for is_needed in [(tenant, ref) in needed]
    ]
    gone: list[Removed] = []
    for is_needed, used_s, tenant, ref in sorted(free, key=lambda one: one[:2]):
        over = bounds.is_over(left_bytes) and (bounds.even_needed or not is_needed)
        if over or (used_s <= last_s and not is_needed):
            size_bytes = sys.getsizeof(rooms[tenant].outputs[ref].text)
            left_bytes -= size_bytes
            gone.append(Removed(tenant, ref, size_bytes, used_s, is_needed))
    return tuple(gone), left_bytes


def _needed(room: _Room, last_s: float) -> Iterator[str]:
    """The refs that a tenant's live ledger needs."""
    for key, under in room.records.items():
        for record in under.values() if room.used_s[key] > last_s else ():
            if record.is_once:
                yield from named_in(
                    record.data,
                    lambda refs: {ref for ref in refs if ref in room.outputs},
                    lambda ref: room.outputs[ref].text,
                )


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
