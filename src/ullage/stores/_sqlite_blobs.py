"""Contents in the SQLite file: how one is written, and how it is checked when it is read."""

from __future__ import annotations

import sqlite3
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.history.canon import content_digest
from ullage.stores._chunks import pieces
from ullage.stores._pack import pack, seal, unpack
from ullage.stores._refusals import taken
from ullage.values.effects import Extent, Output

__all__ = [
    "Parcel",
    "extents_of",
    "from_utf8",
    "keep_parcel",
    "text_of",
    "text_of_chunk",
    "to_utf8",
]

Row: TypeAlias = tuple[int, str, int, int, int, bytes, bytes]
"""Of ``chunks``, without its digest."""


class Parcel(Struct, frozen=True, gc=False):
    """An output on its way into the file; its rows are there once it is packed."""

    output: Output
    digest: bytes
    rows: tuple[Row, ...] | None = None

    @staticmethod
    def of(output: Output) -> Parcel:
        """An output that is not packed yet."""
        return Parcel(output, content_digest(output.text, output.kind))

    def packed(self) -> Parcel:
        """The same, in chunks that are compressed where that is smaller."""
        if self.rows is not None:
            return self
        rows = []
        for n, (extent, raw) in enumerate(pieces(self.output.text)):
            coding, body = pack(raw)
            counts = (extent.size_bytes, extent.chars, extent.newlines)
            rows.append((n, coding, *counts, seal(self.digest, self.output.kind, n, raw), body))
        return replace(self, rows=tuple(rows))


def keep_parcel(
    db: sqlite3.Connection, store: str, tenant: bytes, parcel: Parcel, now_s: int
) -> None:
    """Write a content unless it is there, and grant it to a tenant.

    Raises:
        StoreError: the ref names something else.
    """
    output, digest = parcel.output, parcel.digest
    if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
        rows = parcel.packed().rows or ()  # not packed: it was cleaned up just now
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
    place = (tenant, to_utf8(output.ref))
    db.execute(
        "INSERT INTO grants (tenant, ref, digest, used_s) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET used_s = excluded.used_s",
        (*place, digest, now_s),
    )
    held = db.execute("SELECT digest FROM grants WHERE tenant = ? AND ref = ?", place).fetchone()
    if held[0] != digest:
        raise taken(store, output.ref)


def extents_of(
    db: sqlite3.Connection, digest: bytes, chunks: int, size_bytes: int
) -> tuple[Extent, ...] | None:
    """The extents of a content's chunks; None if they are not those that were written."""
    rows = db.execute(
        "SELECT n, chars, size_bytes, newlines FROM chunks WHERE digest = ? ORDER BY n",
        (digest,),
    ).fetchall()
    sizes = [row[2] for row in rows]
    whole = all(isinstance(size, int) for size in sizes) and sum(sizes) == size_bytes
    if not whole or [row[0] for row in rows] != list(range(chunks)):
        return None
    return tuple(Extent(*row[1:]) for row in rows)


def text_of_chunk(db: sqlite3.Connection, digest: bytes, kind: Any, n: int) -> str | None:
    """The text of one chunk, or None if it is not what was written there."""
    row = db.execute(
        "SELECT coding, body, size_bytes, chars, newlines, seal FROM chunks "
        "WHERE digest = ? AND n = ?",
        (digest, n),
    ).fetchone()
    if row is None:
        return None
    coding, body, size_bytes, chars, newlines, sealed = row
    raw = unpack(coding, body, size_bytes)
    if raw is None or seal(digest, kind, n, raw) != sealed:
        return None
    text = from_utf8(raw)
    return text if (len(text), text.count("\n")) == (chars, newlines) else None


def text_of(db: sqlite3.Connection, tenant: bytes, ref: str) -> str:
    """An output as the search for refs takes it: what is damaged in it is left out."""
    rows = db.execute(
        "SELECT coding, body, chunks.size_bytes FROM grants "
        "JOIN chunks ON chunks.digest = grants.digest WHERE tenant = ? AND ref = ? ORDER BY n",
        (tenant, to_utf8(ref)),
    )
    return b"".join(unpack(*row) or b"" for row in rows).decode("latin-1")


def to_utf8(text: str) -> bytes:
    """UTF-8 that any str has, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def from_utf8(raw: bytes) -> str:
    """The str that `to_utf8` was given."""
    return raw.decode("utf-8", "surrogatepass")
