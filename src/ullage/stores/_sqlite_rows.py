"""Rows of the SQLite file: contents, packed as `ullage.stores._packing`, and the ledger's records.

Whatever writes runs in a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ullage.core.values.effects import ChunkSize, Record
from ullage.core.values.receipts import Receipt
from ullage.core.values.spending import SpendingRow, SpendingSum
from ullage.stores._base import ref_taken_error
from ullage.stores._clean import named_in
from ullage.stores._packing import NewBlob, extents_in, from_utf8, to_utf8
from ullage.stores._receipts import (
    COLUMNS,
    KEY,
    LATER_COLUMNS,
    receipt_of,
    row_of,
)
from ullage.stores._schema import RECEIPTS, SPENDING
from ullage.stores._spending import (
    PLACE,
    SPENDING_COLUMNS,
    row_of_spending,
    spending_row,
)
from ullage.stores.objects.in_sqlite import BODY, text_of
from ullage.stores.objects.rows import Objects

MOST_VARIABLES = 900
"""Below 999, the most variables that a statement may have in older SQLite."""

_UPSERT = (
    "INSERT INTO records (tenant, key, kind, n, name, data, used_s) VALUES {rows} "
    "ON CONFLICT DO UPDATE SET data = excluded.data, used_s = excluded.used_s"
)
_ROW = "(?, ?, ?, ?, ?, ?, ?)"
MOST_ROWS = MOST_VARIABLES // _ROW.count("?")
"""The most records that one statement writes."""
_ONE = "SELECT data FROM records WHERE tenant = ? AND key = ? AND kind = ? AND n = ? AND name = ?"
_NEWEST = (
    "SELECT key, kind, n, name, data, used_s FROM records WHERE tenant = ? AND kind = ? "
    "ORDER BY used_s DESC, length(data) LIMIT ?"
)
_UNDER = "SELECT key, kind, n, name, data, used_s FROM records WHERE tenant = ? AND key IN"
_KEEP_RECEIPT = (
    f"INSERT INTO receipts ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{n} = excluded.{n}' for n in COLUMNS[len(KEY) :])} "
    "WHERE excluded.requests >= receipts.requests"
)
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_KEEP_SPENDING = (
    f"INSERT INTO spending ({', '.join(SPENDING_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(SPENDING_COLUMNS))}) ON CONFLICT DO UPDATE SET "
    f"{', '.join(f'{n} = excluded.{n}' for n in SPENDING_COLUMNS[len(PLACE) :])} "
    "WHERE excluded.version >= spending.version"
)
_SPENT_BY_OTHERS = (
    "SELECT coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0), "
    "coalesce(sum(reserved_tokens * (written_s + lapse_s > ?)), 0), "
    "coalesce(sum(reserved_usd * (written_s + lapse_s > ?)), 0.0) "
    "FROM spending WHERE budget = ? AND tenant = ? AND period = ? AND writer <> ?"
)
_SPENDING = (
    f"SELECT {', '.join(SPENDING_COLUMNS)} FROM spending "
    f"WHERE resets_s > ? ORDER BY {', '.join(PLACE)}"
)
_RECEIPTS = (
    f"SELECT {', '.join(COLUMNS)} FROM receipts "
    f"WHERE day BETWEEN ? AND ? ORDER BY {', '.join(KEY)}"
)


def write_receipts(
    db: sqlite3.Connection, receipts: Iterable[Receipt]
) -> None:
    """Write receipts, in a table that is made if need be."""
    db.execute(RECEIPTS)
    for name in _missing(db):
        db.execute(
            f"ALTER TABLE receipts ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"
        )
    db.executemany(_KEEP_RECEIPT, map(row_of, receipts))


def receipts(db: sqlite3.Connection, since: str, until: str) -> list[Receipt]:
    """The receipts of these days, in their order; none where the table was never made."""
    if db.execute(_HAS_TABLE, ("receipts",)).fetchone() is None:
        return []
    query = _RECEIPTS
    for name in _missing(db):  # whoever only reads adds no column
        query = query.replace(f" {name},", f" 0 AS {name},")
    return [receipt_of(row) for row in db.execute(query, (since, until))]


def _missing(db: sqlite3.Connection) -> list[str]:
    """The columns that a table of receipts does without, which an older version made."""
    rows = db.execute("PRAGMA table_info(receipts)")
    names = {row[1] for row in rows}
    return [name for name in LATER_COLUMNS if name not in names]


def book_spending(
    db: sqlite3.Connection, rows: Sequence[SpendingRow], now_s: int
) -> list[SpendingSum]:
    """Write what a process has spent, and sum up what others have, for each row."""
    db.execute(SPENDING)
    written = (spending_row(row, now_s) for row in rows if row.version)
    db.executemany(_KEEP_SPENDING, written)
    sums = []
    for row in rows:
        place = row.key.budget, to_utf8(row.key.tenant), row.key.period
        values = (now_s, now_s, *place, row.writer)
        sums.append(
            SpendingSum(*db.execute(_SPENT_BY_OTHERS, values).fetchone())
        )
    return sums


def spending(db: sqlite3.Connection, since_s: int) -> list[SpendingRow]:
    """The rows of periods that end after a time; none where the table was never made."""
    if db.execute(_HAS_TABLE, ("spending",)).fetchone() is None:
        return []
    return [*map(row_of_spending, db.execute(_SPENDING, (since_s,)))]


def select_in(
    db: sqlite3.Connection,
    query: str,
    values: Sequence[bytes],
    *leading: bytes,
) -> Iterator[Any]:
    """The rows of a query that ends in ``IN``, for any number of values."""
    for start in range(0, len(values), MOST_VARIABLES):
        part = values[start : start + MOST_VARIABLES]
        yield from db.execute(
            f"{query} ({','.join('?' * len(part))})", (*leading, *part)
        )


def write_blob(
    db: sqlite3.Connection,
    store: str,
    tenant: bytes,
    blob: NewBlob,
    now_s: int,
) -> None:
    """Write a content unless it is there, and grant it to a tenant.

    Raises:
        StoreError: the ref names something else.
    """
    grant_key = (tenant, to_utf8(blob.output.ref))
    grant = db.execute(
        "SELECT digest FROM grants WHERE tenant = ? AND ref = ?", grant_key
    ).fetchone()
    if grant is not None and grant[0] != blob.digest:
        raise ref_taken_error(store, blob.output.ref)
    output = blob.output
    digest = blob.digest
    if (
        db.execute(
            "SELECT 1 FROM blobs WHERE digest = ?", (digest,)
        ).fetchone()
        is None
    ):
        rows = (
            blob.packed().rows or ()
        )  # not packed: it was cleaned up just now
        sizes = sum(row[2] for row in rows), sum(len(row[-1]) for row in rows)
        db.execute(
            "INSERT INTO blobs (digest, kind, size_bytes, stored_bytes, chunks) "
            "VALUES (?, ?, ?, ?, ?)",
            (digest, output.kind, *sizes, len(rows)),
        )
        db.executemany(
            "INSERT INTO chunks (digest, n, coding, size_bytes, chars, newlines, seal, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((digest, *row) for row in rows),
        )
    db.execute(
        "INSERT INTO grants (tenant, ref, digest, used_s) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET used_s = excluded.used_s",
        (*grant_key, digest, now_s),
    )


def extents_of(
    db: sqlite3.Connection, digest: bytes, chunks: int, size_bytes: int
) -> tuple[ChunkSize, ...] | None:
    """The extents of a content's chunks; None if they are not those that were written."""
    query = "SELECT n, chars, size_bytes, newlines FROM chunks WHERE digest = ? ORDER BY n"
    return extents_in(
        db.execute(query, (digest,)).fetchall(), chunks, size_bytes
    )


def row_of_chunk(db: sqlite3.Connection, digest: bytes, n: int) -> Any:
    """The row of one chunk as `unsealed` takes it, or None."""
    columns = f"coding, {BODY}, size_bytes, chars, newlines, seal"
    query = f"SELECT {columns} FROM chunks WHERE digest = ? AND n = ?"
    return db.execute(query, (digest, n)).fetchone()


def records_under(
    db: sqlite3.Connection, tenant: bytes, keys: Sequence[bytes]
) -> list[Any]:
    """The rows under some keys: key, kind, n, name, data, last use."""
    return list(select_in(db, _UNDER, keys, tenant))


def newest(
    db: sqlite3.Connection, tenant: bytes, kind: str, limit: int
) -> list[Any]:
    """The newest rows of a kind: key, kind, n, name, data, last use."""
    return db.execute(_NEWEST, (tenant, kind, limit)).fetchall()


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row of `records_under`."""
    key, kind, n, name, data, _ = row
    return Record(key, kind, n, data, from_utf8(name))


def find_conflicts(
    db: sqlite3.Connection, tenant: bytes, records: Iterable[Record]
) -> tuple[Record, ...]:
    """The records written once that are in the place of one of these, with different data."""
    conflicts = []
    for record in records:
        if record.is_once:
            place = (
                tenant,
                record.key,
                record.kind,
                record.n,
                to_utf8(record.name),
            )
            row = db.execute(_ONE, place).fetchone()
            if row is not None and row[0] != record.data:
                conflicts.append(
                    Record(*record.place[:3], row[0], record.name)
                )
    return tuple(conflicts)


def write_records(
    db: sqlite3.Connection,
    tenant: bytes,
    records: Iterable[Record],
    now_s: int,
    objects: Objects,
) -> None:
    """Write records, in the order of their places, and which refs they need."""
    existing = partial(_existing_refs, db, tenant)
    text = partial(text_of, db, tenant, objects)
    for record in sorted(records, key=lambda record: record.place):
        write_newest(db, tenant, (record,), now_s)
        if record.is_once:
            names = sorted(named_in(record.data, existing, text))
            rows = ((tenant, to_utf8(ref), record.key) for ref in names)
            db.executemany(
                "INSERT OR IGNORE INTO names (tenant, ref, key) VALUES (?, ?, ?)",
                rows,
            )


def write_newest(
    db: sqlite3.Connection,
    tenant: bytes,
    records: Sequence[Record],
    now_s: int,
) -> None:
    """Write up to `MOST_ROWS` records of which the newest is kept, all or none: one statement."""
    values: list[Any] = []
    for record in records:
        key, kind, n, name = record.place
        values += tenant, key, kind, n, to_utf8(name), record.data, now_s
    rows = ", ".join([_ROW] * len(records))
    db.execute(_UPSERT.format(rows=rows), values)


def _existing_refs(
    db: sqlite3.Connection, tenant: bytes, refs: Collection[str]
) -> set[str]:
    query = "SELECT ref FROM grants WHERE tenant = ? AND ref IN"
    return {
        from_utf8(ref)
        for (ref,) in select_in(db, query, [*map(to_utf8, refs)], tenant)
    }
