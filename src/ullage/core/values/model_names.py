"""What a model's name says once the prefixes of frameworks, gateways and clouds are off it."""

from __future__ import annotations

import re
from functools import lru_cache

_FRAMEWORK = re.compile(
    r"^(?:gateway/)?(?:openai|anthropic|google|gla|gemini|vertex|vertexai|bedrock|azure|aws|"
    r"openrouter|litellm|gateway|groq|mistral|mistralai|cohere|deepseek|xai|grok|together|"
    r"fireworks|ollama|huggingface|github|copilot|cerebras|moonshotai|heroku|vercel|nebius)"
    r"(?:[-_](?:chat|responses|gla|vertex|genai|vertexai|ai|openai|anthropic|converse))*:"
)
_CLOUD = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|meta|amazon|mistral)\."
)
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")
_SUFFIX = re.compile(
    r"(?:-v\d+(?::\d+)?|:(?:beta|thinking|online|nitro|floor|free|extended|exacto|latest)"
    r"|\[1m\]|-latest)$"
)
_REVISION = re.compile(
    r"^((?:gpt|gemini|chatgpt)-.*\d.*?)[-@](?:\d{3,4}|default)$"
)
"""Three digits are Google's (``-001``), four are OpenAI's (``-0613``), by month and day."""


@lru_cache(maxsize=1_024)
def plain_name(model: str) -> str:
    """The maker's name of a model: without prefixes, version marks and date, in small letters.

    ``openai:gpt-4.1``, ``google-gla:gemini-2.5-pro`` (a framework's), ``openrouter/openai/gpt-5``
    (a gateway's), ``gpt-4-0613`` and ``gemini-2.0-flash-001`` (a revision's) and
    ``bedrock:us.anthropic.claude-opus-4-5-20251101-v1:0`` (a cloud's) are seen through. A tag such
    as that of ``qwen3:8b`` stays. A Claude's version has dashes for dots.
    """
    name = _DATE.sub("", _SUFFIX.sub("", dated_name(model)))
    revision = _REVISION.match(name)
    return name if revision is None else revision[1]


@lru_cache(maxsize=1_024)
def dated_name(model: str) -> str:
    """A model's name without what stands before it, its version marks and date still on.

    ``openrouter/openai/gpt-3.5-turbo-0613`` is ``gpt-3.5-turbo-0613``.
    """
    name = model.strip().lower()
    name = _FRAMEWORK.sub("", name).rpartition("/")[2]
    name = _CLOUD.sub("", _FRAMEWORK.sub("", name))
    return name.replace(".", "-") if name.startswith("claude") else name
