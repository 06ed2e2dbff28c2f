"""What Gemini reports of a reply, or of one chunk of it (`provider-rules` §4.1, §4.5).

Cached tokens are inside the prompt's, thoughts beside the candidates'.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ullage.values.usage import Modalities, Usage
from ullage.wires.base import get
from ullage.wires.usages import KINDS, count

__all__ = ["of_reply"]


def of_reply(counts: Any) -> Usage:
    """What a ``usageMetadata`` reports.

    What tools of the server's brought in is beside both, and is fresh.
    """
    prompt, brought = (count(counts, f"{each}TokenCount") for each in ("prompt", "toolUsePrompt"))
    read, thought = count(counts, "cachedContentTokenCount"), count(counts, "thoughtsTokenCount")
    return Usage(
        fresh_tokens=max(prompt - read, 0) + brought,
        cache_read_tokens=read,
        output_tokens=count(counts, "candidatesTokenCount") + thought,
        reasoning_tokens=thought,
        input_media=_listed(get(counts, "promptTokensDetails"))
        + _listed(get(counts, "toolUsePromptTokensDetails")),
        cache_read_media=_listed(get(counts, "cacheTokensDetails")),
        output_media=_listed(get(counts, "candidatesTokensDetails")),
        prompt_tokens=prompt if brought else None,
    )


def _listed(details: Any) -> Modalities:
    """Modalities that are a list: ``{"modality": "AUDIO", "tokenCount": 250}``."""
    found = Modalities()
    for each in details if isinstance(details, Iterable) else ():
        modality = get(each, "modality")
        named = getattr(modality, "value", modality)
        kind = named.lower() if isinstance(named, str) else ""
        if kind in KINDS:
            found += Modalities(**{f"{kind}_tokens": count(each, "tokenCount")})
    return found
