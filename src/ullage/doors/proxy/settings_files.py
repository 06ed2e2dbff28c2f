"""The settings file of each coding agent that can be pointed at a proxy for good.

    client     file                                 setting
    claude     ~/.claude/settings.json              env.ANTHROPIC_BASE_URL
    codex      ~/.codex/config.toml                 openai_base_url
    gemini     ~/.gemini/.env                       GOOGLE_GEMINI_BASE_URL
    goose      ~/.config/goose/config.yaml          ANTHROPIC_HOST, OPENAI_HOST, GOOGLE_HOST
    opencode   ~/.config/opencode/opencode.json     provider.NAME.options.baseURL

A text is changed at one setting, and every other character of it stays. What a change comes to is
read back: where anything else would be said by the file than before, there is no change.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.doors.files.jsonc import (
    NotJson,
    scanned,
    with_value,
    without_value,
)
from ullage.doors.proxy.own_settings import OPENCODE_PROVIDERS

SettingPath: TypeAlias = tuple[str, ...]
"""The names that lead to a setting in a file."""

_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_BY_HAND = "Set the base URL by hand: docs/proxy.md has it for each client."


class AddressSetting(Struct, frozen=True):
    """A setting that holds a provider's address.

    Attributes:
        setting: where it is in the file.
        variable: the variable of the environment that names the same address, or the client's
            own name for it; the upstream of a gateway that stood there is called after it.
        path: of the proxy, if the vendor is asked.
    """

    setting: SettingPath
    variable: str
    path: str


class AgentFile(Struct, frozen=True):
    """Where a coding agent keeps its settings.

    Attributes:
        name: the program's.
        title: as people call it.
        files: where the file is; the first that exists, else the last is made.
        language: what it is written in.
        addresses: the settings that are pointed at a proxy.
        folder_variable: the variable that names the folder of the file; "" if there is none.
        is_first: whether the file goes before the environment.
        begins: the text of a new file.
    """

    name: str
    title: str
    files: tuple[str, ...]
    language: Literal["json", "toml", "env", "yaml"]
    addresses: tuple[AddressSetting, ...]
    folder_variable: str = ""
    is_first: bool = True
    begins: str = ""


def _opencode_address(provider: str, path: str) -> AddressSetting:
    setting = ("provider", provider, "options", "baseURL")
    return AddressSetting(setting, f"opencode.{provider}", path)


AGENT_FILES: Mapping[str, AgentFile] = {
    agent.name: agent
    for agent in (
        AgentFile(
            "claude",
            "Claude Code",
            ("~/.claude/settings.json",),
            "json",
            (
                AddressSetting(
                    ("env", "ANTHROPIC_BASE_URL"),
                    "ANTHROPIC_BASE_URL",
                    "anthropic",
                ),
            ),
            "CLAUDE_CONFIG_DIR",
            begins="{}\n",
        ),
        AgentFile(
            "codex",
            "Codex",
            ("~/.codex/config.toml",),
            "toml",
            (AddressSetting(("openai_base_url",), "codex", "openai/v1"),),
            "CODEX_HOME",
        ),
        AgentFile(
            "gemini",
            "Gemini CLI",
            ("~/.gemini/.env",),
            "env",
            (
                AddressSetting(
                    ("GOOGLE_GEMINI_BASE_URL",),
                    "GOOGLE_GEMINI_BASE_URL",
                    "gemini",
                ),
            ),
            is_first=False,
        ),
        AgentFile(
            "goose",
            "goose",
            ("XDG/goose/config.yaml",),
            "yaml",
            (
                AddressSetting(
                    ("ANTHROPIC_HOST",), "ANTHROPIC_HOST", "anthropic"
                ),
                AddressSetting(("OPENAI_HOST",), "OPENAI_HOST", "openai"),
                AddressSetting(("GOOGLE_HOST",), "GOOGLE_HOST", "gemini"),
            ),
            is_first=False,
        ),
        AgentFile(
            "opencode",
            "opencode",
            ("XDG/opencode/opencode.jsonc", "XDG/opencode/opencode.json"),
            "json",
            tuple(
                _opencode_address(provider, path)
                for provider, path in zip(
                    OPENCODE_PROVIDERS,
                    ("anthropic/v1", "openai/v1", "gemini/v1beta"),
                    strict=True,
                )
            ),
            begins='{\n  "$schema": "https://opencode.ai/config.json"\n}\n',
        ),
    )
}


# ── what a file says ─────────────────────────────────────────────────────────────────────


def said(text: str, agent: AgentFile) -> dict[str, Any]:
    """What a file says.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return _READERS[agent.language](text)
    except (NotJson, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{agent.title}'s settings",
            str(error),
            "Correct the file and run this again; nothing was changed.",
        ) from None


def value_at(document: Mapping[str, Any], setting: SettingPath) -> Any:
    """What a file says at a setting; None if it says nothing there."""
    value: Any = document
    for name in setting:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def with_setting(
    text: str,
    agent: AgentFile,
    setting: SettingPath,
    value: str | None,
    original: Mapping[str, Any] = {},
) -> str:
    """A text with one setting changed.

    Args:
        text: of the agent's file.
        agent: the agent.
        setting: where it is.
        value: what it is to be; None: the setting is taken out, with the objects that are empty
            then.
        original: what the file said before it was pointed at a proxy; an object that it has
            stays, though it is empty.

    Raises:
        ConfigError: it cannot be changed without changing something else.
    """
    document = said(text, agent)
    try:
        new_text = _WRITERS[agent.language](text, setting, value)
        if value is None:
            new_text = _without_empty(new_text, agent, setting, original)
    except NotJson as error:
        raise _unsafe(agent, str(error)) from None
    expected = _expected(document, setting, value, original)
    if said(new_text, agent) != expected:
        raise _unsafe(agent, "it is written in a way that is not understood")
    return new_text


def _unsafe(agent: AgentFile, problem: str) -> ConfigError:
    return ConfigError(f"{agent.title}'s settings", problem, _BY_HAND)


def _without_empty(
    text: str,
    agent: AgentFile,
    setting: SettingPath,
    original: Mapping[str, Any],
) -> str:
    """A text without the objects that a setting left empty."""
    for length in range(len(setting) - 1, 0, -1):
        at = setting[:length]
        is_empty = value_at(said(text, agent), at) == {}
        if not is_empty or value_at(original, at) is not None:
            break
        text = without_value(text, at)
    return text


def _expected(
    document: Mapping[str, Any],
    setting: SettingPath,
    value: str | None,
    original: Mapping[str, Any],
) -> dict[str, Any]:
    """What a file is to say after a change."""
    expected: dict[str, Any] = copy.deepcopy(dict(document))
    *parents, name = setting
    objects = [expected]
    for parent in parents:
        objects.append(objects[-1].setdefault(parent, {}))
    if value is not None:
        objects[-1][name] = value
        return expected
    del objects[-1][name]
    for length in range(len(parents), 0, -1):
        at = setting[:length]
        if objects[length] or value_at(original, at) is not None:
            break
        del objects[length - 1][at[-1]]
    return expected


# ── one language each ────────────────────────────────────────────────────────────────────


def _read_json(text: str) -> dict[str, Any]:
    value = scanned(text).value
    if not isinstance(value, dict):
        raise NotJson("it is not a JSON object")
    return value


def _write_json(text: str, setting: SettingPath, value: str | None) -> str:
    if value is None:
        return without_value(text, setting)
    return with_value(text, setting, value)


def _write_toml(text: str, setting: SettingPath, value: str | None) -> str:
    """One line at the head of the file, where keys of no table stand."""
    (name,) = setting
    table = _TABLE.search(text)
    end = table.start() if table else len(text)
    line = "" if value is None else f'{name} = "{value}"\n'
    pattern = rf"^[ \t]*{re.escape(name)}[ \t]*=.*(?:\n|\Z)"
    head, count = re.subn(
        pattern, lambda _: line, text[:end], count=1, flags=re.MULTILINE
    )
    return f"{head if count else line + head}{text[end:]}"


def _lines_of(pattern: str) -> Callable[[str], dict[str, Any]]:
    """Reads a file of lines, each with a name and what follows it."""
    matches = re.compile(pattern, re.MULTILINE).findall
    return lambda text: {
        name: value.strip().strip("\"'") for name, value in matches(text)
    }


_read_env = _lines_of(r"^(?:export[ \t]+)?(\w+)[ \t]*=(.*)$")
_NAME_LINE = re.compile(r"[\w.-]+:(\s|$)")
_margin = _lines_of(r"^([\w.-]+):(?=\s|$)(.*)$")


def _read_yaml(text: str) -> dict[str, Any]:
    """The lines at the margin, and all else as one list beside them."""
    rest = []
    for line in filter(str.strip, text.splitlines()):
        if not _NAME_LINE.match(line):
            rest.append(line)
            if not line.startswith((" ", "\t", "#", "-", "%")):
                raise ValueError("a line at the margin has no name")
    if sum(line.startswith("---") for line in rest) > 1:
        raise ValueError("it holds more than one document")
    return {**_margin(text), "": rest}


def _write_env(text: str, setting: SettingPath, value: str | None) -> str:
    (name,) = setting
    line = "" if value is None else f"{name}={value}\n"
    return _with_line(text, rf"(?:export[ \t]+)?{name}[ \t]*=", line)


def _write_yaml(text: str, setting: SettingPath, value: str | None) -> str:
    (name,) = setting
    line = "" if value is None else f"{name}: {value}\n"
    return _with_line(text, rf"{name}:(?=\s)", line)


def _with_line(text: str, begins: str, line: str) -> str:
    """A text with a line in place of the one that begins so, or in front of the others."""
    new_text, count = re.subn(
        rf"^{begins}.*(?:\n|\Z)",
        lambda _: line,
        text,
        count=1,
        flags=re.MULTILINE,
    )
    if count:
        return new_text
    head = re.match(r"(?:(?:%|---)[^\n]*\n)*", text)
    at = head.end() if head else 0
    return f"{text[:at]}{line}{text[at:]}"


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "json": _read_json,
    "toml": tomllib.loads,
    "env": _read_env,
    "yaml": _read_yaml,
}
_WRITERS: Mapping[str, Callable[[str, SettingPath, str | None], str]] = {
    "json": _write_json,
    "toml": _write_toml,
    "env": _write_env,
    "yaml": _write_yaml,
}
