"""Images, documents and sounds: out of one wire's block, into another's (docs/formats.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ullage.values.messages import Media
from ullage.wires.base import at_path, text_at
from ullage.wires.block import Block
from ullage.wires.convert.turns import Conversion, Medium

_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,", re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")
_IMAGES = {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")}
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_TYPES = {"wav": "audio/wav", "mp3": "audio/mp3"}
_PDF = "application/pdf"
_BY_ENDING = {**_IMAGES, "jpg": "image/jpeg", "pdf": _PDF}
_GOOGLES_OWN = re.compile(r"gs://|https://generativelanguage\.googleapis\.com/")


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
    if field == "file_id" or (field == "fileUri" and _GOOGLES_OWN.match(data)):
        return Medium(part.kind, where, part.mime, file_id=data, **kept)
    if found := _DATA_URL.match(data):
        return Medium(part.kind, where, found[1], data[found.end() :], **kept)
    if field == "fileUri" or "://" in data:
        return Medium(part.kind, where, part.mime if row.mime else "", url=data, **kept)
    mime = part.mime or ("" if row.mime else "image/png")
    data = data.translate(_URL_SAFE)
    return Medium(part.kind, where, _TYPES.get(mime, mime), data, **kept)


def block_of(medium: Medium, conversion: Conversion) -> dict[str, Any] | str:
    """The target's block; a text where the target has none and the caller accepts that."""
    source, target, lose = conversion.source, conversion.target, conversion.lose
    openais = source.startswith("openai") and target.startswith("openai")
    if medium.file_id and not openais:
        remedy = "Give its data instead of the id."
        return lose(medium.where, f"a file of {source}'s own", remedy)
    made = _WRITERS[target](medium)
    named = f"{'an' if medium.kind[0] in 'ai' else 'a'} {medium.kind}"
    if made is None:
        form = f" ({medium.mime})" if medium.mime else ""
        what = f"{named}{form}{' by URL' if medium.url else ''}"
        return lose(medium.where, what, "Leave it out, or give it otherwise.")
    if medium.detail not in ("", "auto") and not openais:
        lose(f"{medium.where}.detail", "the detail of an image")
    # a document's name goes along, to OpenAI beside its data alone
    keeps_name = {"anthropic": True, "gemini": False}.get(target, bool(medium.data))
    if medium.name and not (medium.kind == "document" and keeps_name):
        lose(f"{medium.where}.title", f"the name of {named}")
    return made


def _anthropic(medium: Medium) -> dict[str, Any] | None:
    allowed = {"image": (*_IMAGES.values(),), "document": (_PDF,)}.get(medium.kind, ())
    if medium.url and medium.kind != "audio":
        source = {"type": "url", "url": medium.url}
    elif medium.mime in allowed:
        source = {"type": "base64", "media_type": medium.mime, "data": medium.data}
    else:
        return None
    named = {"title": medium.name} if medium.name and medium.kind == "document" else {}
    return {"type": medium.kind, "source": source, **named}


def _chat(medium: Medium) -> dict[str, Any] | None:
    match medium.kind:
        case "audio":
            return _sound(medium)
        case "image":
            detail = {"detail": medium.detail} if medium.detail not in ("", "auto") else {}
            image = {"url": _url(medium), **detail}
            return None if medium.file_id else {"type": "image_url", "image_url": image}
    file = None if medium.url else _file(medium)
    return None if file is None else {"type": "file", "file": file}


def _responses(medium: Medium) -> dict[str, Any] | None:
    match medium.kind:
        case "audio":
            return _sound(medium)
        case "image":
            held = {"file_id": medium.file_id} if medium.file_id else {"image_url": _url(medium)}
            return {"type": "input_image", **held, "detail": medium.detail or "auto"}
    file = {"file_url": medium.url} if medium.url else _file(medium)
    return None if file is None else {"type": "input_file", **file}


def _file(medium: Medium) -> dict[str, Any] | None:
    """The fields of a document at OpenAI, None if it is not a PDF."""
    if medium.file_id:
        return {"file_id": medium.file_id}
    name = medium.name or "document.pdf"
    return {"filename": name, "file_data": _url(medium)} if medium.mime == _PDF else None


def _sound(medium: Medium) -> dict[str, Any] | None:
    form = None if medium.url else _SOUNDS.get(medium.mime)
    sound = {"data": medium.data, "format": form}
    return {"type": "input_audio", "input_audio": sound} if form else None


def _url(medium: Medium) -> str:
    return medium.url or f"data:{medium.mime};base64,{medium.data}"


def _gemini(medium: Medium) -> dict[str, Any] | None:
    if not medium.url:
        return {"inlineData": {"mimeType": medium.mime, "data": medium.data}}
    ending = medium.url.partition("?")[0].rpartition(".")[2].lower()
    mime = medium.mime or _BY_ENDING.get(ending)
    return {"fileData": {"fileUri": medium.url, "mimeType": mime}} if mime else None


_WRITERS: Mapping[str, Callable[[Medium], dict[str, Any] | None]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
