"""What the bytes of a medium say of its size: pixels, pages and seconds.

Data is base64 text, a ``data:`` URL, another URL or a file id; of the last two nothing is known.
The work is bounded: a few hundred kilobytes of base64 are decoded, whatever the data's length.
"""

from __future__ import annotations

import binascii
import re
import struct
from math import ceil, isfinite

_HEAD_CHARS = 64
_JPEG_CHARS = 400_000
_PDF_CHARS = 200_000
_WEBM_BYTES = 4_096
_MOST_BOXES = 64
_BYTES_A_PAGE = 50_000
_MOST_PAGES = 600
_UNKNOWN_PAGES = 10
_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_WEBP_SIDE = 0x3FFF
"""Sides of a WebP have 14 bits; the two above them scale the picture."""
_SOUND_BYTES_A_SECOND = 16_000
"""Of compressed sound at 128 kbit a second."""
_WEBM_DURATION = re.compile(rb"\x44\x89(?:\x84(.{4})|\x88(.{8}))", re.DOTALL)
_WEBM_SCALE = re.compile(rb"\x2a\xd7\xb1\x83(.{3})", re.DOTALL)


def is_known(data: str) -> bool:
    """Whether ``data`` is the medium itself, and not a URL or a file id."""
    return _payload(data) is not None


def payload_bytes(data: str) -> int:
    """Bytes that ``data`` stands for in base64, by its length."""
    return len(data) * 3 // 4


# ── pictures ─────────────────────────────────────────────────────────────────────────────


def image_size(data: str) -> tuple[int, int]:
    """Width and height in pixels from the head of base64 data; (0, 0) if it does not say."""
    payload = _payload(data)
    if payload is None:
        return 0, 0
    head = _decoded(payload[:_HEAD_CHARS])
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack_from(">II", head, 16)
        return width, height
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        width, height = struct.unpack_from("<HH", head, 6)
        return width, height
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
        width = int.from_bytes(head[24:27], "little")
        height = int.from_bytes(head[27:30], "little")
        return width + 1, height + 1
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        width = bits & _WEBP_SIDE
        height = bits >> 14 & _WEBP_SIDE
        return width + 1, height + 1
    width, height = struct.unpack_from("<HH", head, 26)
    return width & _WEBP_SIDE, height & _WEBP_SIDE


def _jpeg_size(raw: bytes) -> tuple[int, int]:
    """The size in the first start-of-frame segment, if it comes early enough."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD7:
            at += 2
        else:
            (size,) = struct.unpack_from(">H", raw, at + 2)
            at += 2 + max(2, size)
    return 0, 0


# ── documents ────────────────────────────────────────────────────────────────────────────


def pages(data: str) -> int:
    """Pages of a PDF: the page tree's count if it shows in the ends, else by size."""
    payload = _payload(data)
    if payload is None:
        return _UNKNOWN_PAGES
    head = _decoded(payload[:_PDF_CHARS])
    tail = _decoded_tail(payload, _PDF_CHARS)
    counts = re.findall(rb"/Count (\d{1,4})\b", head + b"\n" + tail)
    most = max(map(int, counts), default=0)
    if most == 0:
        most = ceil(payload_bytes(data) / _BYTES_A_PAGE)
    return min(most, _MOST_PAGES)


# ── sound and video ──────────────────────────────────────────────────────────────────────


def sound_seconds(data: str) -> float:
    """Seconds of sound: of a WAV by its own rate, of another by 128 kbit a second; 0.0 unknown."""
    payload = _payload(data)
    if payload is None:
        return 0.0
    head = _decoded(payload[:_HEAD_CHARS])
    bytes_a_second = 0
    if head[:4] == b"RIFF" and head[8:16] == b"WAVEfmt ":
        bytes_a_second = int.from_bytes(head[28:32], "little")
    return payload_bytes(data) / (bytes_a_second or _SOUND_BYTES_A_SECOND)


def video_seconds(data: str) -> float:
    """Seconds of an MP4, MOV or WEBM as its header says; 0.0 if it does not say."""
    payload = _payload(data)
    if payload is None:
        return 0.0
    if _bytes_at(payload, 0, 4) == b"\x1a\x45\xdf\xa3":
        return _webm_seconds(_bytes_at(payload, 0, _WEBM_BYTES))
    at = 0
    for _ in range(
        _MOST_BOXES
    ):  # from box to box, wherever the movie's own stands
        head = _bytes_at(payload, at, 16)
        if head[4:8] == b"moov":
            return _mp4_seconds(_bytes_at(payload, at, 160))
        size = int.from_bytes(head[:4], "big")
        if size == 1:  # a long box: its size follows its name
            size = int.from_bytes(head[8:16], "big")
        if len(head) < 16 or size < 8:
            break
        at += size
    return 0.0


def _mp4_seconds(movie: bytes) -> float:
    """Duration by time scale, in the movie's header of version 0 or 1."""
    _, name, header = movie.partition(b"mvhd")
    if not name:
        return 0.0
    is_long = header[:1] == b"\1"
    scale_at, size = (20, 8) if is_long else (12, 4)
    duration_at = scale_at + 4
    scale = int.from_bytes(header[scale_at:duration_at], "big")
    duration = int.from_bytes(header[duration_at : duration_at + size], "big")
    is_unknown = duration == (1 << 8 * size) - 1
    if scale == 0 or is_unknown:
        return 0.0
    return duration / scale


def _webm_seconds(head: bytes) -> float:
    """Duration by time scale, where the recorder wrote one."""
    duration_match = _WEBM_DURATION.search(head)
    if duration_match is None:
        return 0.0
    single, double = duration_match.groups()
    if single:
        (duration,) = struct.unpack(">f", single)
    else:
        (duration,) = struct.unpack(">d", double)
    scale = _WEBM_SCALE.search(head)
    nanoseconds = int.from_bytes(scale[1], "big") if scale else 1_000_000
    seconds = float(duration * nanoseconds / 1e9)
    return seconds if isfinite(seconds) and seconds > 0 else 0.0


# ── base64 ───────────────────────────────────────────────────────────────────────────────


def _payload(data: str) -> str | None:
    """The base64 of ``data``, or None if it is a URL or a file id."""
    if data[:5] == "data:":
        comma = data.find(",", 0, 300)
        return data[comma + 1 :] if comma > 0 else None
    is_url = "://" in data[:_HEAD_CHARS]
    is_id = len(data) < _HEAD_CHARS // 2
    return None if is_url or is_id else data


def _decoded(chars: str) -> bytes:
    """The bytes of the whole groups in a piece of base64; b"" if it is none."""
    packed = "".join(chars.split())
    try:
        return binascii.a2b_base64(packed[: _whole_groups(len(packed))])
    except ValueError:
        return b""


def _decoded_tail(payload: str, chars: int) -> bytes:
    """The last bytes of base64 without line breaks; b"" if it is short enough to be a head."""
    if len(payload) <= chars:
        return b""
    return _decoded(payload[_whole_groups(len(payload) - chars) :])


def _bytes_at(payload: str, start: int, count: int) -> bytes:
    """``count`` bytes from ``start`` on of base64 without line breaks, or what there is."""
    group, skip = divmod(start, 3)
    groups = (skip + count + 2) // 3
    chars = payload[4 * group : 4 * (group + groups)]
    return _decoded(chars)[skip : skip + count]


def _whole_groups(chars: int) -> int:
    """The characters of the whole groups of four among so many."""
    return chars // 4 * 4
