"""Which model counts how.

OpenAI's encodings are public up to GPT-5; for later models o200k_base is assumed and the
counter says so. Claude has had two vocabularies since version 3, told apart by the version
number; a Claude without one is taken for the newest, which counts more. Names arrive with
prefixes of gateways and clouds (``bedrock/us.anthropic.claude-…``), so they are searched, not
matched from the start.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from ullage.tokens.estimate import CLAUDE_3, CLAUDE_4_8, GEMINI, Estimate
from ullage.tokens.exact import Counter, Vocabulary, exact, load_in_thread

__all__ = ["Family", "counter_for", "family_of", "preload"]

Family: TypeAlias = Literal["openai", "claude-v3", "claude-v4.8", "gemini", "unknown"]

_O200K = re.compile(r"gpt-?4o|gpt-?4\.[15]|gpt-?5|chatgpt-4o|gpt-oss|codex|(?:^|[/.])o[134](?:-|$)")
_CL100K = re.compile(r"gpt-?4|gpt-?3\.?5|text-embedding")
_OPENAI = re.compile(r"gpt|openai|computer-use")
_CLAUDE = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_SECOND_VOCABULARY = (4, 7)


@lru_cache(maxsize=256)
def counter_for(model: str) -> Counter:
    """The best counter there is for a model; for an unknown one an estimate by o200k_base."""
    family = family_of(model)
    if family == "claude-v3":
        return CLAUDE_3
    if family == "claude-v4.8":
        return CLAUDE_4_8
    if family == "gemini":
        return GEMINI
    return _openai_counter(model.lower(), family)


def family_of(model: str) -> Family:
    """Whose tokens a model's name speaks of."""
    name = model.lower()
    if "claude" in name:
        return _claude_family(name)
    if "gemini" in name or "gemma" in name:
        return "gemini"
    if _O200K.search(name) or _CL100K.search(name) or _OPENAI.search(name):
        return "openai"
    return "unknown"


def preload(model: str) -> None:
    """Starts loading the vocabulary ``model`` needs, in a daemon thread, once per process.

    Safe to call from any thread and as often as one likes. A count that comes before the
    vocabulary is there waits for it.
    """
    counter = counter_for(model)
    encoding = counter.encoding if isinstance(counter, Vocabulary | Estimate) else "o200k_base"
    load_in_thread(encoding)


def _openai_counter(name: str, family: Family) -> Counter:
    """Exact where the encoding is published, o200k_base with a name that says so elsewhere."""
    if _O200K.search(name):
        return exact("o200k_base")
    if _CL100K.search(name):
        return exact("cl100k_base")
    reason = "assumed" if family == "openai" else "estimate for an unknown model"
    return Vocabulary(name=f"o200k_base ({reason})", encoding="o200k_base", exact=False)


def _claude_family(name: str) -> Family:
    """By version: below 4.7 the vocabulary of Claude 3, from there on the second."""
    found = _CLAUDE.search(name)
    if found is None:
        return "claude-v3" if "instant" in name else "claude-v4.8"
    version = (int(found[1]), int(found[2] or 0))
    return "claude-v3" if version < _SECOND_VOCABULARY else "claude-v4.8"
