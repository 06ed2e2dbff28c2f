"""What a block costs that holds a medium in a form that nobody here knows.

A picture in a form of its own (a framework's, a server tool's, or one that is newer than our
tables) is bytes or base64 in some field. Counted as text it would be a hundred times what any
provider charges for it. It counts as the largest ordinary picture, a PDF by its pages, and either
as its text where that is less.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from ullage.core.tokens.media import media_tokens
from ullage.core.values.messages import Media

MOST_TOKENS = 4_784
"""What the largest ordinary picture costs (`provider-rules` §6: Anthropic, 4,784 patches)."""

_LEAST_CHARS = 512
"""A shorter text may be base64 by chance."""
_MOST_DEPTH = 6
_CHARS_PER_TOKEN = 4
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_-]+={0,2}"
    r"|(?:[A-Za-z0-9+/]{60,80}\r?\n)+[A-Za-z0-9+/]*={0,2}\s*"  # in lines, as MIME has it
)
_DATA_URL = re.compile(r"data:[^,\s]{0,200};base64,")
_PDF = "JVBERi0"
"""How the base64 of a PDF begins."""
_SEALED = re.compile(r"encrypt|seal|signature|thought|reasoning")
"""Names of fields whose base64 is no medium: the model reads what is in it."""


def media_tokens_of(block: Any) -> int | None:
    """About the most that a block costs if it holds media; None if it plainly holds none.

    Args:
        block: a block of any wire or framework, as it came.
    """
    tokens = 0
    has_media = False
    for text, is_payload in _texts(block, _MOST_DEPTH):
        text_tokens = len(text) // _CHARS_PER_TOKEN
        if is_payload:
            has_media = True
            text_tokens = min(_most(text), text_tokens)
        tokens += text_tokens
    if has_media:
        return tokens
    return None


def _most(payload: str) -> int:
    """The most that a payload costs, whatever its size."""
    data = payload.partition(",")[2] or payload
    if data.startswith(_PDF):
        return media_tokens("", Media("document", "application/pdf", data, 0))
    return MOST_TOKENS


def _texts(value: Any, depth: int) -> Iterator[tuple[str, bool]]:
    """Each text in a value, and whether it is the payload of a medium."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        yield b64encode(value).decode(), True
    elif isinstance(value, str):
        yield value, is_base64(value)
    elif isinstance(value, Mapping) and depth:
        for name, item in value.items():
            if not _SEALED.search(str(name).lower()):
                yield from _texts(item, depth - 1)
            elif isinstance(item, str):
                yield item, False
    elif isinstance(value, (list, tuple)) and depth:
        for item in value:
            yield from _texts(item, depth - 1)


def is_base64(text: str) -> bool:
    """Whether a text is plainly the base64 of something: long, and of no other character."""
    if len(text) < _LEAST_CHARS:
        return False
    return bool(_DATA_URL.match(text)) or _BASE64.fullmatch(text) is not None
