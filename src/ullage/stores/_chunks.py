r"""How a text is parted into chunks.

A chunk has `CHUNK_CHARS` characters, so about a MiB where the text is ASCII. It may end
anywhere, between the halves of a "\r\n" or of an emoji too: readers put together what they need.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.values.effects import Extent

CHUNK_CHARS = 1 << 20


def pieces(text: str) -> Iterator[tuple[Extent, bytes]]:
    """Each chunk of a text: its extent, and its UTF-8 (surrogatepass)."""
    for start in range(0, len(text), CHUNK_CHARS):
        piece = text[start : start + CHUNK_CHARS]
        raw = piece.encode("utf-8", "surrogatepass")
        yield Extent(len(piece), len(raw), piece.count("\n")), raw
