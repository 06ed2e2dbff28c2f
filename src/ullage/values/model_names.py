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
_CLOUD = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|meta|amazon|mistral)\.")
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")
_SUFFIX = re.compile(r"(?:-v\d+(?::\d+)?|:(?:beta|thinking|online|nitro|floor)|\[1m\]|-latest)$")


@lru_cache(maxsize=1_024)
def plain_name(model: str) -> str:
    """The maker's name of a model: without prefixes, version marks and date, in small letters.

    ``openai:gpt-4.1``, ``google-gla:gemini-2.5-pro`` (a framework's), ``openrouter/openai/gpt-5``
    (a gateway's) and ``bedrock:us.anthropic.claude-opus-4-5-20251101-v1:0`` (a cloud's) are seen
    through. A tag such as that of ``qwen3:8b`` stays. A Claude's version has dashes for dots.
    """
    name = model.strip().lower()
    name = _FRAMEWORK.sub("", name).rpartition("/")[2]
    name = _CLOUD.sub("", _FRAMEWORK.sub("", name))
    name = _DATE.sub("", _SUFFIX.sub("", name))
    return name.replace(".", "-") if name.startswith("claude") else name
