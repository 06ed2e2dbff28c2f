"""A store that lives as long as its process: dictionaries behind a lock.

The default of a session (DESIGN §10 "which store by default?"). It keeps the very objects it
is given, so an output that is still in the caller's history costs a reference, not a copy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from threading import Lock

from ullage.errors import RefNotFound
from ullage.stores._chunks import shape
from ullage.stores._clean import Bounds, Collected, Kept, Line, plan
from ullage.stores._refusals import closed, refuse_contradictions, taken
from ullage.values.effects import Output, Record, Shape

__all__ = ["MemoryStore"]


class _Room:
    """What one tenant keeps: outputs by ref, records by key and then by (kind, n).

    Beside them: when each ref and key was last used, and the shapes asked for so far.
    """

    __slots__ = ("outputs", "records", "shapes", "used_s")

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.records: dict[bytes, dict[tuple[str, int], Record]] = {}
        self.shapes: dict[str, Shape] = {}
        self.used_s: dict[str | bytes, float] = {}


class MemoryStore:
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
            standing = _standing(room, records)
            if not standing:
                for record in records:
                    room.records.setdefault(record.key, {})[record.kind, record.n] = record
                    room.used_s[record.key] = now_s
            return standing

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Every record under any of these keys, in order of (key as given, kind, n).

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

    def get(self, tenant: str, ref: str) -> Output:
        """The output under this ref: the object that was put there.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store is closed.
        """
        with self._lock:
            return self._used("get", tenant, ref)[1]

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

    def refs(self, tenant: str) -> tuple[str, ...]:
        """Every ref of this tenant, oldest first.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            room = self._open("refs").get(tenant)
            return tuple(room.outputs) if room else ()

    def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Collected | None:
        """Let go of what is beyond the bounds; see `Store.collect`.

        An output's size is what its string takes in memory, though a caller's history may hold
        the same string.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            rooms = self._open("collect")
            now_s = self._clock()
            if now_s - self._collected_s.get(tenant, float("-inf")) < bounds.every_s:
                return None
            some = rooms if tenant is None else {t: rooms[t] for t in (tenant,) if t in rooms}
            found = plan(
                tuple(_kept(some)),
                tuple(_lines(some)),
                bounds,
                keep,
                now_s,
                lambda who, ref: rooms[who].outputs[ref].text,
            )
            records = sum(len(rooms[line.tenant].records[line.key]) for line in found.lines)
            if not dry_run:
                self._collected_s[tenant] = now_s
                for gone in found.outputs:
                    _forget(rooms[gone.tenant], gone.ref)
                for line in found.lines:
                    del rooms[line.tenant].records[line.key]
                    del rooms[line.tenant].used_s[line.key]
            held = frozenset(ref for room in rooms.values() for ref in room.outputs)
            return Collected(found.outputs, records, found.left_bytes, held)

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


def _standing(room: _Room, records: Sequence[Record]) -> tuple[Record, ...]:
    """The kept batches that hold the place of one of ``records`` with different data."""
    kept = (
        (record, room.records.get(record.key, {}).get((record.kind, record.n)))
        for record in records
        if record.kind == "batch"
    )
    return tuple(theirs for ours, theirs in kept if theirs and theirs.data != ours.data)


def _kept(rooms: dict[str, _Room]) -> Iterator[Kept]:
    for tenant, room in rooms.items():
        for ref, output in room.outputs.items():
            size = sys.getsizeof(output.text)
            yield Kept(tenant, ref, (tenant, ref), size, room.used_s[ref])


def _lines(rooms: dict[str, _Room]) -> Iterator[Line]:
    for tenant, room in rooms.items():
        for key, under in room.records.items():
            batches = tuple(record.data for record in under.values() if record.kind == "batch")
            yield Line(tenant, key, room.used_s[key], batches)


def _forget(room: _Room, ref: str) -> None:
    del room.outputs[ref]
    del room.used_s[ref]
    room.shapes.pop(ref, None)
