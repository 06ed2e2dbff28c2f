"""A store that lives as long as its process: dictionaries behind a lock.

The default of a session (DESIGN §10 "which store by default?"). It keeps the very objects it
is given, so an output that is still in the caller's history costs a reference, not a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from ullage.effects import Output, Record
from ullage.errors import RefNotFound
from ullage.stores._refusals import closed, refuse_contradictions, taken

__all__ = ["MemoryStore"]


class _Room:
    """What one tenant keeps: outputs by ref, records by key and then by (kind, n)."""

    __slots__ = ("outputs", "records")

    def __init__(self) -> None:
        self.outputs: dict[str, Output] = {}
        self.records: dict[bytes, dict[tuple[str, int], Record]] = {}


class MemoryStore:
    """Keeps everything in this process and nothing after it. Thread safe.

    The contract is `ullage.stores.Store`.
    """

    name: str = "memory"

    def __init__(self) -> None:
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
            room.outputs.update(new)
            standing = _standing(room, records)
            if not standing:
                for record in records:
                    room.records.setdefault(record.key, {})[record.kind, record.n] = record
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
            found = [kept[key] for key in dict.fromkeys(keys) if key in kept]
            return tuple(under[place] for under in found for place in sorted(under))

    def get(self, tenant: str, ref: str) -> Output:
        """The output under this ref: the object that was put there.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store is closed.
        """
        with self._lock:
            room = self._open("get").get(tenant)
            output = room.outputs.get(ref) if room else None
        if output is None:
            raise RefNotFound(self.name, ref)
        return output

    def refs(self, tenant: str) -> tuple[str, ...]:
        """Every ref of this tenant, oldest first.

        Raises:
            StoreError: the store is closed.
        """
        with self._lock:
            room = self._open("refs").get(tenant)
            return tuple(room.outputs) if room else ()

    def close(self) -> None:
        """Forget everything. May be called twice."""
        with self._lock:
            self._rooms = None

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
