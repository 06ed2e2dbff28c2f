"""Where settings come from outside: environment variables and settings files."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ullage.errors import ConfigError

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A TOML or JSON file, or a mapping as one holds it."""

TOKEN_BUDGET = "SRE_AGENT_TOKEN_BUDGET"
"""The variable that holds a session's budget of tokens (multi-stage, Configuration)."""

_COMMENTS = re.compile(r"(?m)^\s*//.*$")
"""Lines of comment, as settings files of .NET hold them. No JSON string goes over a line."""

_NUMBER = re.compile(r"[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{3}){1,5}|[0-9]{1,3}(?:_[0-9]{3}){1,5}")


def whole_number(variable: str) -> int | None:
    """The whole number a variable holds now, or None if it is unset or empty.

    Thousands may be parted by commas or underscores, as in ``850,000`` (multi-stage,
    Configuration).

    Raises:
        ConfigError: it holds something else; its value is not shown.
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise ConfigError(
            variable, "this is no whole number", "Give one such as 850000 or 850,000."
        )
    return int(re.sub("[,_]", "", text))


def values_of(source: Source) -> Mapping[str, Any]:
    """What a settings file holds; a mapping is taken as it is.

    Raises:
        ConfigError: the file cannot be read, or holds no object.
    """
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError("settings", f"the file cannot be read: {reason}", "Check it.") from None
    try:
        is_toml = path.suffix == ".toml"
        value = tomllib.loads(text) if is_toml else json.loads(_COMMENTS.sub("", text))
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigError("settings", f"not {kind}: {error}", "Mend the file.") from None
    if not isinstance(value, Mapping):
        raise ConfigError("settings", "the file holds no object", "Give keys and values.")
    return value
