"""What a picture, a document, a sound or a video costs: by its size, never by its base64.

Sizes come from the caller, or from the bytes (`ullage.tokens.payload`); where they say
nothing (a URL, a file id, an unknown type) a stated default stands in: of pictures what the
largest ordinary one costs, 10 pages, a minute of sound, five minutes of video.
"""

from __future__ import annotations

from math import ceil

from ullage.tokens.images import image_tokens, is_gemini_2
from ullage.tokens.models import family_of
from ullage.tokens.payload import (
    image_size,
    is_known,
    pages,
    payload_bytes,
    sound_seconds,
    video_seconds,
)
from ullage.values.messages import Media

__all__ = ["media_tokens"]

_TEXT_TOKENS_A_PAGE = 2_250
_LETTER_PX = (816, 1056)
_UNKNOWN_SOUND_S, _UNKNOWN_VIDEO_S = 60, 300
_MOST_VIDEO_S = 12 * 3600
_VIDEO_BYTES_A_SECOND = 62_500
"""Of a video that does not say how long it is: half a megabit a second, as of a screen."""
_SOUND_TOKENS_A_SECOND, _GEMINI_SOUND_TOKENS_A_SECOND = 10, 32
_STAMP_TOKENS_A_SECOND = 10
_GEMINI_PAGE = {"low": 280, "high": 1120, "ultra_high": 1120}
_GEMINI_FRAME = {"high": 280, "ultra_high": 280}
_GEMINI_PAGE_TOKENS, _GEMINI_FRAME_TOKENS = 560, 70
_GEMINI_2_TOKENS, _GEMINI_2_LOW_TOKENS = 258, 66


def media_tokens(model: str, medium: Media, detail: str = "") -> int:
    """Tokens of one image, document, sound or video in a request."""
    detail = medium.detail or detail
    if medium.mime.startswith("video/"):
        return _video_tokens(model, medium, detail)
    if medium.kind == "audio":
        return _sound_tokens(model, medium.data)
    if medium.kind == "document" and not medium.mime.startswith("image/"):
        return _document_tokens(model, medium, detail)
    width, height = medium.width, medium.height
    if width <= 0 or height <= 0:
        width, height = image_size(medium.data)
    return image_tokens(model, width, height, detail)


def _document_tokens(model: str, medium: Media, detail: str) -> int:
    """Text by its bytes, everything else by pages: what is written on one and its picture."""
    if medium.mime.startswith("text/"):
        return payload_bytes(medium.data) // 3 + 1
    count, family = pages(medium.data), family_of(model)
    if family == "gemini":
        if is_gemini_2(model):
            return count * _gemini_2_tokens(detail)
        return count * _GEMINI_PAGE.get(detail, _GEMINI_PAGE_TOKENS)
    is_claude = family.startswith("claude")
    picture = 1568 if is_claude else image_tokens(model, *_LETTER_PX, detail)
    return count * (_TEXT_TOKENS_A_PAGE + picture)


def _sound_tokens(model: str, data: str) -> int:
    """By length: 32 tokens a second at Gemini, 10 elsewhere; a minute if unknown."""
    seconds = ceil(sound_seconds(data)) or _UNKNOWN_SOUND_S
    is_gemini = family_of(model) == "gemini"
    return seconds * (_GEMINI_SOUND_TOKENS_A_SECOND if is_gemini else _SOUND_TOKENS_A_SECOND)


def _video_tokens(model: str, medium: Media, detail: str) -> int:
    """By length, by Gemini's formula, as no other vendor takes any: its frames and its sound.

    A frame a second, unless the request says otherwise, and beside it the time as text.
    """
    frame = _GEMINI_FRAME.get(detail, _GEMINI_FRAME_TOKENS)
    if family_of(model) != "gemini" or is_gemini_2(model):
        frame = _gemini_2_tokens(detail)
    sound = _GEMINI_SOUND_TOKENS_A_SECOND + _STAMP_TOKENS_A_SECOND
    return ceil(_video_seconds(medium) * (frame * medium.frames_per_s + sound))


def _video_seconds(medium: Media) -> float:
    """As much as is asked for of what there is; by its bytes, or five minutes, if unknown."""
    there = video_seconds(medium.data)
    if not there and medium.clip_s:
        return min(medium.clip_s, _MOST_VIDEO_S)
    if not there and is_known(medium.data):
        there = payload_bytes(medium.data) / _VIDEO_BYTES_A_SECOND
    there = min(there or _UNKNOWN_VIDEO_S, _MOST_VIDEO_S)
    return min(there, medium.clip_s) if medium.clip_s else there


def _gemini_2_tokens(detail: str) -> int:
    return _GEMINI_2_LOW_TOKENS if detail == "low" else _GEMINI_2_TOKENS
