"""A store in one SQLite file: durable, private, shared by threads and processes.

    blobs     digest → kind, body          each content once, zstd if that is smaller
    grants    (tenant, ref) → digest       who may read it, and under which name
    records   (tenant, key, kind, n) → data

Why SQLite, WAL, synchronous=FULL and zstd level 3: `dependencies.md` §2 (durable, faster to
put than synced files, and it can be queried). FULL, because a ref that a model has been shown
must outlive a loss of power.

The digest is blake3 over the text's UTF-8, all 256 bits, in the same domain as
`ullage.canon.ref_of`; it is checked on every read. Lone surrogates are kept as
"surrogatepass" UTF-8, so every str comes back as it was. Tenants and refs are kept as bytes
for the same reason: they come from outside, and may hold anything.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from blake3 import blake3
from msgspec import Struct

from ullage.effects import Output, Record
from ullage.errors import ConfigError, RefNotFound, StoreError
from ullage.stores._file import PrivateFile
from ullage.stores._refusals import refuse_contradictions, taken

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["SqliteStore"]

T = TypeVar("T")

_NAME = "sqlite"
_LEVEL = 3
_CHUNK = 900  # below 999, the most variables a statement may have in older SQLite
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
    ) -> None:
        if synchronous not in _SYNCHRONOUS:
            raise ConfigError(
                "synchronous", f"{synchronous!r} is not a setting", f"Use one of {_SYNCHRONOUS}"
            )
        self._file = PrivateFile(
            _default_path() if path is None else _absolute(path),
            own_folder=path is None,
            synchronous=synchronous,
            busy_timeout_s=busy_timeout_s,
        )

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
        with self._file.transaction("commit", "BEGIN IMMEDIATE") as db:
            for parcel in parcels:
                _keep(db, who, parcel)
            standing = _standing(db, who, records)
            if not standing:
                _write(db, who, records)
        return standing

    def find(self, tenant: str, keys: Iterable[bytes]) -> tuple[Record, ...]:
        """Every record under any of these keys, in order of (key as given, kind, n).

        Raises:
            StoreError: the store failed.
        """
        order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        with self._file.transaction("find", "BEGIN") as db:
            rows = [
                row
                for some in _chunks(tuple(order))
                for row in db.execute(
                    "SELECT key, kind, n, data FROM records "
                    f"WHERE tenant = ? AND key IN ({_marks(some)})",
                    (_utf8(tenant), *some),
                )
            ]
        rows.sort(key=lambda row: (order[row[0]], row[1], row[2]))
        return tuple(Record(*row) for row in rows)

    def get(self, tenant: str, ref: str) -> Output:
        """The output under this ref, its integrity checked.

        Raises:
            RefNotFound: nothing is kept under it for this tenant.
            StoreError: the store failed, or what is kept there is damaged.
        """
        with self._file.connection("get", ref) as db:
            row = db.execute(
                "SELECT grants.digest, kind, coding, size_bytes, body FROM grants "
                "LEFT JOIN blobs ON blobs.digest = grants.digest WHERE tenant = ? AND ref = ?",
                (_utf8(tenant), _utf8(ref)),
            ).fetchone()
        if row is None:
            raise RefNotFound(self.name, ref)
        text = _unpacked(*row)
        if text is None:
            raise StoreError(
                self.name, "get", "what is kept there is damaged. Restore the file", ref
            )
        return Output(ref, text, row[1])

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

    def close(self) -> None:
        """Let go of the file. May be called twice; waits for a commit that is under way."""
        self._file.close()

    def _parcels(self, outputs: Sequence[Output]) -> list[_Parcel]:
        """The outputs ready to write; compressed only if their content is new."""
        parcels = [_Parcel.of(output) for output in outputs]
        known: set[bytes] = set()
        if parcels:
            with self._file.connection("commit") as db:
                for some in _chunks(tuple({parcel.digest for parcel in parcels})):
                    query = f"SELECT digest FROM blobs WHERE digest IN ({_marks(some)})"
                    known.update(digest for (digest,) in db.execute(query, some))
        return [parcel if parcel.digest in known else parcel.packed() for parcel in parcels]


class _Parcel(Struct, frozen=True, gc=False):
    """An output on its way into the file."""

    ref: str
    digest: bytes
    kind: str
    size_bytes: int
    coding: str
    body: bytes

    @staticmethod
    def of(output: Output) -> _Parcel:
        raw = _utf8(output.text)
        return _Parcel(output.ref, _digest(raw, output.kind), output.kind, len(raw), "raw", raw)

    def packed(self) -> _Parcel:
        """The same, compressed if that is smaller."""
        body = zstd.compress(self.body, _LEVEL)
        if len(body) >= self.size_bytes:
            return self
        return _Parcel(self.ref, self.digest, self.kind, self.size_bytes, "zstd", body)


def _keep(db: sqlite3.Connection, tenant: bytes, parcel: _Parcel) -> None:
    """Write the content unless it is there, and grant it to the tenant."""
    db.execute(
        "INSERT INTO blobs (digest, kind, coding, size_bytes, body) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (parcel.digest, parcel.kind, parcel.coding, parcel.size_bytes, parcel.body),
    )
    place = (tenant, _utf8(parcel.ref))
    db.execute(
        "INSERT INTO grants (tenant, ref, digest, kept_s) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (*place, parcel.digest, int(time.time())),
    )
    held = db.execute("SELECT digest FROM grants WHERE tenant = ? AND ref = ?", place).fetchone()
    if held[0] != parcel.digest:
        raise taken(_NAME, parcel.ref)


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


def _write(db: sqlite3.Connection, tenant: bytes, records: Sequence[Record]) -> None:
    """Write the records; the newest data stands."""
    now_s = int(time.time())
    db.executemany(
        "INSERT INTO records (tenant, key, kind, n, data, kept_s) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (tenant, key, kind, n) DO UPDATE "
        "SET data = excluded.data, kept_s = excluded.kept_s WHERE data <> excluded.data",
        [(tenant, record.key, record.kind, record.n, record.data, now_s) for record in records],
    )


def _unpacked(digest: Any, kind: Any, coding: Any, size_bytes: Any, body: Any) -> str | None:
    """The text of a row of ``blobs``, or None if it is not what was written."""
    try:
        if coding == "zstd":  # never more than was said to be in it
            body = zstd.ZstdDecompressor().decompress(body, size_bytes + 1)
        sound = len(body) == size_bytes and _digest(body, kind) == digest
        return _text(body) if sound else None
    except (zstd.ZstdError, TypeError, ValueError, OverflowError, EOFError):
        return None


def _digest(raw: bytes, kind: str) -> bytes:
    """All 256 bits of the hash whose first 80 are the ref (`ullage.canon.ref_of`)."""
    return blake3(raw, derive_key_context=f"ullage {kind}").digest()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _default_path() -> Path:
    """``ullage.db`` where the platform keeps the data of users."""
    from platformdirs import user_data_dir  # 10 ms that no other path needs

    return Path(user_data_dir("ullage", appauthor=False)) / "ullage.db"


def _absolute(path: str | os.PathLike[str]) -> Path:
    """The path, independent of the working folder."""
    given = os.fspath(path)
    if not given or "\0" in given or given == ":memory:":
        raise ConfigError("store", "this is no path of a file", 'Name a file, or use "memory"')
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError("store", "no home folder is known for ~", "Write it out") from error
