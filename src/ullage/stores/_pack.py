"""How a chunk is written: zstd if that is smaller, under a seal that binds it to its place.

The seal is blake3 over the content's digest and kind, the chunk's number and its bytes, so a
damaged chunk, and one that is in another's place, is noticed without reading the others.
"""

from __future__ import annotations

import sys
from typing import Any

from blake3 import blake3

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["pack", "seal", "unpack"]

_LEVEL = 3


def pack(raw: bytes) -> tuple[str, bytes]:
    """The coding and the body under which these bytes are kept."""
    body = zstd.compress(raw, _LEVEL)
    return ("zstd", body) if len(body) < len(raw) else ("raw", raw)


def unpack(coding: Any, body: Any, size_bytes: Any) -> bytes | None:
    """The bytes of a body, or None if it is not ``size_bytes`` of anything."""
    try:
        if coding == "zstd":  # never more than was said to be in it
            body = zstd.ZstdDecompressor().decompress(body, size_bytes + 1)
        return body if isinstance(body, bytes) and len(body) == size_bytes else None
    except (zstd.ZstdError, TypeError, ValueError, OverflowError, EOFError):
        return None


def seal(digest: bytes, kind: Any, n: int, raw: bytes) -> bytes:
    """What proves that these bytes are chunk ``n`` of the content of this digest and kind."""
    place = digest + n.to_bytes(8, "big")
    return blake3(place, derive_key_context=f"ullage chunk {kind}").update(raw).digest()
