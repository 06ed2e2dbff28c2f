"""How a content is packed for a database: chunks, compressed where that is smaller, and sealed.

A seal binds a chunk to its place: blake3 over the content's digest and kind, the chunk's number
and its bytes. So a damaged chunk, and one that is in another's place, is noticed without reading
the others. A row may claim anything: what it claims is compared with the most that a chunk can
have before it is decompressed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

from blake3 import blake3
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history.canon import content_digest
from ullage.core.values.effects import CHUNK_CHARS, ChunkSize, Output, pieces

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BYTES = 4 * CHUNK_CHARS  # no chunk has more in UTF-8
_LEVEL = 3
_LIMITS = {
    int(zstd.DecompressionParameter.window_log_max): MOST_BYTES.bit_length()
}

Row: TypeAlias = tuple[
    int, str, int, int, int, bytes, bytes
]  # n, coding … body of a chunk


class NewBlob(Struct, frozen=True, gc=False):
    """An output that is to be written; it has the rows of its chunks once it is packed.

    Its content is kept under ``digest``: once for each tenant, so that nobody learns from the time
    it takes what another one holds.
    """

    output: Output
    digest: bytes
    rows: tuple[Row, ...] | None = None

    @staticmethod
    def of(output: Output, tenant: bytes) -> NewBlob:
        """An output that is not packed yet."""
        digest = content_digest(output.text, output.kind)
        if tenant:
            digest = blake3(
                digest + tenant, derive_key_context="ullage tenant"
            ).digest()
        return NewBlob(output, digest)

    def packed(self) -> NewBlob:
        """The same, in chunks that are compressed where that is smaller."""
        if self.rows is not None:
            return self
        rows = []
        for n, (extent, raw) in enumerate(pieces(self.output.text)):
            packed = zstd.compress(raw, _LEVEL)
            coding, body = (
                ("zstd", packed) if len(packed) < len(raw) else ("raw", raw)
            )
            counts = (extent.size_bytes, extent.chars, extent.newlines)
            rows.append(
                (
                    n,
                    coding,
                    *counts,
                    _seal(self.digest, self.output.kind, n, raw),
                    body,
                )
            )
        return replace(self, rows=tuple(rows))


def extents_in(
    rows: Sequence[Sequence[Any]], chunks: int, size_bytes: int
) -> tuple[ChunkSize, ...] | None:
    """The extents of a content's chunks; None if they are not so many, of so many bytes in all.

    A row is n, chars, size_bytes and newlines.
    """
    sizes = [row[2] for row in rows]
    possible = all(
        isinstance(size, int) and 0 <= size <= MOST_BYTES for size in sizes
    )
    in_order = len(rows) == chunks and all(
        row[0] == n for n, row in enumerate(rows)
    )
    if not (possible and in_order and sum(sizes) == size_bytes):
        return None
    return tuple(ChunkSize(*row[1:]) for row in rows)


def checked_text(
    digest: bytes, kind: Any, n: int, row: Sequence[Any]
) -> str | None:
    """The text of chunk ``n`` of a content, or None if it is not what was written there.

    A row is coding, body, size_bytes, chars, newlines and seal.
    """
    coding, body, size_bytes, chars, newlines, sealed = row
    raw = decompressed(coding, body, size_bytes)
    if raw is None or _seal(digest, kind, n, raw) != sealed:
        return None
    text = from_utf8(raw)
    return text if (len(text), text.count("\n")) == (chars, newlines) else None


def decompressed(coding: Any, body: Any, size_bytes: Any) -> bytes | None:
    """The bytes of a body, or None if it is not ``size_bytes`` of a chunk."""
    if not isinstance(size_bytes, int) or not 0 <= size_bytes <= MOST_BYTES:
        return None
    try:
        if coding == "zstd":  # never more than was said to be in it
            body = zstd.ZstdDecompressor(options=_LIMITS).decompress(
                body, size_bytes + 1
            )
        return (
            body
            if isinstance(body, bytes) and len(body) == size_bytes
            else None
        )
    except (zstd.ZstdError, TypeError, ValueError, EOFError):
        return None


def _seal(digest: bytes, kind: Any, n: int, raw: bytes) -> bytes:
    """A hash that binds a chunk's bytes to its number and the content's digest and kind."""
    place = digest + n.to_bytes(8, "big")
    return (
        blake3(place, derive_key_context=f"ullage chunk {kind}")
        .update(raw)
        .digest()
    )


def to_utf8(text: str) -> bytes:
    """UTF-8 that any str has, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def from_utf8(raw: bytes) -> str:
    """The str that `to_utf8` was given."""
    return raw.decode("utf-8", "surrogatepass")
