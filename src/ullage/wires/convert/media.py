"""Images, documents and sounds: out of one wire's block, into another's (docs/formats.md)."""

from __future__ import annotations

import re
from typing import Any

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
_STORED = re.compile(r"gs://|s3://|https://generativelanguage\.googleapis\.com/")
"""How the address of a file begins that only its own cloud can open."""


def medium_of(part: Media, row: Block, where: str) -> Medium:
    """What stands in a block of that row. Raises FormatError."""
    block, data = part.block, part.data
    title = at_path(block, row.title) if row.title else None
    kept = {
        "name": text_at(title or "", f"{where}.{row.title}"),
        "detail": part.detail if row.detail else "",
    }
    path = next((path for path in row.data if at_path(block, path)), row.data[0])
    field = path.rpartition(".")[2]
    if field == "file_id" or (field in ("fileUri", "uri") and _STORED.match(data)):
        return Medium(part.kind, where, part.mime, file_id=data, **kept)
    if found := _DATA_URL.match(data):
        return Medium(part.kind, where, found[1], data[found.end() :], **kept)
    if field == "fileUri" or "://" in data:
        return Medium(part.kind, where, part.mime if row.mime else "", url=data, **kept)
    mime = part.mime or ("" if row.mime else "image/png")
    data = data.translate(_URL_SAFE)
    return Medium(part.kind, where, _TYPES.get(mime, mime), data, **kept)


# ── helpers of the wires ─────────────────────────────────────────────────────────────────


def openai_file(medium: Medium) -> dict[str, Any] | None:
    """The fields of a document at OpenAI, None if it is not a PDF."""
    if medium.file_id:
        return {"file_id": medium.file_id}
    name = medium.name or "document.pdf"
    return (
        {"filename": name, "file_data": url_of(medium)} if medium.mime == PDF else None
    )


def openai_sound(medium: Medium) -> dict[str, Any] | None:
    """The part of a sound at OpenAI, None if it has no such form there."""
    form = None if medium.url else _SOUNDS.get(medium.mime)
    sound = {"data": medium.data, "format": form}
    return {"type": "input_audio", "input_audio": sound} if form else None


def url_of(medium: Medium) -> str:
    """Where a medium is, or its data as a URL."""
    return medium.url or f"data:{medium.mime};base64,{medium.data}"


def type_by_ending(url: str) -> str | None:
    """The MIME type that the path of a URL ends with; None if that is not known."""
    return _BY_ENDING.get(url.partition("?")[0].rpartition(".")[2].lower())
