"""Images, documents and sounds: out of one wire's block, into another's.

            data                        by URL             by file id
anthropic   images, PDF                 images, documents  its own
chat        images, PDF, wav and mp3    images             OpenAI's
responses   images, PDF, wav and mp3    images, documents  OpenAI's
gemini      anything                    where its media type is known
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ullage.values.messages import Media
from ullage.wires.base import field, get, text_at
from ullage.wires.convert.turns import Losses, Medium

__all__ = ["block_of", "medium_of"]

_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,", re.ASCII)
_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}
_BY_ENDING = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
_PDF = "application/pdf"
_GOOGLES_OWN = re.compile(r"gs://|https://generativelanguage\.googleapis\.com/")


# ── out of a wire ────────────────────────────────────────────────────────────────────────


def medium_of(name: str, part: Media, where: str) -> Medium:
    """What stands in a block of the format ``name``. Raises FormatError."""
    block: Any = part.block or {}
    text_at(part.data, where)
    text_at(part.mime, where)
    if name == "gemini":
        return _from_gemini(part, block, where)
    if name == "anthropic":
        source = block.get("source")
        given = {"base64": "data", "url": "url", "file": "file_id"}[str(field(source, "type"))]
        kept = {given: part.data, "mime": part.mime, "name": _said(block, "title", where)}
        return Medium(part.kind, where, **kept)
    if part.kind == "audio":
        mime = next((mime for mime, form in _SOUNDS.items() if form == part.mime), part.mime)
        return Medium("audio", where, mime, part.data)
    inner = block.get("image_url") or block.get("file")
    inner = inner if isinstance(inner, Mapping) else block
    named, detail = _said(inner, "filename", where), _said(inner, "detail", where)
    if inner.get("file_id") and part.data == inner["file_id"]:
        return Medium(part.kind, where, file_id=part.data, name=named, detail=detail)
    found = _DATA_URL.match(part.data)
    if found:
        data = part.data[found.end() :]
        return Medium(part.kind, where, found[1], data, name=named, detail=detail)
    if "://" in part.data:
        return Medium(part.kind, where, url=part.data, name=named, detail=detail)
    mime = _PDF if part.kind == "document" else "image/png"
    return Medium(part.kind, where, mime, part.data, name=named, detail=detail)


def _from_gemini(part: Media, block: Any, where: str) -> Medium:
    file = get(block, "fileData")
    named = get(get(block, "inlineData") if file is None else file, "displayName") or ""
    text_at(named, f"{where}.displayName")
    if file is None:
        data = part.data.replace("-", "+").replace("_", "/")
        return Medium(part.kind, where, part.mime, data, name=named)
    if _GOOGLES_OWN.match(part.data):
        return Medium(part.kind, where, part.mime, file_id=part.data, name=named)
    return Medium(part.kind, where, part.mime, url=part.data, name=named)


def _said(block: Any, key: str, where: str) -> str:
    return text_at(field(block, key) or "", f"{where}.{key}")


# ── into a wire ──────────────────────────────────────────────────────────────────────────


def block_of(medium: Medium, losses: Losses, source: str) -> dict[str, Any] | str:
    """The target's block; a text where the target has none and the caller accepts that."""
    openais = source.startswith("openai") and losses.target.startswith("openai")
    if medium.file_id and not openais:
        what = f"a file of {source}'s own"
        return losses.lose(medium.where, what, "Give its data instead of the id.")
    made = _WRITERS[losses.target](medium)
    if made is None:
        return losses.lose(medium.where, _named(medium), "Leave it out, or give it otherwise.")
    if medium.detail not in ("", "auto") and not openais:
        losses.lose(f"{medium.where}.detail", "the detail of an image", "Leave it out.")
    if medium.name and not _keeps_name(medium, losses.target):
        article = _article(medium.kind)
        what = f"the name of {article} {medium.kind}"
        losses.lose(f"{medium.where}.title", what, "Leave it out.")
    return made


def _keeps_name(medium: Medium, target: str) -> bool:
    """Whether the name goes along: a document's, to OpenAI beside its data alone."""
    where_it_is = {"anthropic": True, "gemini": False}.get(target, bool(medium.data))
    return medium.kind == "document" and where_it_is


def _article(kind: str) -> str:
    return "an" if kind[0] in "ai" else "a"


def _named(medium: Medium) -> str:
    form = f" ({medium.mime})" if medium.mime else ""
    return f"{_article(medium.kind)} {medium.kind}{form}{' by URL' if medium.url else ''}"


def _anthropic(medium: Medium) -> dict[str, Any] | None:
    allowed = {"image": _IMAGES, "document": {_PDF}}.get(medium.kind, frozenset())
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
        case "image":
            detail = {"detail": medium.detail} if medium.detail not in ("", "auto") else {}
            if medium.file_id:
                return None
            return {"type": "image_url", "image_url": {"url": _url(medium), **detail}}
        case "audio":
            return _sound(medium)
    if medium.file_id:
        return {"type": "file", "file": {"file_id": medium.file_id}}
    if medium.url or medium.mime != _PDF:
        return None
    name = medium.name or "document.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": _url(medium)}}


def _responses(medium: Medium) -> dict[str, Any] | None:
    if medium.kind == "audio":
        return _sound(medium)
    if medium.kind == "image":
        held = {"file_id": medium.file_id} if medium.file_id else {"image_url": _url(medium)}
        return {"type": "input_image", **held, "detail": medium.detail or "auto"}
    if medium.file_id:
        return {"type": "input_file", "file_id": medium.file_id}
    if medium.url:
        return {"type": "input_file", "file_url": medium.url}
    if medium.mime != _PDF:
        return None
    name = medium.name or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": _url(medium)}


def _gemini(medium: Medium) -> dict[str, Any] | None:
    if not medium.url:
        return {"inlineData": {"mimeType": medium.mime, "data": medium.data}}
    ending = medium.url.partition("?")[0].rpartition(".")[2].lower()
    mime = medium.mime or _BY_ENDING.get(ending)
    return {"fileData": {"fileUri": medium.url, "mimeType": mime}} if mime else None


def _sound(medium: Medium) -> dict[str, Any] | None:
    form = _SOUNDS.get(medium.mime)
    if form is None or medium.url:
        return None
    return {"type": "input_audio", "input_audio": {"data": medium.data, "format": form}}


def _url(medium: Medium) -> str:
    return medium.url or f"data:{medium.mime};base64,{medium.data}"


_WRITERS: Mapping[str, Callable[[Medium], dict[str, Any] | None]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
