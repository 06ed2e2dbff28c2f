"""What each format takes of images, documents and sound, as data (`provider-rules` §1).

Only what the providers state: None where no limit is known to us. The number of PDF pages is
stated by none of the pages read. What a medium costs in tokens is `ullage.tokens.media`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.values.messages import Content, Media
from ullage.wires.base import block_at, optional_text_at, plain

__all__ = ["MEDIA", "MediaLimits", "sound_at", "without_medium"]

Kind: TypeAlias = Literal["image", "document", "audio"]


class MediaLimits(Struct, frozen=True, kw_only=True, gc=False):
    """The media that one format takes.

    Attributes:
        from_user: kinds a user message may hold.
        in_results: kinds the result of a tool may hold.
        images: most images of one request, None if not stated.
        images_small_window: the same for models of ``small_window_tokens`` or less.
        small_window_tokens: see there; 0 if it makes no difference.
        side_px: longest side of an image.
        many_images: from more images than this on, ``many_side_px`` is the longest side.
        many_side_px: see there.
        image_bytes: most bytes of one image, decoded.
        pdf_pages: most pages of the documents of one request.
        source: section and rule.
        verified: whether the source counts as verified (`ullage.wires.rules.table`).
    """

    from_user: frozenset[Kind]
    in_results: frozenset[Kind]
    images: int | None = None
    images_small_window: int | None = None
    small_window_tokens: int = 0
    side_px: int | None = None
    many_images: int | None = None
    many_side_px: int | None = None
    image_bytes: int | None = None
    pdf_pages: int | None = None
    source: str = ""
    verified: bool = True


_ALL: frozenset[Kind] = frozenset(("image", "document", "audio"))
_SEEN: frozenset[Kind] = frozenset(("image", "document"))

MEDIA = {
    "anthropic": MediaLimits(
        from_user=_SEEN,
        in_results=_SEEN,
        images=600,
        images_small_window=100,
        small_window_tokens=200_000,
        side_px=8_000,
        many_images=20,
        many_side_px=2_000,
        image_bytes=10_000_000,
        source="§1.A A25 and the table of blocks",
    ),
    "openai-chat": MediaLimits(from_user=_ALL, in_results=frozenset(), source="§1.B C8"),
    "openai-responses": MediaLimits(from_user=_ALL, in_results=_SEEN, source="§1.C items"),
    "gemini": MediaLimits(from_user=_ALL, in_results=_ALL, source="§1.D functionResponse.parts"),
}
"""The limits by format."""


def sound_at(part: Mapping[str, Any], at: int, where: str) -> Media:
    """An ``input_audio`` part of OpenAI's. Raises FormatError naming the path below ``where``."""
    sound = plain(part.get("input_audio") or {}, f"{where}.input_audio")
    form, data = (
        optional_text_at(sound.get(name), f"{where}.input_audio.{name}")
        for name in ("format", "data")
    )
    return Media("audio", form, data, at, block=block_at(part, where))


def without_medium(format: str, content: Content, text: str) -> str | None:
    """What the result of a tool says instead of a medium that it may not hold.

    Args:
        format: the wire format of the result.
        content: what was recalled.
        text: what the result says beside it.

    Returns:
        ``text`` and why the medium is not there; None if it is none, or may stand there.
    """
    if not isinstance(content, Media) or content.kind in MEDIA[format].in_results:
        return None
    return (
        f"{text}\n[not shown: a tool result of this format cannot hold {_NAMES[content.kind]}. "
        "It is whole in the caller's history and can be sent in a user message.]"
    )


_NAMES = {"image": "an image", "document": "a document", "audio": "a sound"}
