"""Contents in the SQLite file: how one is written, and how it is checked when it is read.

A chunk is kept with zstd if that is smaller, under a seal that binds it to its place: blake3 over
the content's digest and kind, the chunk's number and its bytes. So a damaged chunk, and one that
is in another's place, is noticed without reading the others. A row may claim anything: what it
claims is compared with the most that a chunk can have before it is read or decompressed.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any, TypeAlias

from blake3 import blake3
from msgspec import Struct
from msgspec.structs import replace

from ullage.history.canon import content_digest
from ullage.stores._base import taken
from ullage.stores._chunks import CHUNK_CHARS, pieces
from ullage.values.effects import Extent, Output

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "NewBlob",
    "extents_of",
    "from_utf8",
    "text_of",
    "text_of_chunk",
    "to_utf8",
    "write_blob",
]

_LEVEL = 3
_MOST_BYTES = 4 * CHUNK_CHARS
_LIMITS = {int(zstd.DecompressionParameter.window_log_max): _MOST_BYTES.bit_length()}
_BODY = f"CASE WHEN length(body) <= {_MOST_BYTES} THEN body END"

Row: TypeAlias = tuple[int, str, int, int, int, bytes, bytes]
"""Of ``chunks``, without its digest."""


class NewBlob(Struct, frozen=True, gc=False):
    """An output on its way into the file; its rows are there once it is packed.

    Attributes:
        output: the output.
        digest: what its content is kept under: once for each tenant, so that nobody learns from
            the time it takes what another one holds.
        content: the digest of the content alone; earlier versions kept it under that.
        rows: its chunks.
    """

    output: Output
    digest: bytes
    content: bytes
    rows: tuple[Row, ...] | None = None

    @staticmethod
    def of(output: Output, tenant: bytes) -> NewBlob:
        """An output that is not packed yet."""
        content = content_digest(output.text, output.kind)
        own = blake3(content + tenant, derive_key_context="ullage tenant").digest()
        return NewBlob(output, own if tenant else content, content)

    def packed(self) -> NewBlob:
        """The same, in chunks that are compressed where that is smaller."""
        if self.rows is not None:
            return self
        rows = []
        for n, (extent, raw) in enumerate(pieces(self.output.text)):
            packed = zstd.compress(raw, _LEVEL)
            coding, body = ("zstd", packed) if len(packed) < len(raw) else ("raw", raw)
            counts = (extent.size_bytes, extent.chars, extent.newlines)
            rows.append((n, coding, *counts, _seal(self.digest, self.output.kind, n, raw), body))
        return replace(self, rows=tuple(rows))


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
    sizes = [row[2] for row in rows]
    possible = all(isinstance(size, int) and 0 <= size <= _MOST_BYTES for size in sizes)
    in_order = len(rows) == chunks and all(row[0] == n for n, row in enumerate(rows))
    if not (possible and in_order and sum(sizes) == size_bytes):
        return None
    return tuple(Extent(*row[1:]) for row in rows)


def text_of_chunk(db: sqlite3.Connection, digest: bytes, kind: Any, n: int) -> str | None:
    """The text of one chunk, or None if it is not what was written there."""
    row = db.execute(
        f"SELECT coding, {_BODY}, size_bytes, chars, newlines, seal FROM chunks "
        "WHERE digest = ? AND n = ?",
        (digest, n),
    ).fetchone()
    if row is None:
        return None
    coding, body, size_bytes, chars, newlines, sealed = row
    raw = _unpack(coding, body, size_bytes)
    if raw is None or _seal(digest, kind, n, raw) != sealed:
        return None
    text = from_utf8(raw)
    return text if (len(text), text.count("\n")) == (chars, newlines) else None


def text_of(db: sqlite3.Connection, tenant: bytes, ref: str) -> str:
    """An output as the search for refs takes it: what is damaged in it is left out."""
    rows = db.execute(
        f"SELECT coding, {_BODY}, chunks.size_bytes FROM grants "
        "JOIN chunks ON chunks.digest = grants.digest WHERE tenant = ? AND ref = ? ORDER BY n",
        (tenant, to_utf8(ref)),
    )
    return b"".join(_unpack(*row) or b"" for row in rows).decode("latin-1")


def _unpack(coding: Any, body: Any, size_bytes: Any) -> bytes | None:
    """The bytes of a body, or None if it is not ``size_bytes`` of a chunk."""
    if not isinstance(size_bytes, int) or not 0 <= size_bytes <= _MOST_BYTES:
        return None
    try:
        if coding == "zstd":  # never more than was said to be in it
            body = zstd.ZstdDecompressor(options=_LIMITS).decompress(body, size_bytes + 1)
        return body if isinstance(body, bytes) and len(body) == size_bytes else None
    except (zstd.ZstdError, TypeError, ValueError, EOFError):
        return None


def _seal(digest: bytes, kind: Any, n: int, raw: bytes) -> bytes:
    """What proves that these bytes are chunk ``n`` of the content of this digest and kind."""
    place = digest + n.to_bytes(8, "big")
    return blake3(place, derive_key_context=f"ullage chunk {kind}").update(raw).digest()


def to_utf8(text: str) -> bytes:
    """UTF-8 that any str has, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def from_utf8(raw: bytes) -> str:
    """The str that `to_utf8` was given."""
    return raw.decode("utf-8", "surrogatepass")
