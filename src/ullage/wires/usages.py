"""What the readers of usage have in common (`provider-rules` §4.1).

OpenAI and Gemini count cached tokens inside the prompt, Anthropic beside it; thoughts are inside
the output everywhere but at Gemini. A count that is missing, or cannot be one, is 0.
"""

from __future__ import annotations

from typing import Any

from ullage.values.usage import Modalities, Usage
from ullage.wires.base import field, get

__all__ = ["KINDS", "count", "with_the_cache"]

_MOST_TOKENS = 1 << 53
"""What JSON numbers hold exactly, and more than anybody ever sent."""

KINDS = ("image", "audio", "video", "document")
"""The kinds of media that are counted apart."""


def count(value: Any, name: str) -> int:
    """The tokens that an object counts under a camelCase name; 0 if there is no such count."""
    found = get(value, name)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 < found <= _MOST_TOKENS
    return found if is_count else 0


def with_the_cache(usage: Any, prompt: str, output: str) -> Usage:
    """OpenAI's usage: cached and written tokens are inside the prompt's.

    Args:
        usage: the object.
        prompt: how its fields call the prompt: ``"prompt"`` (Chat) or ``"input"`` (Responses).
        output: and the output: ``"completion"`` or ``"output"``.
    """
    details, said = (field(usage, f"{side}_tokens_details") for side in (prompt, output))
    read, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    return Usage(
        fresh_tokens=max(count(usage, f"{prompt}_tokens") - read - written, 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=count(usage, f"{output}_tokens"),
        reasoning_tokens=count(said, "reasoning_tokens"),
        long_write_tokens=count(field(details, "cache_write_tokens_details"), "ttl_12h_tokens"),
        input_media=_named(details),
        cache_read_media=_named(field(details, "cached_tokens_details")),
        output_media=_named(said),
    )


def _named(details: Any) -> Modalities:
    """Modalities that are fields of an object: ``audio_tokens``."""
    return Modalities(**{f"{kind}_tokens": count(details, f"{kind}_tokens") for kind in KINDS})
