"""A store that lives as long as its process: dictionaries behind a lock.

The default of a session (DESIGN §10 "which store by default?"). It keeps the very objects it
is given, so an output that is still in the caller's history costs a reference, not a copy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from threading import Lock

from ullage.errors import RefNotFound
from ullage.stores._base import Transactional, closed, refuse_contradictions, taken
from ullage.stores._chunks import shape
from ullage.stores._clean import Bounds, Collected, Cursor, clean, is_recent, named_in
from ullage.values.effects import Output, Record, Shape

__all__ = ["MemoryStore"]


class _Room:
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
        self.needs_of: dict[bytes, frozenset[str]] = {}

    def needs(self, key: bytes) -> frozenset[str]:
        """The refs that the records of a key need."""
        if key not in self.needs_of:
            self.needs_of[key] = frozenset(
                ref
                for record in self.records[key].values()
                if record.is_once
                for ref in named_in(
                    record.data,
                    lambda refs: {ref for ref in refs if ref in self.outputs},
                    lambda ref: self.outputs[ref].text,
                )
            )
        return self.needs_of[key]

    def needed(self, last_s: float) -> frozenset[str]:
        """The refs that a ledger used after ``last_s`` needs."""
        live = (self.needs(key) for key in self.records if self.used_s[key] > last_s)
        return frozenset().union(*live)


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
        """`Store.commit`, all of it or nothing."""
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
                    room.needs_of.pop(record.key, None)
            return first

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """`Records.find`."""
        with self._lock:
            room = self._open("find").get(tenant)
            if room is None:
                return ()
            kept = room.records
            found = [key for key in dict.fromkeys(keys) if key in kept]
            room.used_s.update(dict.fromkeys(found, self._clock()))
            return tuple(kept[key][place] for key in found for place in sorted(kept[key]))

    def look(self, tenant: str, ref: str) -> Shape:
        """`Blobs.look`: the output as one chunk, measured once."""
        with self._lock:
            room, output = self._used("look", tenant, ref)
            found = room.shapes.get(ref)
            if found is None:
                found = room.shapes[ref] = shape(output)
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
            room = self._open("refs").get(tenant)
            behind = [ref for ref in room.outputs if ref > after] if room else []
        return tuple(nsmallest(limit, behind))

    def held(self, refs: Collection[str]) -> frozenset[str]:
        """`Store.held`."""
        with self._lock:
            rooms = self._open("held").values()
            return frozenset(ref for ref in refs if any(ref in room.outputs for room in rooms))

    def collect(
        self, tenant: str | None, bounds: Bounds, cursor: str | None = None
    ) -> Collected | None:
        """`Store.collect`. An output's size is what its string takes in memory.

        A caller's history may hold the same string.
        """
        with self._lock:
            rooms = self._open("collect")
            some = rooms if tenant is None else {t: rooms[t] for t in (tenant,) if t in rooms}
            shelves = _Shelves(some, self._collected_s, tenant, bounds.dry_run)
            return clean(shelves, bounds, cursor, self._clock())

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


class _Shelves:
    """What clean-up asks of some rooms. The contract is `ullage.stores._clean.Shelves`."""

    def __init__(
        self,
        rooms: Mapping[str, _Room],
        began_s: dict[str | None, float],
        scope: str | None,
        dry_run: bool,
    ) -> None:
        self._rooms = rooms
        self._began_s = began_s
        self._scope = scope
        self._keeps = dry_run

    def begun(self, now_s: float, every_s: float) -> int | None:
        if is_recent(self._began_s.get(self._scope), now_s, every_s):
            return None
        if not self._keeps:
            self._began_s[self._scope] = now_s
        for room in self._rooms.values():
            room.used_s = {name: min(at_s, now_s) for name, at_s in room.used_s.items()}
        return sum(
            sys.getsizeof(output.text)
            for room in self._rooms.values()
            for output in room.outputs.values()
        )

    def keys(self, after: Cursor, limit: int) -> list[tuple[str, bytes, float, int]]:
        """`Shelves.keys`; what their records need is found out here, for `outputs`."""
        behind = after.tenant, after.key
        places = (
            (who, key)
            for who, room in self._rooms.items()
            for key in room.records
            if (who, key) > behind
        )
        rows = []
        for who, key in nsmallest(limit, places):
            room = self._rooms[who]
            room.needs(key)
            rows.append((who, key, room.used_s[key], len(room.records[key])))
        return rows

    def outputs(
        self, after: Cursor, limit: int, last_s: float
    ) -> list[tuple[float, str, str, bool]]:
        behind = after.used_s, after.tenant, after.ref
        places = (
            (room.used_s[ref], who, ref)
            for who, room in self._rooms.items()
            for ref in room.outputs
            if (room.used_s[ref], who, ref) > behind
        )
        needed = {who: room.needed(last_s) for who, room in self._rooms.items()}
        return [(*place, place[2] in needed[place[1]]) for place in nsmallest(limit, places)]

    def drop(self, tenant: str, key: bytes) -> None:
        if not self._keeps:
            room = self._rooms[tenant]
            del room.records[key], room.used_s[key], room.needs_of[key]

    def used_now(self, tenant: str, key: bytes, now_s: float) -> None:
        self._rooms[tenant].used_s[key] = now_s

    def remove(self, tenant: str, ref: str) -> tuple[int, int]:
        room = self._rooms[tenant]
        size_bytes = sys.getsizeof(room.outputs[ref].text)
        if not self._keeps:
            del room.outputs[ref], room.used_s[ref]
            room.shapes.pop(ref, None)
        return size_bytes, size_bytes
