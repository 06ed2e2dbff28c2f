"""The ledger's records in the SQLite file. Whatever writes runs in a transaction of the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from ullage.stores._clean import named_in
from ullage.stores._packing import from_utf8, to_utf8
from ullage.stores.objects.in_sqlite import text_of
from ullage.stores.objects.rows import Objects
from ullage.values.effects import Record

__all__ = ["first", "marks", "record_of", "some", "under", "write"]

T = TypeVar("T")

MOST_VARIABLES = 900
"""Below 999, the most variables that a statement may have in older SQLite."""

_UPSERT = (
    "INSERT INTO records (tenant, key, kind, n, name, data, used_s) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET data = excluded.data, used_s = excluded.used_s"
)
_ONE = "SELECT data FROM records WHERE tenant = ? AND key = ? AND kind = ? AND n = ? AND name = ?"


def under(db: sqlite3.Connection, tenant: bytes, keys: Sequence[bytes]) -> list[Any]:
    """The rows under at most `MOST_VARIABLES` keys: key, kind, n, name, data, last use."""
    return db.execute(
        "SELECT key, kind, n, name, data, used_s FROM records "
        f"WHERE tenant = ? AND key IN ({marks(keys)})",
        (tenant, *keys),
    ).fetchall()


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row of `under`."""
    key, kind, n, name, data, _ = row
    return Record(key, kind, n, data, from_utf8(name))


def first(db: sqlite3.Connection, tenant: bytes, records: Iterable[Record]) -> tuple[Record, ...]:
    """The records written once that are in the place of one of these, with different data."""
    kept = []
    for record in records:
        if record.is_once:
            place = (tenant, record.key, record.kind, record.n, to_utf8(record.name))
            row = db.execute(_ONE, place).fetchone()
            if row is not None and row[0] != record.data:
                kept.append(Record(*record.place[:3], row[0], record.name))
    return tuple(kept)


def write(
    db: sqlite3.Connection,
    tenant: bytes,
    records: Iterable[Record],
    now_s: int,
    objects: Objects,
) -> None:
    """Write records, in the order of their places, and which refs they need."""
    held, text = partial(_held, db, tenant), partial(text_of, db, tenant, objects)
    for one in sorted(records, key=lambda record: record.place):
        row = (tenant, one.key, one.kind, one.n, to_utf8(one.name), one.data, now_s)
        db.execute(_UPSERT, row)
        if one.is_once:
            names = sorted(named_in(one.data, held, text))
            rows = ((tenant, to_utf8(ref), one.key) for ref in names)
            db.executemany("INSERT OR IGNORE INTO names (tenant, ref, key) VALUES (?, ?, ?)", rows)


def _held(db: sqlite3.Connection, tenant: bytes, refs: Collection[str]) -> set[str]:
    return {
        from_utf8(ref)
        for part in some(tuple(map(to_utf8, refs)))
        for (ref,) in db.execute(
            f"SELECT ref FROM grants WHERE tenant = ? AND ref IN ({marks(part)})", (tenant, *part)
        )
    }


def some(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one statement can have."""
    for start in range(0, len(values), MOST_VARIABLES):
        yield values[start : start + MOST_VARIABLES]


def marks(values: Sequence[Any]) -> str:
    """A question mark for each value."""
    return ",".join("?" * len(values))
