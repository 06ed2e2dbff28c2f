"""Contents in the SQLite file: how one is written and read, packed as `ullage.stores._packing`."""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec.structs import replace

from ullage.stores._base import taken
from ullage.stores._packing import NewBlob, extents_in, to_utf8
from ullage.stores.objects.in_sqlite import BODY
from ullage.values.effects import Extent

__all__ = ["extents_of", "row_of_chunk", "write_blob"]


def write_blob(
    db: sqlite3.Connection, store: str, tenant: bytes, blob: NewBlob, now_s: int
) -> None:
    """Write a content unless it is there, and grant it to a tenant.

    Raises:
        StoreError: the ref names something else.
    """
    place = (tenant, to_utf8(blob.output.ref))
    held = db.execute("SELECT digest FROM grants WHERE tenant = ? AND ref = ?", place).fetchone()
    if held is not None and held[0] != blob.digest:
        if held[0] != blob.content:
            raise taken(store, blob.output.ref)
        blob = replace(blob, digest=held[0], rows=None)
    output, digest = blob.output, blob.digest
    if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
        rows = blob.packed().rows or ()  # not packed: it was cleaned up just now
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
        (*place, digest, now_s),
    )


def extents_of(
    db: sqlite3.Connection, digest: bytes, chunks: int, size_bytes: int
) -> tuple[Extent, ...] | None:
    """The extents of a content's chunks; None if they are not those that were written."""
    rows = db.execute(
        "SELECT n, chars, size_bytes, newlines FROM chunks WHERE digest = ? ORDER BY n",
        (digest,),
    ).fetchall()
    return extents_in(rows, chunks, size_bytes)


def row_of_chunk(db: sqlite3.Connection, digest: bytes, n: int) -> Any:
    """The row of one chunk as `unsealed` takes it, or None."""
    return db.execute(
        f"SELECT coding, {BODY}, size_bytes, chars, newlines, seal FROM chunks "
        "WHERE digest = ? AND n = ?",
        (digest, n),
    ).fetchone()
