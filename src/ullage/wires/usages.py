"""What the usage of a reply says, read by one table for each wire (`provider-rules` §4.1).

A count that is missing is 0. Where one is there that cannot be a count (negative, no whole number,
over what JSON holds exactly, more from the cache than the prompt has), nothing of it is believed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ullage.core.values.usage import Modalities, Usage
from ullage.wires.base import at_path, get

_MOST_TOKENS = 1 << 53
"""What JSON numbers hold exactly, and more than anybody ever sent."""

_MEDIA = tuple(Modalities.__struct_fields__)
"""The kinds of media that are counted apart, as ``image_tokens``."""


class Counts(Struct, frozen=True, kw_only=True):
    """Where one wire's usage has its counts: paths as `at_path` takes them, ``""`` for none.

    Attributes:
        prompt: of the prompt, those from and for the cache included.
        beside_cache: the prompt's count leaves those out.
        read: of the prompt, read from cache.
        written: written to cache.
        long_written: of those, for the longer of two times.
        brought: what tools of the server's brought in, beside the prompt.
        output: of the reply, reasoning included.
        beside_reasoning: the output's count leaves it out.
        reasoning: of the reply, reasoning.
        input_media: what of the prompt was no text: an object with a field for each kind
            (``audio_tokens``), or a list (``{"modality": "AUDIO", "tokenCount": 250}``).
        brought_media: of what was brought in.
        read_media: of what was read from cache.
        output_media: of the output.
    """

    prompt: str
    output: str
    read: str
    reasoning: str
    beside_cache: bool = False
    beside_reasoning: bool = False
    written: str = ""
    long_written: str = ""
    brought: str = ""
    input_media: str = ""
    brought_media: str = ""
    read_media: str = ""
    output_media: str = ""


def openai_counts(prompt: str, output: str) -> Counts:
    """OpenAI's, which calls prompt and output so; Chat and Responses differ in that alone."""
    details = f"{prompt}_tokens_details"
    return Counts(
        prompt=f"{prompt}_tokens",
        read=f"{details}.cached_tokens",
        written=f"{details}.cache_write_tokens",
        long_written=f"{details}.cache_write_tokens_details.ttl_12h_tokens",
        output=f"{output}_tokens",
        reasoning=f"{output}_tokens_details.reasoning_tokens",
        input_media=details,
        read_media=f"{details}.cached_tokens_details",
        output_media=f"{output}_tokens_details",
    )


def read(usage: Any, counts: Counts) -> Usage | None:
    """What a usage object reports, by the table of its wire; None if it cannot be."""
    prompt = _count(usage, counts.prompt)
    tool_prompt = _count(usage, counts.brought)
    cache_read = _count(usage, counts.read)
    cache_write = _count(usage, counts.written)
    output = _count(usage, counts.output)
    if prompt is None or tool_prompt is None or output is None:
        return None
    if cache_read is None or cache_write is None:
        return None
    fresh = prompt
    if not counts.beside_cache:
        fresh -= cache_read + cache_write
    if fresh < 0:
        return None
    reasoning = _count(usage, counts.reasoning) or 0
    if counts.beside_reasoning:
        output += reasoning
    prompt_media = _media(usage, counts.input_media)
    tool_media = _media(usage, counts.brought_media)
    return Usage(
        fresh_tokens=fresh + tool_prompt,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        output_tokens=output,
        reasoning_tokens=reasoning,
        long_write_tokens=_count(usage, counts.long_written) or 0,
        input_media=prompt_media + tool_media,
        cache_read_media=_media(usage, counts.read_media),
        output_media=_media(usage, counts.output_media),
        prompt_tokens=prompt if tool_prompt else None,
    )


def _count(usage: Any, path: str) -> int | None:
    """The count at a path, 0 where nothing is; None if it cannot be one."""
    count = at_path(usage, path) if path else None
    if count is None:
        return 0
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    if 0 <= count <= _MOST_TOKENS:
        return count
    return None


def _media(usage: Any, path: str) -> Modalities:
    """The tokens of each kind of media that the details at a path report."""
    details = at_path(usage, path) if path else None
    if details is None:
        return Modalities()
    if not isinstance(details, (list, tuple)):
        counts = {kind: _count(details, kind) or 0 for kind in _MEDIA}
        return Modalities(**counts)
    total = Modalities()
    for detail in details:
        kind = _kind_of(detail)
        if kind in _MEDIA:
            total += Modalities(**{kind: _count(detail, "tokenCount") or 0})
    return total


def _kind_of(detail: Any) -> str:
    """The field of `Modalities` that an item of a list counts for."""
    modality = get(detail, "modality")
    name = getattr(modality, "value", modality)
    if isinstance(name, str):
        return f"{name.lower()}_tokens"
    return ""
