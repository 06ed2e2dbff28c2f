"""The schema of the SQLite file, as the steps that lead from each version to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeAlias

from blake3 import blake3

from ullage.stores._chunks import pieces
from ullage.stores._pack import pack, seal, unpack

__all__ = ["APPLICATION_ID", "MIGRATIONS", "Row", "insert_content", "rows_of"]

APPLICATION_ID = 0x756C6C67  # "ullg"

Step: TypeAlias = str | Callable[[sqlite3.Connection], None]
Row: TypeAlias = tuple[int, str, int, int, int, bool, bytes, bytes]


def rows_of(text: str, digest: bytes) -> list[Row]:
    """The rows of ``chunks`` for a text, without its digest."""
    rows = []
    for n, (extent, raw) in enumerate(pieces(text)):
        coding, body = pack(raw)
        counts = (extent.size_bytes, extent.chars, extent.newlines, extent.crlf)
        rows.append((n, coding, *counts, seal(digest, n, raw), body))
    return rows


def insert_content(db: sqlite3.Connection, digest: bytes, kind: str, rows: list[Row]) -> None:
    """Write a content that is not in the file."""
    size_bytes, stored_bytes = sum(row[2] for row in rows), sum(len(row[-1]) for row in rows)
    db.execute(
        "INSERT INTO blobs (digest, kind, size_bytes, stored_bytes, chunks) VALUES (?, ?, ?, ?, ?)",
        (digest, kind, size_bytes, stored_bytes, len(rows)),
    )
    db.executemany(
        "INSERT INTO chunks (digest, n, coding, size_bytes, chars, newlines, crlf, seal, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((digest, *row) for row in rows),
    )


def _part_into_chunks(db: sqlite3.Connection) -> None:
    """Move every body of version 1 into chunks, one at a time.

    A damaged one is moved as it is, under a seal that says so whenever it is read.
    """
    for (row_id,) in db.execute("SELECT rowid FROM blobs_1").fetchall():
        digest, kind, coding, size_bytes, body = db.execute(
            "SELECT digest, kind, coding, size_bytes, body FROM blobs_1 WHERE rowid = ?", (row_id,)
        ).fetchone()
        text = _sound(digest, kind, unpack(coding, body, size_bytes))
        if text is not None:
            insert_content(db, digest, kind, rows_of(text, digest))
            continue
        db.execute("INSERT INTO blobs VALUES (?, ?, ?, length(?), 1)", (digest, kind, 0, body))
        db.execute(
            "INSERT INTO chunks VALUES (?, 0, ?, 0, 0, 0, 0, x'', ?)", (digest, coding, body)
        )


def _sound(digest: Any, kind: Any, raw: bytes | None) -> str | None:
    if raw is None or blake3(raw, derive_key_context=f"ullage {kind}").digest() != digest:
        return None
    return raw.decode("utf-8", "surrogatepass")


MIGRATIONS: tuple[tuple[Step, ...], ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE blobs ("
        " digest BLOB NOT NULL PRIMARY KEY,"  # blake3, 256 bits, of kind and text
        " kind TEXT NOT NULL,"
        " coding TEXT NOT NULL,"  # 'raw' or 'zstd'
        " size_bytes INTEGER NOT NULL,"  # of the UTF-8 (surrogatepass), before compression
        " body BLOB NOT NULL)",
        "CREATE TABLE grants ("
        " id INTEGER PRIMARY KEY,"  # grows: the order in which they came
        " tenant BLOB NOT NULL,"
        " ref BLOB NOT NULL,"
        " digest BLOB NOT NULL,"
        " kept_s INTEGER NOT NULL,"  # seconds since 1970
        " UNIQUE (tenant, ref))",
        "CREATE TABLE records ("
        " id INTEGER PRIMARY KEY,"
        " tenant BLOB NOT NULL,"
        " key BLOB NOT NULL,"
        " kind TEXT NOT NULL,"
        " n INTEGER NOT NULL,"
        " data BLOB NOT NULL,"
        " kept_s INTEGER NOT NULL,"
        " UNIQUE (tenant, key, kind, n))",
    ),
    (
        "ALTER TABLE blobs RENAME TO blobs_1",
        "CREATE TABLE blobs ("
        " digest BLOB NOT NULL PRIMARY KEY,"
        " kind TEXT NOT NULL,"
        " size_bytes INTEGER NOT NULL,"
        " stored_bytes INTEGER NOT NULL,"  # of all bodies
        " chunks INTEGER NOT NULL)",
        "CREATE TABLE chunks ("
        " digest BLOB NOT NULL,"
        " n INTEGER NOT NULL,"
        " coding TEXT NOT NULL,"
        " size_bytes INTEGER NOT NULL,"
        " chars INTEGER NOT NULL,"
        " newlines INTEGER NOT NULL,"
        " crlf INTEGER NOT NULL,"
        " seal BLOB NOT NULL,"
        " body BLOB NOT NULL,"  # last, so that the numbers are read without it
        " UNIQUE (digest, n))",
        _part_into_chunks,
        "DROP TABLE blobs_1",
        # When it was last used is not known: what was there counts as used now.
        "ALTER TABLE grants ADD COLUMN used_s INTEGER NOT NULL DEFAULT 0",
        "UPDATE grants SET used_s = CAST(strftime('%s', 'now') AS INTEGER)",
        "CREATE INDEX grants_of ON grants (digest)",
        "ALTER TABLE records ADD COLUMN used_s INTEGER NOT NULL DEFAULT 0",
        "UPDATE records SET used_s = CAST(strftime('%s', 'now') AS INTEGER)",
        "CREATE TABLE cleanings (scope BLOB NOT NULL PRIMARY KEY, done_s INTEGER NOT NULL)",
    ),
)
"""The steps that lead from each version to the next. Never edited, only added to."""
