"""Where a coding agent's own files say that its requests go.

A variable that `ullage run` sets would go before most of these files, and an option before all of
them: a gateway that the user chose there would be passed by, and its key sent to somebody else. So
the files are read, and what they name stays where requests end. They are read only, and a file that
cannot be read names nothing.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_MOST_BYTES = 1 << 20
_JSON_TEXT_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL
)
_JSON_TEXT_OR_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_LINE = re.compile(
    r"""(?m)^(?:export[ \t]+)?([A-Z_]+)[ \t]*[:=][ \t]*["']?([^"'\s#]+)"""
)
_VARIABLE = re.compile(r"\{env:(\w+)\}")

OPENCODE_PROVIDERS = ("anthropic", "openai", "google")
"""The providers of opencode that have an upstream of ours."""


_MANAGED = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Settings of Claude Code that an organisation keeps; they go before all others."""


def own_settings(
    program: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    arguments: Sequence[str] = (),
) -> dict[str, str]:
    """What a coding agent's files set.

    Args:
        program: its name, such as ``claude``.
        environment: the one it would have had; its home is looked up there.
        folder: where it is started; None: the current one.
        arguments: of its command line; Claude Code's ``--settings`` is one of its files.

    Returns:
        values by the name of their variable. An address that has no variable is named
        ``codex`` (Codex), ``opencode.anthropic``, ``opencode.openai`` or ``opencode.google``.
    """
    folder = Path.cwd() if folder is None else folder
    if program == "claude":
        return _claude(environment, folder, arguments)
    read = _READERS.get(program)
    return {} if read is None else read(environment, folder)


def option_of(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option of a command line, in either of its forms; None: it is not there."""
    for index, argument in enumerate(arguments):
        if argument == option:
            return "".join(arguments[index + 1 : index + 2])
        if argument.startswith(f"{option}="):
            return argument.removeprefix(f"{option}=")
    return None


def _claude(
    environment: Mapping[str, str], folder: Path, arguments: Sequence[str]
) -> dict[str, str]:
    """``env`` in its settings: the user's, the project's, an option's, an organisation's."""
    home = _folder(environment, "CLAUDE_CONFIG_DIR", ".claude")
    project = folder / ".claude"
    files = (
        home / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
    )
    settings = [_json(file) for file in files]
    option = option_of(arguments, "--settings")
    if option is not None:
        is_text = option.lstrip().startswith("{")
        settings.append(_parsed(option) if is_text else _json(folder / option))
    settings.extend(_json(file) for file in _MANAGED)
    merged: dict[str, str] = {}
    for values in settings:
        merged |= _texts(values.get("env"))
    return merged


def _codex(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``openai_base_url`` in its ``config.toml``."""
    settings = _toml(
        _folder(environment, "CODEX_HOME", ".codex") / "config.toml"
    )
    url = settings.get("openai_base_url")
    return {"codex": url} if isinstance(url, str) and url else {}


def _gemini(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The nearest ``.env``."""
    return _env_file(environment, folder, ".gemini")


def _qwen(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``env`` and ``security.auth.baseUrl`` in its settings, then the nearest ``.env``."""
    merged: dict[str, str] = {}
    for at in (_home(environment), folder):
        settings = _json(at / ".qwen" / "settings.json")
        merged |= _texts(settings.get("env"))
        url = _object(_object(settings.get("security")).get("auth")).get(
            "baseUrl"
        )
        if isinstance(url, str) and url:
            merged["OPENAI_BASE_URL"] = url
    return merged | _env_file(environment, folder, ".qwen")


def _goose(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The lines of its ``config.yaml`` that stand at the margin."""
    config = _folder(environment, "XDG_CONFIG_HOME", ".config")
    return _lines(config / "goose" / "config.yaml")


def _opencode(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """``provider.NAME.options.baseURL`` of its files; a later file goes before."""
    merged: dict[str, str] = {}
    for file in _opencode_files(environment, folder):
        providers = _object(_json(file).get("provider"))
        for name in OPENCODE_PROVIDERS:
            url = _object(_object(providers.get(name)).get("options")).get(
                "baseURL"
            )
            if isinstance(url, str) and url:
                merged[f"opencode.{name}"] = _VARIABLE.sub(
                    lambda match: environment.get(match[1], ""), url
                )
    return merged


def _opencode_files(
    environment: Mapping[str, str], folder: Path
) -> Iterator[Path]:
    home = _folder(environment, "XDG_CONFIG_HOME", ".config") / "opencode"
    names = ("opencode.json", "opencode.jsonc")
    yield home / "config.json"
    yield from (home / name for name in names)
    if file := environment.get("OPENCODE_CONFIG"):
        yield Path(file)
    folders = [*reversed(folder.parents), folder]
    yield from (at / name for at in folders for name in names)
    yield from (at / ".opencode" / name for at in folders for name in names)
    if config_folder := environment.get("OPENCODE_CONFIG_DIR"):
        yield from (Path(config_folder) / name for name in names)


_READERS: Mapping[str, Callable[[Mapping[str, str], Path], dict[str, str]]] = {
    "codex": _codex,
    "gemini": _gemini,
    "goose": _goose,
    "opencode": _opencode,
    "qwen": _qwen,
}


def gemini_has_chosen(
    environment: Mapping[str, str], folder: Path | None = None
) -> bool:
    """Whether the settings of Gemini CLI say how it signs in.

    Args:
        environment: the one it would have had.
        folder: where it is started; None: the current one.
    """
    folder = Path.cwd() if folder is None else folder
    for at in (_home(environment), folder):
        settings = _json(at / ".gemini" / "settings.json")
        if _object(_object(settings.get("security")).get("auth")).get(
            "selectedType"
        ):
            return True
    return False


def _env_file(
    environment: Mapping[str, str], folder: Path, agent_folder: str
) -> dict[str, str]:
    """The nearest ``.env``, upwards from a folder, then at home; the agent's own goes first."""
    for at in (folder, *folder.parents, _home(environment)):
        for file in (at / agent_folder / ".env", at / ".env"):
            if file.is_file():
                return _lines(file)
    return {}


def _lines(file: Path) -> dict[str, str]:
    return dict(_LINE.findall(_text(file)))


def _json(file: Path) -> dict[str, Any]:
    return _parsed(_text(file))


def _parsed(text: str) -> dict[str, Any]:
    """A JSON object that may have comments and commas too many."""
    text = _JSON_TEXT_OR_COMMENT.sub(_keep_text, text)
    text = _JSON_TEXT_OR_COMMA.sub(_keep_text, text)
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _keep_text(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else ""


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except (ValueError, RecursionError):
        return {}


def _text(file: Path) -> str:
    """A file's text; nothing if there is none, or if it is no settings file by its size."""
    try:
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home) if home else Path.home()


def _folder(environment: Mapping[str, str], variable: str, name: str) -> Path:
    """A folder that a variable names, else the one at home."""
    named = environment.get(variable)
    return Path(named) if named else _home(environment) / name


def _texts(value: Any) -> dict[str, str]:
    return {
        name: text
        for name, text in _object(value).items()
        if isinstance(text, str) and text
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
