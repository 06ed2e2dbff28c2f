"""What makes a coding agent, or any program, talk to the proxy: variables and options.

A variable that is set already names a gateway of the user's: it becomes an upstream of its own, so
that the command still ends where it would have ended.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from ullage.proxy.config import UPSTREAMS

VARIABLES = {
    "ANTHROPIC_BASE_URL": "anthropic",  # Claude Code, Anthropic's SDKs
    "ANTHROPIC_API_BASE": "anthropic",  # LiteLLM, aider
    "ANTHROPIC_HOST": "anthropic",  # goose
    "OPENAI_BASE_URL": "openai/v1",  # OpenAI's SDKs, Qwen Code
    "OPENAI_API_BASE": "openai/v1",  # LiteLLM, aider
    "OPENAI_HOST": "openai",  # goose
    "GOOGLE_GEMINI_BASE_URL": "gemini",  # Gemini CLI, Google's SDKs
}
"""Where programs look for a provider's address, and the path they find it at with us."""

FEATURES: Mapping[str, Mapping[str, str]] = {
    "https://api.anthropic.com": {
        "ENABLE_TOOL_SEARCH": "true",
        "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1",
    },
}
"""What a client switches off where its base URL is not the vendor's own, and how it is told to keep
it, by the vendor's address. Claude Code: the search for tools, without which every definition is in
every request, and the window of 1M tokens. Set only where the requests end at that address, and
never over a value of the user's."""

AGENTS = ("claude", "codex", "gemini", "opencode", "aider", "goose", "qwen")
"""Coding agents that need no more than `setting_for` and `arguments_for`."""

MARK = "ULLAGE_PROXY"
"""Set for a command that runs behind a proxy of ours."""

_OPENCODE = "OPENCODE_CONFIG_CONTENT"
_OPENCODE_PATHS = {"anthropic": "anthropic/v1", "openai": "openai/v1", "google": "gemini/v1beta"}
_NOT_PROXIED = "127.0.0.1,localhost"


class Setting(Struct, frozen=True):
    """What a command needs.

    Attributes:
        upstreams: those that are named by the environment, for the proxy's configuration.
        variables: what is to be set for the command, still without the proxy's address: a path of
            the proxy for each.
        features: what is to be set besides, so that the command does all that it does without us.
    """

    upstreams: dict[str, str]
    variables: dict[str, str]
    features: dict[str, str] = {}

    def variables_at(self, url: str, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables for a proxy at this address.

        Args:
            url: of the proxy, without a path.
            environment: the command's own, for what is only added to.
        """
        made = {name: f"{url}/{path}" for name, path in self.variables.items()}
        made |= {name: value for name, value in self.features.items() if name not in environment}
        made[_OPENCODE] = _opencode(environment.get(_OPENCODE), url)
        for name in ("NO_PROXY", "no_proxy"):
            before = environment.get(name)
            made[name] = f"{before},{_NOT_PROXIED}" if before else _NOT_PROXIED
        return {**made, MARK: url}


def setting_for(
    environment: Mapping[str, str],
    configured: Collection[str] = (),
    addresses: Mapping[str, str] = UPSTREAMS,
) -> Setting:
    """What a command needs, by the environment it would have had.

    Args:
        environment: the command's.
        configured: names of upstreams that were set on purpose; they go before the environment.
        addresses: the upstreams of the proxy by name.
    """
    upstreams: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, path in VARIABLES.items():
        there = environment.get(name)
        variables[name] = path
        if there and path.partition("/")[0] not in configured:
            own = name.lower().replace("_", "-")
            upstreams[own], variables[name] = there, own
    behind = {**addresses, **upstreams}
    path = variables["ANTHROPIC_BASE_URL"]
    features = FEATURES.get(_vendor_s(behind.get(path, "")), {})
    return Setting(upstreams, variables, dict(features))


def _vendor_s(address: str) -> str:
    """An address as `FEATURES` has it: scheme and host alone, if there is nothing else in it."""
    return address.rstrip("/").lower().removesuffix(":443")


def arguments_for(command: Sequence[str], setting: Setting, url: str) -> list[str]:
    """A command with the options it needs: Codex reads its address from its settings alone.

    Other users of the machine can read them.
    """
    if not command or PurePath(command[0]).stem != "codex":
        return list(command)
    base = f"{url}/{setting.variables['OPENAI_BASE_URL']}"
    return [command[0], "-c", f'openai_base_url="{base}"', *command[1:]]


def _opencode(there: str | None, url: str) -> str:
    """Opencode's settings, with our addresses where none was set."""
    settings = _object(there)
    providers = settings["provider"] = dict(_object(settings.get("provider")))
    for name, path in _OPENCODE_PATHS.items():
        provider = providers[name] = dict(_object(providers.get(name)))
        provider["options"] = {"baseURL": f"{url}/{path}", **_object(provider.get("options"))}
    return json.dumps(settings)


def _object(value: Any) -> dict[str, Any]:
    """A JSON object, given as one or as text; an empty one if it is anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
