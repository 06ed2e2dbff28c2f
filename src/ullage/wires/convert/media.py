"""Images, documents and sounds: out of one wire's block, into another's (docs/formats.md)."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from ullage.core.history.raw import text_at
from ullage.core.values.messages import Media
from ullage.wires.base import at_path
from ullage.wires.block import Block
from ullage.wires.convert.turns import Medium

_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,", re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")
IMAGES = {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")}
_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
_TYPES = {"wav": "audio/wav", "mp3": "audio/mp3"}
PDF = "application/pdf"
_BY_ENDING = {**IMAGES, "jpg": "image/jpeg", "pdf": PDF}
_STORED = re.compile(
    r"gs://|s3://|https://generativelanguage\.googleapis\.com/"
)
"""How the address of a file begins that only its own cloud can open."""


def medium_of(part: Media, row: Block, path: str) -> Medium:
    """The medium in a block, apart from any wire.

    Args:
        part: the block, as it was parsed.
        row: of its type.
        path: its path.

    Raises:
        FormatError: its title is no text.
    """
    data = part.data
    field = _data_path(part.block, row).rpartition(".")[2]
    title = at_path(part.block, row.title) if row.title else None
    medium = Medium(
        kind=part.kind,
        where=path,
        mime=part.mime,
        name=text_at(title or "", f"{path}.{row.title}"),
        detail=part.detail if row.detail else "",
    )
    is_address = field in ("fileUri", "uri")
    if field == "file_id" or (is_address and _STORED.match(data)):
        return replace(medium, file_id=data)
    data_url = _DATA_URL.match(data)
    if data_url is not None:
        return replace(medium, mime=data_url[1], data=data[data_url.end() :])
    if field == "fileUri" or "://" in data:
        return replace(medium, mime=part.mime if row.mime else "", url=data)
    mime = part.mime
    if not mime and not row.mime:
        mime = "image/png"
    base64 = data.translate(_URL_SAFE)
    return replace(medium, mime=_TYPES.get(mime, mime), data=base64)


def _data_path(block: Any, row: Block) -> str:
    """The path under which the data of a medium stands."""
    for path in row.data:
        if at_path(block, path):
            return path
    return row.data[0]


# ── helpers of the wires ─────────────────────────────────────────────────────────────────


def openai_file(medium: Medium) -> dict[str, Any] | None:
    """The fields of a document at OpenAI, None if it is not a PDF."""
    if medium.file_id:
        return {"file_id": medium.file_id}
    if medium.mime != PDF:
        return None
    name = medium.name or "document.pdf"
    return {"filename": name, "file_data": url_of(medium)}


def openai_sound(medium: Medium) -> dict[str, Any] | None:
    """The part of a sound at OpenAI, None if it has no such form there."""
    form = None if medium.url else _SOUNDS.get(medium.mime)
    if form is None:
        return None
    sound = {"data": medium.data, "format": form}
    return {"type": "input_audio", "input_audio": sound}


def url_of(medium: Medium) -> str:
    """Where a medium is, or its data as a URL."""
    return medium.url or f"data:{medium.mime};base64,{medium.data}"


def type_by_ending(url: str) -> str | None:
    """The MIME type that the path of a URL ends with; None if that is not known."""
    path = url.partition("?")[0]
    ending = path.rpartition(".")[2]
    return _BY_ENDING.get(ending.lower())
