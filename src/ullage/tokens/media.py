"""What a picture, a document or a sound costs: by its size, never by its base64.

Sizes come from the caller, or from the first bytes of PNG, GIF, WEBP and JPEG data; where
there are none (a URL, a file id, an unknown type) the stated default of the family stands in,
which is what its largest ordinary picture costs. The work is bounded: a few hundred kilobytes
of base64 are decoded, whatever the data's length.

Formulas: OpenAI fits a picture into 2,048 pixels and its short side to 768, then counts tiles
of 512, or (mini and nano models, GPT-6) patches of 32; Anthropic counts patches of 28 after
fitting a longest edge; Gemini 2 counts tiles of 768, later ones have a fixed budget.
"""

from __future__ import annotations

import binascii
import re
from math import ceil
from typing import NamedTuple

from ullage.tokens.models import family_of

__all__ = ["image_size", "media_tokens"]

_HEAD_CHARS = 64
_JPEG_CHARS = 400_000
_PDF_CHARS = 200_000
_BYTES_A_PAGE, _MOST_PAGES, _UNKNOWN_PAGES = 50_000, 600, 10
_TEXT_TOKENS_A_PAGE = 2_250
_BYTES_A_SECOND = 16_000
_UNKNOWN_SECONDS = 60
_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


class _Tiles(NamedTuple):
    """OpenAI's older formula: a base and so much for each tile of 512 pixels."""

    base: int
    tile: int


class _Patches(NamedTuple):
    """A factor for each patch of ``side`` pixels, at most ``most`` patches."""

    side: int
    most: int
    factor: float = 1.0
    edge: int = 0


_OPENAI_IMAGES: tuple[tuple[str, _Tiles | _Patches], ...] = (
    (r"gpt-?4o-mini", _Tiles(2833, 5667)),
    (r"nano", _Patches(32, 1536, 2.46)),
    (r"o4-mini", _Patches(32, 1536, 1.72)),
    (r"mini", _Patches(32, 1536, 1.62)),
    (r"gpt-?[6-9]|gpt-?5\.[4-9]", _Patches(32, 1536)),
    (r"gpt-?5", _Tiles(70, 140)),
    (r"(?:^|[/.])o[13]", _Tiles(75, 150)),
    (r"", _Tiles(85, 170)),
)
_CLAUDE_3 = _Patches(28, 1568, edge=1568)
_CLAUDE_4_8 = _Patches(28, 4784, edge=2576)
_GEMINI_TILE, _GEMINI_BUDGET = 258, 1120
_GEMINI_2 = re.compile(r"gemini-?(?:pro|1|2)")


def media_tokens(model: str, kind: str, mime: str, data: str, width: int, height: int) -> int:
    """Tokens of one image, document or sound in a request.

    Args:
        model: the model's name; its family decides the formula.
        kind: ``"image"``, ``"document"`` or ``"audio"``; anything else counts as an image.
        mime: such as ``"image/png"``; may be empty.
        data: base64 text, a ``data:`` URL, another URL or a file id.
        width: in pixels, 0 if unknown.
        height: in pixels, 0 if unknown.
    """
    if kind == "audio":
        return _audio_tokens(model, data)
    if kind == "document" and not mime.startswith("image/"):
        return _document_tokens(model, mime, data)
    if width <= 0 or height <= 0:
        width, height = image_size(data)
    return image_tokens(model, width, height)


def image_tokens(model: str, width: int, height: int) -> int:
    """Tokens of an image of a known size; the family's default where a side is 0."""
    family = family_of(model)
    if family == "gemini":
        return _gemini_image(model.lower(), width, height)
    if family.startswith("claude"):
        rule: _Tiles | _Patches = _CLAUDE_3 if family == "claude-v3" else _CLAUDE_4_8
    else:
        rule = next(rule for name, rule in _OPENAI_IMAGES if re.search(name, model.lower()))
    if isinstance(rule, _Tiles):
        return _tile_tokens(rule, width, height)
    return _patch_tokens(rule, width, height)


def _tile_tokens(rule: _Tiles, width: int, height: int) -> int:
    """Fit into 2,048 pixels, then the short side to 768, then tiles; 2 × 4 tiles unknown."""
    if not (width > 0 and height > 0):
        return rule.base + 8 * rule.tile
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = ceil(width * scale / 512 - 1e-9) * ceil(height * scale / 512 - 1e-9)
    return rule.base + min(tiles, 8) * rule.tile


def _patch_tokens(rule: _Patches, width: int, height: int) -> int:
    """Fit the longest edge, then patches, up to the most there may be; that most unknown."""
    if not (width > 0 and height > 0):
        return ceil(rule.most * rule.factor)
    scale = min(1.0, rule.edge / max(width, height)) if rule.edge else 1.0
    patches = ceil(width * scale / rule.side - 1e-9) * ceil(height * scale / rule.side - 1e-9)
    return ceil(min(max(patches, 1), rule.most) * rule.factor)


def _gemini_image(name: str, width: int, height: int) -> int:
    """Tiles of 768 pixels up to Gemini 2, a fixed budget later."""
    if not _GEMINI_2.search(name):
        return _GEMINI_BUDGET
    if not (width > 0 and height > 0):
        return 4 * _GEMINI_TILE
    if max(width, height) <= 384:
        return _GEMINI_TILE
    return min(ceil(width / 768) * ceil(height / 768), 32) * _GEMINI_TILE


def _document_tokens(model: str, mime: str, data: str) -> int:
    """Text by its bytes, everything else by pages: what is written on one and its picture."""
    if mime.startswith("text/"):
        return _payload_bytes(data) // 3 + 1
    pages = _pages(data)
    family = family_of(model)
    if family == "gemini":
        return pages * (_GEMINI_TILE if _GEMINI_2.search(model.lower()) else 560)
    picture = 1568 if family.startswith("claude") else image_tokens(model, 816, 1056)
    return pages * (_TEXT_TOKENS_A_PAGE + picture)


def _pages(data: str) -> int:
    """Pages of a PDF: the page tree's count if it shows in the ends, else by size."""
    payload = _payload(data)
    if payload is None:
        return _UNKNOWN_PAGES
    ends = _decoded(payload[:_PDF_CHARS]) + b"\n" + _decoded_tail(payload, _PDF_CHARS)
    counts = [int(found) for found in re.findall(rb"/Count (\d{1,4})\b", ends)]
    by_size = ceil(_payload_bytes(data) / _BYTES_A_PAGE)
    return min(max(counts, default=by_size) or by_size, _MOST_PAGES)


def _audio_tokens(model: str, data: str) -> int:
    """By length: 32 tokens a second at Gemini, 10 elsewhere; a minute if unknown."""
    known = _payload(data) is not None
    seconds = ceil(_payload_bytes(data) / _BYTES_A_SECOND) if known else _UNKNOWN_SECONDS
    return seconds * (32 if family_of(model) == "gemini" else 10)


def image_size(data: str) -> tuple[int, int]:
    """Width and height in pixels from the head of base64 data; (0, 0) if it does not say."""
    payload = _payload(data)
    if payload is None:
        return 0, 0
    head = _decoded(payload[:_HEAD_CHARS])
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp_size(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg_size(_decoded(payload[:_JPEG_CHARS]))
    return 0, 0


def _webp_size(head: bytes) -> tuple[int, int]:
    """The size in the first chunk: extended, lossless or lossy."""
    if len(head) < 30:
        return 0, 0
    if head[12:16] == b"VP8X":
        width = int.from_bytes(head[24:27], "little") + 1
        return width, int.from_bytes(head[27:30], "little") + 1
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width = int.from_bytes(head[26:28], "little") & 0x3FFF
    return width, int.from_bytes(head[28:30], "little") & 0x3FFF


def _jpeg_size(raw: bytes) -> tuple[int, int]:
    """The size in the first start-of-frame segment, if it comes early enough."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker in _START_OF_FRAME:
            height = int.from_bytes(raw[at + 5 : at + 7], "big")
            return int.from_bytes(raw[at + 7 : at + 9], "big"), height
        if marker == 0xFF:
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(raw[at + 2 : at + 4], "big"))
    return 0, 0


def _payload(data: str) -> str | None:
    """The base64 of ``data``, or None if it is a URL or a file id."""
    if data[:5] == "data:":
        comma = data.find(",", 0, 300)
        return data[comma + 1 :] if comma > 0 else None
    short = data[:_HEAD_CHARS]
    return None if "://" in short or len(data) < _HEAD_CHARS // 2 else data


def _payload_bytes(data: str) -> int:
    """Bytes that ``data`` stands for in base64, by its length."""
    return len(data) * 3 // 4


def _decoded(chars: str) -> bytes:
    """The bytes of the whole groups in a piece of base64; b"" if it is none."""
    packed = "".join(chars.split())
    try:
        return binascii.a2b_base64(packed[: len(packed) // 4 * 4])
    except ValueError:
        return b""


def _decoded_tail(payload: str, chars: int) -> bytes:
    """The last bytes of base64 without line breaks; b"" if it is short enough to be a head."""
    if len(payload) <= chars:
        return b""
    return _decoded(payload[(len(payload) - chars) // 4 * 4 :])
