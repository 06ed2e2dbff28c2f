r"""How a text is parted into chunks, and what is known of each without reading it.

A chunk has `CHUNK_CHARS` characters, so about a MiB where the text is ASCII. It may end
anywhere, between the halves of a "\r\n" or of an emoji too: readers put together what they need.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.values.effects import Extent, Output, Shape

__all__ = ["CHUNK_CHARS", "extent", "pieces", "shape"]

CHUNK_CHARS = 1 << 20


def pieces(text: str, chunk_chars: int = CHUNK_CHARS) -> Iterator[tuple[Extent, bytes]]:
    """Each chunk of a text: its extent, and its UTF-8 (surrogatepass)."""
    for start in range(0, len(text), chunk_chars):
        stop = min(start + chunk_chars, len(text))
        raw = text[start:stop].encode("utf-8", "surrogatepass")
        yield extent(text, start, stop, len(raw)), raw


def extent(text: str, start: int, stop: int, size_bytes: int) -> Extent:
    """The extent of ``text[start:stop]``, which takes ``size_bytes`` in UTF-8."""
    return Extent(stop - start, size_bytes, text.count("\n", start, stop))


def shape(output: Output) -> Shape:
    """An output as one chunk: what a store that holds the string itself says of it."""
    text = output.text
    if not text:
        return Shape(output.ref, output.kind, ())
    size_bytes = len(text) if text.isascii() else sum(len(raw) for _, raw in pieces(text))
    return Shape(output.ref, output.kind, (extent(text, 0, len(text), size_bytes),))
