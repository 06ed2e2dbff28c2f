"""What one usage object reports, in the words of each API (`provider-rules` §4.1).

OpenAI and Gemini count cached tokens inside the prompt, Anthropic beside it; thoughts are inside
the output everywhere but at Gemini. A count that is missing, or cannot be one, is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ullage.values.usage import Modalities, Usage
from ullage.wires.base import field
from ullage.wires.gemini.fields import get

__all__ = ["of_anthropic", "of_gemini", "with_the_cache"]

_MOST_TOKENS = 1 << 53
"""What JSON numbers hold exactly, and more than anybody ever sent."""

_KINDS = ("image", "audio", "video", "document")


def with_the_cache(usage: Any, prompt: str, output: str) -> Usage:
    """OpenAI's: cached and written tokens are inside the prompt's.

    Args:
        usage: the object.
        prompt: how its fields call the prompt: ``"prompt"`` (Chat) or ``"input"`` (Responses).
        output: and the output: ``"completion"`` or ``"output"``.
    """
    details, said = (field(usage, f"{side}_tokens_details") for side in (prompt, output))
    read, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    return Usage(
        fresh_tokens=max(_count(usage, f"{prompt}_tokens") - read - written, 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=_count(usage, f"{output}_tokens"),
        reasoning_tokens=_count(said, "reasoning_tokens"),
        long_write_tokens=_count(field(details, "cache_write_tokens_details"), "ttl_12h_tokens"),
        input_media=_named(details),
        cache_read_media=_named(field(details, "cached_tokens_details")),
        output_media=_named(said),
    )


def of_anthropic(usage: Any) -> Usage:
    """Anthropic's: cached and written tokens are beside the input's.

    Where a server ran several iterations, the sums at the top are those of the replies in them.
    What a compaction or an advisor took is listed under ``iterations`` only, and is added. An
    advisor's tokens are another model's; nothing here says so to who prices them.
    """
    listed = field(usage, "iterations")
    iterations = listed if isinstance(listed, (list, tuple)) else ()
    beside = [each for each in iterations if field(each, "type") in _BESIDE_THE_SUMS]
    total = sum(map(_beside_the_cache, beside), _beside_the_cache(usage))
    if not iterations:
        return total
    first = iterations[0]
    is_of_prompt = field(first, "type") not in _BESIDE_THE_SUMS  # and not of what became of it
    sent = _beside_the_cache(first).input_tokens if is_of_prompt else 0
    return replace(total, prompt_tokens=sent)


_BESIDE_THE_SUMS = ("compaction", "advisor_message")


def _beside_the_cache(usage: Any) -> Usage:
    written = field(usage, "cache_creation")
    return Usage(
        fresh_tokens=_count(usage, "input_tokens"),
        cache_read_tokens=_count(usage, "cache_read_input_tokens"),
        cache_write_tokens=_count(usage, "cache_creation_input_tokens"),
        output_tokens=_count(usage, "output_tokens"),
        reasoning_tokens=_count(field(usage, "output_tokens_details"), "thinking_tokens"),
        long_write_tokens=_count(written, "ephemeral_1h_input_tokens"),
    )


def of_gemini(counts: Any) -> Usage:
    """Gemini's: cached tokens are inside the prompt's, thoughts beside the candidates'.

    What tools of the server's brought in is beside both, and is fresh.
    """
    prompt, brought = (_count(counts, f"{each}TokenCount") for each in ("prompt", "toolUsePrompt"))
    read, thought = _count(counts, "cachedContentTokenCount"), _count(counts, "thoughtsTokenCount")
    return Usage(
        fresh_tokens=max(prompt - read, 0) + brought,
        cache_read_tokens=read,
        output_tokens=_count(counts, "candidatesTokenCount") + thought,
        reasoning_tokens=thought,
        input_media=_listed(get(counts, "promptTokensDetails"))
        + _listed(get(counts, "toolUsePromptTokensDetails")),
        cache_read_media=_listed(get(counts, "cacheTokensDetails")),
        output_media=_listed(get(counts, "candidatesTokensDetails")),
        prompt_tokens=prompt if brought else None,
    )


def _count(value: Any, name: str) -> int:
    found = get(value, name)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 < found <= _MOST_TOKENS
    return found if is_count else 0


def _named(details: Any) -> Modalities:
    """Modalities that are fields of an object: ``audio_tokens``."""
    return Modalities(**{f"{kind}_tokens": _count(details, f"{kind}_tokens") for kind in _KINDS})


def _listed(details: Any) -> Modalities:
    """Modalities that are a list: ``{"modality": "AUDIO", "tokenCount": 250}``."""
    found = Modalities()
    for each in details if isinstance(details, Iterable) else ():
        modality = get(each, "modality")
        named = getattr(modality, "value", modality)
        kind = named.lower() if isinstance(named, str) else ""
        if kind in _KINDS:
            found += Modalities(**{f"{kind}_tokens": _count(each, "tokenCount")})
    return found
