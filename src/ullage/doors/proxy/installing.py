"""Point a coding agent at a proxy that keeps running, and take it away again.

What the file said before is kept beside it: an empty backup is that of a file that was not there.
`uninstall` gives the very bytes back if nothing else was changed in between. Otherwise it puts back
what it had replaced, and leaves what the user changed since.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.doors.files.changing import (
    Change,
    backup_of,
    candidates,
    text_of,
)
from ullage.doors.proxy.agents import (
    MARK,
    features_at,
    lasting_path,
    leads_to_proxy,
)
from ullage.doors.proxy.config import UPSTREAMS
from ullage.doors.proxy.settings_files import (
    AGENT_FILES,
    AddressSetting,
    AgentFile,
    SettingPath,
    said,
    value_at,
    with_setting,
)

_SUFFIX = ".before-ullage-proxy"
_GEMINI_KEYS = ("gemini-api-key", "gateway")
"""The ways to sign in with which Gemini CLI takes a base URL."""


class PointedClient(Struct, frozen=True):
    """A client whose settings lead to a proxy.

    Attributes:
        name: the client's.
        place: host and port of the proxy.
        gateways: base URLs of the upstreams besides the vendors' that the proxy has to know for
            it, by name; "" where it is not known.
    """

    name: str
    place: str
    gateways: Mapping[str, str]


def file_of(
    agent: AgentFile, environment: Mapping[str, str] = os.environ
) -> Path:
    """The agent's file; where it would be made, if there is none.

    Args:
        agent: the agent.
        environment: a variable of it may name the folder.
    """
    paths = candidates(agent.files)
    folder = environment.get(agent.folder_variable)
    if folder:
        paths = [Path(folder) / path.name for path in paths]
    return next((path for path in paths if path.is_file()), paths[-1])


def install(
    agent: AgentFile,
    path: Path,
    url: str,
    environment: Mapping[str, str] = os.environ,
) -> Change | None:
    """What points an agent at a proxy; None if it does already.

    Args:
        agent: the agent.
        path: its file.
        url: of the proxy, without a path.
        environment: of the user's shell.

    Raises:
        ConfigError: the file cannot be read, or the agent would not go by what it says.
    """
    text, original = _texts(agent, path)
    document = said(text or agent.begins, agent)
    before = said(original or agent.begins, agent)
    _check(agent, document, environment)
    new_text = text or agent.begins
    upstreams = dict[str, str]()
    # a setting is added at the head of its object, so the last comes first
    for address in reversed(agent.addresses):
        named = _named(agent, address, before, environment)
        kept = _gateway_path(address, document)
        if kept and not named:
            target = kept
        else:
            target = lasting_path(
                address.variable, address.path, named, upstreams
            )
        new_text = with_setting(
            new_text, agent, address.setting, f"{url}/{target}"
        )
    for setting, value in _features(agent, document, before, environment):
        if value_at(document, setting) is None:
            new_text = with_setting(new_text, agent, setting, value)
    if new_text == text:
        return None
    return Change(
        agent.title,
        path,
        text,
        new_text,
        keeps_backup=not backup_of(path, _SUFFIX).is_file(),
        suffix=_SUFFIX,
    )


def uninstall(agent: AgentFile, path: Path) -> Change | None:
    """What takes the proxy out of an agent's settings; None if it is not in them.

    Args:
        agent: the agent.
        path: its file.

    Raises:
        ConfigError: the file cannot be read, or not be changed safely.
    """
    text, original = _texts(agent, path)
    document = said(text or agent.begins, agent)
    before = said(original or agent.begins, agent)
    addresses = _pointed(agent, document)
    if text is None or not addresses:
        return None
    new_text = text
    for address in addresses:
        value = value_at(before, address.setting)
        is_original = isinstance(value, str)
        if not is_original or _leads_here(value, address):
            value = None
        new_text = with_setting(
            new_text, agent, address.setting, value, before
        )
    for setting, value in _features(agent, {}, before, {}):
        if value_at(document, setting) == value:
            new_text = with_setting(new_text, agent, setting, None, before)
    has_backup = backup_of(path, _SUFFIX).is_file()
    result: str | None = new_text
    if has_backup and said(new_text, agent) == before:
        result = original or None
    elif not has_backup and said(new_text, agent) == {}:
        result = None
    return Change(agent.title, path, text, result, suffix=_SUFFIX)


def gateways_of(agent: AgentFile, path: Path) -> dict[str, str]:
    """The upstreams besides the vendors' that a proxy needs for an agent, by name.

    Returns:
        Their base URLs; "" where neither the file nor this shell tells it.

    Raises:
        ConfigError: the file cannot be read.
    """
    text, original = _texts(agent, path)
    before = said(original or agent.begins, agent)
    document = said(text or agent.begins, agent)
    gateways: dict[str, str] = {}
    for address in agent.addresses:
        # what the file leads to counts; this shell may name another gateway, or none
        name = _gateway_path(address, document).partition("/")[0]
        if not name:
            continue
        named = _named(agent, address, before, os.environ)
        upstreams: dict[str, str] = {}
        lasting_path(address.variable, address.path, named, upstreams)
        gateways[name] = upstreams.get(name, "")
    return gateways


def pointed_clients() -> Iterator[PointedClient]:
    """The clients on this machine whose settings lead to a proxy."""
    for agent in AGENT_FILES.values():
        path = file_of(agent)
        if not path.is_file():
            continue
        try:
            document = said(text_of(agent.title, path), agent)
            gateways = gateways_of(agent, path)
        except ConfigError:
            continue
        urls = [
            urlsplit(value_at(document, address.setting))
            for address in _pointed(agent, document)
        ]
        if urls:
            yield PointedClient(agent.name, urls[0].netloc, gateways)


# ── what stands in a file ────────────────────────────────────────────────────────────────


def _texts(agent: AgentFile, path: Path) -> tuple[str | None, str]:
    """A file as it is (None: there is none), and as it was without us."""
    text = text_of(agent.title, path) if path.is_file() else None
    backup = backup_of(path, _SUFFIX)
    if backup.is_file():
        return text, text_of(agent.title, backup)
    return text, text or ""


def _named(
    agent: AgentFile,
    address: AddressSetting,
    before: Mapping[str, Any],
    environment: Mapping[str, str],
) -> str:
    """The address that a client went by before; "" for the vendor's own."""
    value = value_at(before, address.setting)
    if isinstance(value, str) and value:
        return "" if _leads_here(value, address) else value
    if not agent.is_first:
        return ""
    variable = address.variable
    if agent.name == "opencode":
        provider = address.setting[1].upper()
        variable = f"{provider}_BASE_URL"
    return environment.get(variable, "")


def _pointed(
    agent: AgentFile, document: Mapping[str, Any]
) -> list[AddressSetting]:
    """The addresses in a file that lead to a proxy on this machine."""
    return [
        address
        for address in agent.addresses
        if _leads_here(value_at(document, address.setting), address)
    ]


def _leads_here(value: object, address: AddressSetting) -> bool:
    return leads_to_proxy(value, address.variable, address.path)


def _gateway_path(address: AddressSetting, document: Mapping[str, Any]) -> str:
    """The path of the gateway that a file leads to by way of the proxy; "" if it leads to none.

    The shell in which it was installed may have named the gateway, and this one not.
    """
    value = value_at(document, address.setting)
    if not _leads_here(value, address):
        return ""
    path = urlsplit(str(value)).path.strip("/")
    return "" if path == address.path else path


def _features(
    agent: AgentFile,
    document: Mapping[str, Any],
    before: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Iterator[tuple[SettingPath, str]]:
    """What Claude Code needs besides, to keep what it has at the vendor's own address."""
    if agent.name != "claude":
        return
    (address,) = agent.addresses
    named = _named(agent, address, before, environment)
    if not named and _gateway_path(address, document):
        return
    features = features_at(named or UPSTREAMS["anthropic"])
    for name, value in features.items():
        is_set = value_at(before, ("env", name)) is not None
        if not is_set and name not in environment:
            yield ("env", name), value


# ── what an agent would not go by ────────────────────────────────────────────────────────


def _check(
    agent: AgentFile,
    document: Mapping[str, Any],
    environment: Mapping[str, str],
) -> None:
    """Refuse where the setting would not decide where requests go."""
    if MARK in environment:
        raise ConfigError(
            agent.title,
            "this shell runs behind `ullage run`, whose addresses end with it",
            "Run this in another shell.",
        )
    if agent.name == "gemini":
        _check_gemini(agent)
    provider = document.get("model_provider", "openai")
    if agent.name == "codex" and provider != "openai":
        raise ConfigError(
            agent.title,
            "its model_provider is not openai, and has an address of its own",
            "Set base_url of that provider by hand: docs/proxy.md.",
        )
    if agent.is_first:
        return
    for address in agent.addresses:
        if environment.get(address.variable):
            raise ConfigError(
                agent.title,
                f"{address.variable} is set in this shell, and goes before the file",
                "Unset it, or use `ullage run`.",
            )


def _check_gemini(agent: AgentFile) -> None:
    """Gemini CLI takes a base URL only where its settings say that it signs in with a key."""
    settings = Path.home() / ".gemini" / "settings.json"
    chosen = None
    if settings.is_file():
        claude = AGENT_FILES["claude"]  # another file in the same language
        document = said(text_of(agent.title, settings), claude)
        chosen = value_at(document, ("security", "auth", "selectedType"))
    if chosen is None:
        raise ConfigError(
            agent.title,
            "it takes a base URL only once it is told how to sign in",
            "Start gemini, choose the API key with /auth, and run this again.",
        )
    if chosen not in _GEMINI_KEYS:
        raise ConfigError(
            agent.title,
            "it is signed in with an account, whose requests no base URL changes",
            "Choose an API key with /auth, and run this again.",
        )
