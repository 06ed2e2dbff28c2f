"""Which model counts how.

OpenAI's encodings are public up to GPT-5; for later models o200k_base is assumed and the
counter says so. Claude has had two vocabularies since version 3, told apart by the version
number; a Claude without one is taken for the newest, which counts more. Only OpenAI's models
need a vocabulary in memory: all others are estimated from their bytes, an unknown one as if it
were OpenAI's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from ullage.core.tokens.estimate import Counter, estimate
from ullage.core.tokens.exact import (
    Vocabulary,
    exact,
    is_installed,
    is_loaded,
    load,
    load_in_thread,
)
from ullage.core.values.model_names import plain_name

Family: TypeAlias = Literal[
    "openai", "claude-v3", "claude-v4.8", "gemini", "unknown"
]

_O200K = re.compile(
    r"gpt-?4o|gpt-?4\.[15]|gpt-?5|chatgpt-4o|gpt-oss|codex|^o[134](?:-|$)"
)
_CL100K = re.compile(r"gpt-?4|gpt-?3\.?5|text-embedding")
_OPENAI = re.compile(r"gpt|openai|computer-use")
_CLAUDE = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_SECOND_VOCABULARY = (4, 7)

_ESTIMATES: dict[Family, str] = {
    "claude-v3": "an estimate of Claude 3–4.6",
    "claude-v4.8": "an estimate of Claude 4.7 and later",
    "gemini": "an estimate of Gemini",
}


@lru_cache(maxsize=256)
def counter_for(model: str) -> Counter:
    """The best counter there is for a model."""
    family = family_of(model)
    if family in _ESTIMATES:
        return estimate(family, _ESTIMATES[family])
    if family == "unknown":
        return estimate("o200k_base", "an estimate for an unknown model")
    name = plain_name(model)
    is_older = _CL100K.search(name) and not _O200K.search(name)
    encoding = "cl100k_base" if is_older else "o200k_base"
    if not is_installed():
        return estimate(
            encoding, f"an estimate of {encoding}: toktok-rs is not installed"
        )
    if is_older or _O200K.search(name):
        return exact(encoding)
    return Vocabulary(
        name=f"{encoding} (assumed)", encoding=encoding, exact=False
    )


def family_of(model: str) -> Family:
    """Whose tokens a model's name speaks of."""
    if "claude" in model.lower():
        return _claude_family(model.lower())
    name = plain_name(model)
    if "gemini" in name or "gemma" in name:
        return "gemini"
    if _O200K.search(name) or _CL100K.search(name) or _OPENAI.search(name):
        return "openai"
    return "unknown"


def preload(model: str) -> None:
    """Starts loading the vocabulary ``model`` needs, if any, in a daemon thread, once a process.

    Safe to call from any thread and as often as one likes. A count that comes before the
    vocabulary is there waits for it.
    """
    counter = counter_for(model)
    if isinstance(counter, Vocabulary):
        load_in_thread(counter.encoding)


def is_ready(model: str) -> bool:
    """Whether counting for ``model`` waits for nothing."""
    counter = counter_for(model)
    return not isinstance(counter, Vocabulary) or is_loaded(counter.encoding)


def make_ready(model: str) -> None:
    """Loads the vocabulary ``model`` needs, if any, and returns when it is there."""
    counter = counter_for(model)
    if isinstance(counter, Vocabulary):
        load(counter.encoding)


def _claude_family(name: str) -> Family:
    """By version: below 4.7 the vocabulary of Claude 3, from there on the second."""
    match = _CLAUDE.search(name)
    if match is None:
        return "claude-v3" if "instant" in name else "claude-v4.8"
    version = (int(match[1]), int(match[2] or 0))
    return "claude-v3" if version < _SECOND_VOCABULARY else "claude-v4.8"
