"""What a block says of its own size: how fine a medium is, how long a video, how much is sealed."""

from __future__ import annotations

import re
from typing import Any

from ullage.wires.gemini.fields import get

__all__ = ["clip_of", "detail_of", "sealed_bytes"]

_PREFIX = "media_resolution_"
_SAYS_NOTHING = frozenset(("auto", "unspecified"))
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_MOST_FRAMES_A_SECOND = 24


def detail_of(said: Any) -> str:
    """How finely a medium is to be looked at, as `ullage.values.messages.Media` has it.

    Args:
        said: a word of OpenAI's or of Gemini's, or what Gemini wraps it in; of any other type it
            says nothing.
    """
    level = get(said, "level") if not isinstance(said, str) else said
    word = getattr(level, "value", level)
    if not isinstance(word, str):
        return ""
    word = word.lower().removeprefix(_PREFIX)
    return "" if word in _SAYS_NOTHING else word


def clip_of(video: Any) -> tuple[float, float]:
    """Seconds that Gemini's ``videoMetadata`` asks for, 0 for all, and frames of each."""
    if video is None:
        return 0.0, 1.0
    start, end = (_seconds(get(video, name)) for name in ("startOffset", "endOffset"))
    fps = get(video, "fps")
    frames = min(fps, _MOST_FRAMES_A_SECOND) if isinstance(fps, int | float) and fps > 0 else 1
    return max(end - start, 0.0), float(frames)


def sealed_bytes(sealed: Any, frame_bytes: int) -> int:
    """Bytes of what is sealed, by the length of its base64, without the frame around it."""
    return max(len(sealed) * 3 // 4 - frame_bytes, 0) if isinstance(sealed, str) else 0


def _seconds(said: Any) -> float:
    """A duration as protobuf writes it, ``"12.5s"``; 0 if it is none."""
    found = _SECONDS.fullmatch(said) if isinstance(said, str) else None
    return float(found[1]) if found else 0.0
