"""Media of Converse: bytes as boto3 takes them, or base64 as they stand on the wire.

What a block is does not depend on which of the two it came in. Set aside it is JSON, with base64;
handed back it has bytes, which boto3 encodes and whatever writes JSON here writes as base64.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any

from ullage.wires.base import block_at
from ullage.wires.bedrock_converse.blocks import BLOCKS, kind_of

_FORMS: Mapping[str, Mapping[str, str]] = {
    "image": {
        form: f"image/{form}" for form in ("png", "jpeg", "gif", "webp")
    },
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
    "video": {
        "mp4": "video/mp4",
        "webm": "video/webm",
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "flv": "video/x-flv",
        "mpeg": "video/mpeg",
        "mpg": "video/mpeg",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        "mp3": "audio/mpeg",
        "wav": "audio/wav",
        "aac": "audio/aac",
        "flac": "audio/flac",
        "ogg": "audio/ogg",
        "opus": "audio/opus",
        "webm": "audio/webm",
        "mp4": "audio/mp4",
        "m4a": "audio/mp4",
        "mka": "audio/x-matroska",
        "mkv": "audio/x-matroska",
        "mpeg": "audio/mpeg",
        "mpga": "audio/mpeg",
        "pcm": "audio/pcm",
        "x-aac": "audio/aac",
    },
}
"""The formats of each kind of block, and their types; of several of a type the first is written."""


def type_of(kind: str, form: str) -> str:
    """The MIME type of a medium, by its block and its format; the format if that is not known."""
    return _FORMS[kind].get(form, form)


def form_of(kind: str, mime: str) -> str | None:
    """The format of a medium of this type in a block of this kind; None if there is none."""
    if mime == "audio/mp3":
        mime = "audio/mpeg"
    for form, form_mime in _FORMS[kind].items():
        if form_mime == mime:
            return form
    return None


def is_medium(block: Mapping[str, Any]) -> bool:
    """Whether a block holds bytes, or names an object in a bucket."""
    kind = kind_of(block)
    if not kind or not BLOCKS[kind].media:
        return False
    source = _source(block, kind)
    return (
        source.get("bytes") is not None or source.get("s3Location") is not None
    )


def as_json(block: Mapping[str, Any], path: str) -> Any:
    """A block of a medium in containers of its own, its bytes as base64. Raises FormatError."""
    kind = kind_of(block)
    data = b64_of(_source(block, kind).get("bytes"))
    return block_at(_with_bytes(block, kind, data), path)


def as_sdk(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block that was set aside, as boto3 takes it: with bytes."""
    kind = kind_of(block)
    data = _source(block, kind).get("bytes")
    if not isinstance(data, str):
        return dict(block)
    try:
        return _with_bytes(block, kind, b64decode(data))
    except Error:
        return dict(block)  # no base64: the API will say so


def b64_of(data: Any) -> Any:
    """Bytes as base64 text; anything else as it is."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return b64encode(data).decode()
    return data


def _source(block: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    body = block.get(kind)
    source = body.get("source") if isinstance(body, Mapping) else None
    if isinstance(source, Mapping):
        return source
    return {}


def _with_bytes(
    block: Mapping[str, Any], kind: str, data: Any
) -> dict[str, Any]:
    """A block with its bytes in another form; itself, copied, where it has none."""
    if data is None:
        return dict(block)
    source = {**_source(block, kind), "bytes": data}
    return {**block, kind: {**block[kind], "source": source}}
