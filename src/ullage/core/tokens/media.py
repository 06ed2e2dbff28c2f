"""What a picture, a document, a sound or a video costs: by its size, never by its base64.

Sizes come from the caller, or from the bytes (`ullage.core.tokens.payload`); where they say
nothing (a URL, a file id, an unknown type) a stated default stands in: of pictures what the
largest ordinary one costs, 10 pages, a minute of sound, five minutes of video.

OpenAI's older models fit a picture into 2,048 pixels and its short side to 768, then count tiles
of 512, and a fixed base alone with detail ``low``. Its later ones count patches of 32, up to a
number that depends on model and detail; from GPT-5.6 on a picture is taken as it is unless the
request asks for less. Anthropic counts patches of 28 after fitting a longest edge, Gemini 2 tiles
of 768. Later Geminis have a fixed budget for each media resolution. (`provider-rules` §6, and the
vendors' pages on vision and on media resolution.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from typing import NamedTuple, TypeAlias

from ullage.core.tokens.models import family_of
from ullage.core.tokens.payload import (
    image_size,
    is_known,
    pages,
    payload_bytes,
    sound_seconds,
    video_seconds,
)
from ullage.core.values.messages import Media
from ullage.core.values.model_names import plain_name

_TEXT_TOKENS_A_PAGE = 2_250
_LETTER_PX = (816, 1056)
_UNKNOWN_SOUND_S = 60
_UNKNOWN_VIDEO_S = 300
_MOST_VIDEO_S = 12 * 3600
_VIDEO_BYTES_A_SECOND = 62_500
"""Of a video that does not say how long it is: half a megabit a second, as of a screen."""
_SOUND_TOKENS_A_SECOND = 10
_GEMINI_SOUND_TOKENS_A_SECOND = 32
_STAMP_TOKENS_A_SECOND = 10
_GEMINI_PAGE = {"low": 280, "high": 1120, "ultra_high": 1120}
_GEMINI_FRAME = {"high": 280, "ultra_high": 280}
_GEMINI_PAGE_TOKENS = 560
_GEMINI_FRAME_TOKENS = 70
_GEMINI_2_TOKENS = 258
_GEMINI_2_LOW_TOKENS = 66


def media_tokens(model: str, medium: Media, detail: str = "") -> int:
    """Tokens of one image, document, sound or video in a request."""
    detail = medium.detail or detail
    if medium.mime.startswith("video/"):
        return _video_tokens(model, medium, detail)
    if medium.kind == "audio":
        return _sound_tokens(model, medium.data)
    if medium.kind == "document" and not medium.mime.startswith("image/"):
        return _document_tokens(model, medium, detail)
    width = medium.width
    height = medium.height
    if width <= 0 or height <= 0:
        width, height = image_size(medium.data)
    return image_tokens(model, width, height, detail)


def _document_tokens(model: str, medium: Media, detail: str) -> int:
    """Text by its bytes, everything else by pages: what is written on one and its picture."""
    if medium.mime.startswith("text/"):
        return payload_bytes(medium.data) // 3 + 1
    count = pages(medium.data)
    family = family_of(model)
    if family == "gemini":
        if _is_gemini_2(model):
            return count * _gemini_2_tokens(detail)
        return count * _GEMINI_PAGE.get(detail, _GEMINI_PAGE_TOKENS)
    is_claude = family.startswith("claude")
    picture = 1568 if is_claude else image_tokens(model, *_LETTER_PX, detail)
    return count * (_TEXT_TOKENS_A_PAGE + picture)


def _sound_tokens(model: str, data: str) -> int:
    """By length: 32 tokens a second at Gemini, 10 elsewhere; a minute if unknown."""
    seconds = ceil(sound_seconds(data)) or _UNKNOWN_SOUND_S
    if family_of(model) == "gemini":
        return seconds * _GEMINI_SOUND_TOKENS_A_SECOND
    return seconds * _SOUND_TOKENS_A_SECOND


def _video_tokens(model: str, medium: Media, detail: str) -> int:
    """By length, by Gemini's formula, as no other vendor takes any: its frames and its sound.

    A frame a second, unless the request says otherwise, and beside it the time as text.
    """
    frame = _GEMINI_FRAME.get(detail, _GEMINI_FRAME_TOKENS)
    if family_of(model) != "gemini" or _is_gemini_2(model):
        frame = _gemini_2_tokens(detail)
    sound = _GEMINI_SOUND_TOKENS_A_SECOND + _STAMP_TOKENS_A_SECOND
    tokens_a_second = frame * medium.frames_per_s + sound
    return ceil(_video_seconds(medium) * tokens_a_second)


def _video_seconds(medium: Media) -> float:
    """As much as is asked for of what there is; by its bytes, or five minutes, if unknown."""
    seconds = video_seconds(medium.data)
    if not seconds and medium.clip_s:
        return min(medium.clip_s, _MOST_VIDEO_S)
    if not seconds and is_known(medium.data):
        seconds = payload_bytes(medium.data) / _VIDEO_BYTES_A_SECOND
    seconds = min(seconds or _UNKNOWN_VIDEO_S, _MOST_VIDEO_S)
    return min(seconds, medium.clip_s) if medium.clip_s else seconds


def _gemini_2_tokens(detail: str) -> int:
    return _GEMINI_2_LOW_TOKENS if detail == "low" else _GEMINI_2_TOKENS


# ── pictures ─────────────────────────────────────────────────────────────────────────────


class _Tiles(NamedTuple):
    """A base, and so much for each tile of 512 pixels."""

    base: int
    tile: int


class _Patches(NamedTuple):
    """A factor for each patch of ``side`` pixels, at most ``most`` patches.

    Before, the longest edge is fitted to ``edge``, if there is one. Of a picture whose size is
    not known ``unseen`` patches are assumed.
    """

    side: int
    most: int
    factor: float = 1.0
    edge: int = 0
    unseen: int = 0


_Details: TypeAlias = Mapping[str, _Tiles | _Patches]
"""The rule of each detail that has one of its own, and under ``""`` of every other."""


def _tiled(base: int, tile: int) -> _Details:
    return {"": _Tiles(base, tile), "low": _Tiles(base, 0)}


def _patched(factor: float = 1.0) -> _Details:
    return {
        "": _Patches(32, 1536, factor, edge=2048),
        "low": _Patches(32, 256, factor, edge=512),
    }


_LOW = _Patches(32, 256, edge=512)
_HIGH = _Patches(32, 2_500, edge=2048)
_ORIGINAL = _Patches(32, 10_000, edge=6000, unseen=4_096)
_UNFITTED = _Patches(32, 1_000_000, unseen=4_096)
"""The picture as it was sent; of an unseen one as much as 2,048 by 2,048 pixels are."""

_OPENAI: tuple[tuple[str, _Details], ...] = (
    (r"gpt-?4o-mini", _tiled(2833, 5667)),
    (r"nano", _patched(2.46)),
    (r"o4-mini", _patched(1.72)),
    (r"mini", _patched(1.62)),
    (r"computer-use", _tiled(65, 129)),
    (
        r"gpt-?(?:[6-9]|[1-9]\d)(?!\d)|gpt-?5\.(?:[6-9]|[1-9]\d)",
        {"": _UNFITTED, "low": _LOW, "high": _HIGH},
    ),
    (r"gpt-?5\.5", {"": _ORIGINAL, "low": _LOW, "high": _HIGH}),
    (r"gpt-?5\.4", {"": _HIGH, "low": _LOW, "original": _ORIGINAL}),
    (r"gpt-?5\.[23]|codex", _patched()),
    (r"gpt-?5", _tiled(70, 140)),
    (r"^o[13]", _tiled(75, 150)),
    (r"", _tiled(85, 170)),
)
_CLAUDE_3 = _Patches(28, 1568, edge=1568)
_CLAUDE_4_8 = _Patches(28, 4784, edge=2576)
_GEMINI_TILE = 258
_GEMINI_2_LOW = 64
_GEMINI = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}
_GEMINI_2 = re.compile(r"gemini-?(?:pro|1|2)")


def image_tokens(model: str, width: int, height: int, detail: str = "") -> int:
    """Tokens of an image of a known size; the default of the rule where a side is 0.

    Args:
        model: the model's name; its family decides the formula.
        width: in pixels.
        height: in pixels.
        detail: how finely it is to be looked at, in the words of the format without Gemini's
            prefix (``"low"``, ``"high"``, ``"original"``); one that is not known means nothing.
    """
    family = family_of(model)
    if family == "gemini":
        return _gemini_tokens(model, width, height, detail)
    if family.startswith("claude"):
        patches = _CLAUDE_3 if family == "claude-v3" else _CLAUDE_4_8
        return _patch_tokens(patches, width, height)
    rule = _openai_rule(plain_name(model), detail)
    if isinstance(rule, _Tiles):
        return _tile_tokens(rule, width, height)
    return _patch_tokens(rule, width, height)


def _openai_rule(name: str, detail: str) -> _Tiles | _Patches:
    """The rule of a model of OpenAI's, or of one that is unknown. The last row fits any name."""
    rules = next(
        rules for pattern, rules in _OPENAI if re.search(pattern, name)
    )
    return rules.get(detail, rules[""])


def _is_gemini_2(model: str) -> bool:
    """Whether a Gemini is of the second generation or older."""
    return _GEMINI_2.search(model.lower()) is not None


def _tile_tokens(rule: _Tiles, width: int, height: int) -> int:
    """Fit into 2,048 pixels, then the short side to 768, then tiles; 2 × 4 tiles unknown."""
    if not (width > 0 and height > 0):
        return rule.base + 8 * rule.tile
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = _cells(width * scale, 512) * _cells(height * scale, 512)
    return rule.base + min(tiles, 8) * rule.tile


def _patch_tokens(rule: _Patches, width: int, height: int) -> int:
    """Fit the longest edge, then patches, up to the most there may be."""
    if not (width > 0 and height > 0):
        return ceil((rule.unseen or rule.most) * rule.factor)
    scale = 1.0
    if rule.edge:
        scale = min(scale, rule.edge / max(width, height))
    patches = _cells(width * scale, rule.side) * _cells(
        height * scale, rule.side
    )
    patches = min(max(patches, 1), rule.most)
    return ceil(patches * rule.factor)


def _cells(length: float, side: int) -> int:
    """How many cells cover a length, in pixels; one that fits but for rounding has none more."""
    return ceil(length / side - 1e-9)


def _gemini_tokens(model: str, width: int, height: int, detail: str) -> int:
    """A fixed budget; up to Gemini 2 tiles of 768 pixels, if it is to be cut into any."""
    if not _is_gemini_2(model):
        return _GEMINI.get(detail, _GEMINI["high"])
    if detail in ("low", "medium"):
        return _GEMINI_2_LOW if detail == "low" else _GEMINI_TILE
    if not (width > 0 and height > 0):
        return 4 * _GEMINI_TILE
    if max(width, height) <= 384:
        return _GEMINI_TILE
    tiles = ceil(width / 768) * ceil(height / 768)
    return min(tiles, 32) * _GEMINI_TILE
