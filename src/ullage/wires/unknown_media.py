"""What a block of a type that nobody here knows costs, where it plainly holds a medium.

A picture in a form of its own (a framework's, or one that is newer than our tables) is bytes or
base64 in some field. Counted as text it would be a hundred times what any provider charges for it.
It is counted as the largest ordinary picture, or as its text where that is less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST_TOKENS = 4_784
"""What the largest ordinary picture costs (`provider-rules` §6: Anthropic, 4,784 patches)."""

_LEAST_CHARS = 512
"""A shorter text may be base64 by chance."""
_MOST_DEPTH = 6
_CHARS_PER_TOKEN = 4
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
_SEALED = re.compile(r"encrypt|seal|signature|thought|reasoning")
"""Names of fields whose base64 is no medium: the model reads what is in it."""


def media_tokens_of(block: Any) -> int | None:
    """About the most that a block costs if it holds a medium; None if it plainly holds none.

    Args:
        block: a block of any wire or framework, as it came.
    """
    size = max(_payload_chars(block, _MOST_DEPTH), default=0)
    return min(MOST_TOKENS, size // _CHARS_PER_TOKEN) if size else None


def _payload_chars(value: Any, depth: int) -> Iterator[int]:
    """The length of each payload in a value, in characters of base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        yield len(value) * 4 // 3
    elif isinstance(value, str):
        if is_base64(value):
            yield len(value)
    elif isinstance(value, Mapping) and depth:
        for name, item in value.items():
            if not _SEALED.search(str(name).lower()):
                yield from _payload_chars(item, depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for item in value:
            yield from _payload_chars(item, depth - 1)


def is_base64(text: str) -> bool:
    """Whether a text is plainly the base64 of something: long, and of no other character."""
    if len(text) < _LEAST_CHARS:
        return False
    return bool(_DATA_URL.match(text)) or _BASE64.fullmatch(text) is not None
