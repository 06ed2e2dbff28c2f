"""What an adapter says where its framework is not installed, or is older than it works with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from ullage.core.installing import install_remedy

OLDEST: Mapping[str, tuple[str, str]] = {
    "adk": ("google-adk", "2.13"),
    "claude-agent-sdk": ("claude-agent-sdk", "0.2.170"),
    "hermes": ("hermes-agent", "0.19"),
    "inspect": ("inspect-ai", "0.3.278"),
    "langchain": ("langchain", "1.3.14"),
    "litellm": ("litellm", "1.103"),
    "mcp-tools": ("mcp", "2"),
    "openai-agents": ("openai-agents", "0.22"),
    "opentelemetry": ("opentelemetry-api", "1.30"),
    "pydantic-ai": ("pydantic-ai-slim", "2.64"),
    "strands": ("strands-agents", "1.62"),
}
"""Of each extra, its framework and the oldest release that works; as in pyproject.toml."""

_PROXY = "give its model `ullage proxy` as the base URL"
WITHOUT_ADAPTER: Mapping[str, str] = {
    "adk": _PROXY,
    "claude-agent-sdk": _PROXY,
    "hermes": _PROXY,
    "inspect": _PROXY,
    "langchain": _PROXY,
    "litellm": _PROXY,
    "openai-agents": "call set_default_openai_client(ullage.wrap(AsyncOpenAI()))",
    "pydantic-ai": "give the model "
    "AnthropicProvider(anthropic_client=ullage.wrap(AsyncAnthropic())), or the same of OpenAI",
    "strands": _PROXY,
}
"""How ullage is used with an older release of a framework, where there is a way."""

_RELEASE = re.compile(r"\d+(?:\.\d+)*")


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the imports of a framework: one that is missing or too old is told with the remedy.

    Args:
        extra: of ours, which installs it.

    Raises:
        ModuleNotFoundError: it is not installed.
        ImportError: what is installed is older than the adapter works with, or lacks what the
            adapter imports.
    """
    framework, oldest = OLDEST[extra]
    installed = _installed(framework)
    if installed and _release(installed) < _release(oldest):
        raise _too_old(extra, installed)
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "ullage":
            raise
        message = f"{missing.name} is not installed: {install_remedy(extra)}"
        raise ModuleNotFoundError(message, name=missing.name) from missing


def _installed(framework: str) -> str:
    """The version of a distribution, ``""`` where nobody knows it."""
    try:
        return version(framework) or ""
    except PackageNotFoundError:
        return ""


def _release(version_text: str) -> tuple[int, ...]:
    """The numbers of a version, without what marks a release before or after it."""
    match = _RELEASE.match(version_text.rpartition("!")[2].lstrip("v"))
    numbers = [int(number) for number in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _too_old(extra: str, installed: str) -> ImportError:
    framework, oldest = OLDEST[extra]
    remedy = f"pip install --upgrade '{framework}>={oldest}'"
    other_way = WITHOUT_ADAPTER.get(extra)
    if other_way:
        # an application that is built on the older release may not want another
        remedy += f". To keep {installed}, {other_way}"
    return ImportError(
        f"{framework} {installed} is installed, and the adapter needs {oldest} or newer: {remedy}",
        name=framework,
    )
