"""A store in one SQLite file: durable, private, shared by threads and processes.

    blobs     digest → kind, sizes         each content once
    chunks    (digest, n) → counts, body   about a MiB each, zstd if that is smaller
    grants    (tenant, ref) → digest       who may read it, and under which name
    records   (tenant, key, kind, n) → data
    cleanings when whose outputs were last cleaned up

Why SQLite, WAL, synchronous=FULL and zstd level 3: `dependencies.md` §2 (durable, faster to
put than synced files, and it can be queried). FULL, because a ref that a model has been shown
must outlive a loss of power.

The digest is blake3 over the text's UTF-8, all 256 bits, in the same domain as
`ullage.history.canon.ref_of`. It is checked when the whole is read; a chunk read alone is
checked by a seal of its own, and by its counts. Lone surrogates are kept as
"surrogatepass" UTF-8, so every str comes back as it was. Tenants and refs are kept as bytes
for the same reason: they come from outside, and may hold anything.

A ref and a key are marked as used when they are written or read, at most once a day, since a
mark is a write.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import ConfigError, RefNotFound, StoreError
from ullage.history.canon import content_digest
from ullage.stores import _sqlite_clean
from ullage.stores._clean import DAY_S, Bounds, Collected
from ullage.stores._file import PrivateFile
from ullage.stores._pack import seal, unpack
from ullage.stores._place import absolute, default_path
from ullage.stores._refusals import refuse_contradictions, taken
from ullage.stores._schema import Row, insert_content, rows_of
from ullage.values.effects import Extent, Output, Record, Shape

__all__ = ["SqliteStore"]

T = TypeVar("T")

_NAME = "sqlite"
_VARIABLES = 900  # below 999, the most variables a statement may have in older SQLite
_SYNCHRONOUS = ("NORMAL", "FULL", "EXTRA")


class SqliteStore:
    """Keeps everything in one file. Safe over threads, processes and forks.

    The contract is `ullage.stores.Store`.

    Args:
        path: the file, created with mode 0600 if need be; None for ``ullage.db`` in the
            platform's folder for user data.
        synchronous: ``"FULL"`` outlives a loss of power, ``"NORMAL"`` the death of the
            process, ``"EXTRA"`` also syncs the folder.
        busy_timeout_s: how long a call waits while another process writes.
        clock: the time in seconds since 1970, for clean-up.

    Raises:
        ConfigError: the path or ``synchronous`` cannot be meant.
        StoreError: the file cannot be opened, is not private, or is not ours.
    """

    name: str = _NAME

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        synchronous: str = "FULL",
        busy_timeout_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if synchronous not in _SYNCHRONOUS:
            raise ConfigError(
                "synchronous", f"{synchronous!r} is not a setting", f"Use one of {_SYNCHRONOUS}"
            )
        self._clock = clock
        self._file = PrivateFile(
            default_path() if path is None else absolute(path),
            own_folder=path is None,
            synchronous=synchronous,
            busy_timeout_s=busy_timeout_s,
        )

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """Keep all of it in one transaction, or nothing; see `Store.commit`.

        Raises:
            StoreError: the store failed, a ref is taken by different content, or two of the
                records contradict each other.
        """
        refuse_contradictions(self.name, records)
        who = _utf8(tenant)
        parcels = self._parcels(outputs)
        now_s = int(self._clock())
        with self._file.transaction("commit", "BEGIN IMMEDIATE") as db:
            for parcel in parcels:
                _keep(db, who, parcel, now_s)
            standing = _standing(db, who, records)
            if not standing:
                _write(db, who, records, now_s)
        return standing

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Every record under any of these keys, in order of (key as given, kind, n).

        Raises:
            StoreError: the store failed.
        """
        order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        who = _utf8(tenant)
        with self._file.transaction("find", "BEGIN") as db:
            rows = [
                row
                for some in _some(tuple(order))
                for row in db.execute(
                    "SELECT key, kind, n, data, used_s FROM records "
                    f"WHERE tenant = ? AND key IN ({_marks(some)})",
                    (who, *some),
                )
            ]
        self._mark("records", "key", who, {row[0]: row[4] for row in rows})
        rows.sort(key=lambda row: (order[row[0]], row[1], row[2]))
        return tuple(Record(*row[:4]) for row in rows)

    def get(self, tenant: str, ref: str) -> Output:
        """The output under this ref, its integrity checked as a whole.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store failed, or what is kept there is damaged.
        """
        with self._file.transaction("get", "BEGIN") as db:
            digest, kind, _, _, used_s = self._granted(db, tenant, ref)
            rows = db.execute(
                "SELECT coding, body, size_bytes FROM chunks WHERE digest = ? ORDER BY n", (digest,)
            ).fetchall()
        text = _joined(rows)
        if text is None or content_digest(text, kind) != digest:
            raise self._damaged("get", ref)
        self._mark("grants", "ref", _utf8(tenant), {_utf8(ref): used_s})
        return Output(ref, text, kind)

    def look(self, tenant: str, ref: str) -> Shape:
        """How much is kept under this ref, and in which chunks. Reads no text.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store failed, or what is kept there is damaged.
        """
        with self._file.transaction("look", "BEGIN") as db:
            digest, kind, size_bytes, chunks, used_s = self._granted(db, tenant, ref)
            rows = db.execute(
                "SELECT n, chars, size_bytes, newlines, crlf FROM chunks WHERE digest = ? "
                "ORDER BY n",
                (digest,),
            ).fetchall()
        if [row[0] for row in rows] != list(range(chunks)) or _sum(rows, 2) != size_bytes:
            raise self._damaged("look", ref)
        self._mark("grants", "ref", _utf8(tenant), {_utf8(ref): used_s})
        extents = tuple(Extent(row[1], row[2], row[3], bool(row[4])) for row in rows)
        return Shape(ref, kind, extents)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """The text of one chunk, checked by its seal and its counts.

        Raises:
            RefNotFound: nothing is kept under it for this tenant, or it has no such chunk.
            StoreError: the store failed, or what is kept there is damaged.
        """
        with self._file.transaction("chunk", "BEGIN") as db:
            digest, _, _, chunks, _ = self._granted(db, tenant, ref)
            if not 0 <= n < chunks:
                raise RefNotFound(self.name, ref)
            row = db.execute(
                "SELECT coding, body, size_bytes, chars, newlines, seal FROM chunks "
                "WHERE digest = ? AND n = ?",
                (digest, n),
            ).fetchone()
        text = _checked(digest, n, row) if row is not None else None
        if text is None:
            raise self._damaged("chunk", ref)
        return text

    def refs(self, tenant: str) -> tuple[str, ...]:
        """Every ref of this tenant, oldest first.

        Raises:
            StoreError: the store failed.
        """
        with self._file.connection("refs") as db:
            rows = db.execute(
                "SELECT ref FROM grants WHERE tenant = ? ORDER BY id", (_utf8(tenant),)
            ).fetchall()
        return tuple(_text(ref) for (ref,) in rows)

    def collect(
        self,
        tenant: str | None,
        bounds: Bounds,
        *,
        keep: Collection[str] = (),
        dry_run: bool = False,
    ) -> Collected | None:
        """Let go of what is beyond the bounds; see `Store.collect`.

        An output's size is that of its compressed chunks. The room in the file is used again,
        but the file does not get smaller: see `shrink`.

        Raises:
            StoreError: the store failed.
        """
        who = None if tenant is None else _utf8(tenant)
        with self._file.transaction("collect", "BEGIN" if dry_run else "BEGIN IMMEDIATE") as db:
            return _sqlite_clean.collect(
                db, who, bounds, keep, now_s=int(self._clock()), dry_run=dry_run
            )

    def shrink(self) -> None:
        """Give the room of what went back to the file system. Needs as much room meanwhile.

        Raises:
            StoreError: the store failed, or another process holds the file.
        """
        with self._file.connection("shrink") as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let go of the file. May be called twice; waits for a commit that is under way."""
        self._file.close()

    def _granted(self, db: sqlite3.Connection, tenant: str, ref: str) -> tuple[Any, ...]:
        """Digest, kind, size in bytes, number of chunks, last use of what a tenant holds."""
        row = db.execute(
            "SELECT grants.digest, kind, size_bytes, chunks, used_s FROM grants "
            "LEFT JOIN blobs ON blobs.digest = grants.digest WHERE tenant = ? AND ref = ?",
            (_utf8(tenant), _utf8(ref)),
        ).fetchone()
        if row is None:
            raise RefNotFound(self.name, ref)
        if not isinstance(row[3], int):
            raise self._damaged("get", ref)
        return tuple(row)

    def _damaged(self, operation: str, ref: str) -> StoreError:
        reason = "what is kept there is damaged. Restore the file"
        return StoreError(self.name, operation, reason, ref)

    def _mark(self, table: str, column: str, tenant: bytes, used_s: dict[bytes, int]) -> None:
        """Note that these were used, unless that is noted of today.

        A file that cannot be written now can still be read.
        """
        now_s = int(self._clock())
        stale = [(now_s, tenant, name) for name, at_s in used_s.items() if now_s - at_s >= DAY_S]
        if stale:
            with suppress(StoreError), self._file.transaction("mark", "BEGIN IMMEDIATE") as db:
                db.executemany(
                    f"UPDATE {table} SET used_s = ? WHERE tenant = ? AND {column} = ?", stale
                )

    def _parcels(self, outputs: Sequence[Output]) -> list[_Parcel]:
        """The outputs ready to write; compressed only if their content is new."""
        parcels = [_Parcel.of(output) for output in outputs]
        known: set[bytes] = set()
        if parcels:
            with self._file.connection("commit") as db:
                for some in _some(tuple({parcel.digest for parcel in parcels})):
                    query = f"SELECT digest FROM blobs WHERE digest IN ({_marks(some)})"
                    known.update(digest for (digest,) in db.execute(query, some))
        return [parcel if parcel.digest in known else parcel.packed() for parcel in parcels]


class _Parcel(Struct, frozen=True, gc=False):
    """An output on its way into the file; its rows are there once it is packed."""

    output: Output
    digest: bytes
    rows: list[Row] | None = None

    @staticmethod
    def of(output: Output) -> _Parcel:
        return _Parcel(output, content_digest(output.text, output.kind))

    def packed(self) -> _Parcel:
        """The same, in chunks that are compressed where that is smaller."""
        return replace(self, rows=rows_of(self.output.text, self.digest))


def _keep(db: sqlite3.Connection, tenant: bytes, parcel: _Parcel, now_s: int) -> None:
    """Write the content unless it is there, and grant it to the tenant."""
    output, digest = parcel.output, parcel.digest
    if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
        rows = parcel.packed().rows if parcel.rows is None else parcel.rows  # cleaned up just now
        insert_content(db, digest, output.kind, rows or [])
    place = (tenant, _utf8(output.ref))
    db.execute(
        "INSERT INTO grants (tenant, ref, digest, kept_s, used_s) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET used_s = excluded.used_s",
        (*place, digest, now_s, now_s),
    )
    held = db.execute("SELECT digest FROM grants WHERE tenant = ? AND ref = ?", place).fetchone()
    if held[0] != digest:
        raise taken(_NAME, output.ref)


def _standing(
    db: sqlite3.Connection, tenant: bytes, records: Sequence[Record]
) -> tuple[Record, ...]:
    """The kept batches that hold the place of one of ``records`` with different data."""
    standing = []
    for record in records:
        if record.kind != "batch":
            continue
        row = db.execute(
            "SELECT data FROM records WHERE tenant = ? AND key = ? AND kind = ? AND n = ?",
            (tenant, record.key, record.kind, record.n),
        ).fetchone()
        if row is not None and row[0] != record.data:
            standing.append(Record(record.key, record.kind, record.n, row[0]))
    return tuple(standing)


def _write(db: sqlite3.Connection, tenant: bytes, records: Sequence[Record], now_s: int) -> None:
    """Write the records; the newest data stands."""
    rows = [(tenant, r.key, r.kind, r.n, r.data, now_s, now_s) for r in records]
    db.executemany(
        "INSERT INTO records (tenant, key, kind, n, data, kept_s, used_s) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, key, kind, n) DO UPDATE "
        "SET data = excluded.data, kept_s = excluded.kept_s, used_s = excluded.used_s",
        rows,
    )


def _joined(rows: Iterable[tuple[Any, Any, Any]]) -> str | None:
    """The text of rows of ``chunks``, or None if one of them holds none."""
    parts = []
    for row in rows:
        raw = unpack(*row)
        if raw is None:
            return None
        parts.append(_text(raw))
    return "".join(parts)


def _checked(digest: bytes, n: int, row: tuple[Any, ...]) -> str | None:
    """The text of one chunk, or None if it is not what was written there."""
    coding, body, size_bytes, chars, newlines, sealed = row
    raw = unpack(coding, body, size_bytes)
    if raw is None or seal(digest, n, raw) != sealed:
        return None
    text = _text(raw)
    return text if (len(text), text.count("\n")) == (chars, newlines) else None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _some(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), _VARIABLES):
        yield values[start : start + _VARIABLES]


def _sum(rows: Iterable[tuple[Any, ...]], column: int) -> int | None:
    """The sum of a column; None if something in it is no number."""
    values = [row[column] for row in rows]
    return sum(values) if all(isinstance(value, int) for value in values) else None


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
