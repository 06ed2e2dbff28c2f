"""Settings files: what one holds, in TOML or JSON."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ullage.core.errors import ConfigError

Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A TOML or JSON file, or a mapping as one holds it."""

_COMMENTS = re.compile(r"(?m)^\s*//.*$")
"""Lines of comment, as settings files of .NET hold them. No JSON string goes over a line."""


def values_of(source: Source) -> Mapping[str, Any]:
    """What a settings file holds; a mapping is taken as it is.

    Args:
        source: the path of a TOML or JSON file, or a mapping.

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
        raise ConfigError(
            "settings", f"the file cannot be read: {reason}", "Check it."
        ) from None
    try:
        is_toml = path.suffix == ".toml"
        value = (
            tomllib.loads(text)
            if is_toml
            else json.loads(_COMMENTS.sub("", text))
        )
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigError(
            "settings", f"not {kind}: {error}", "Mend the file."
        ) from None
    if not isinstance(value, Mapping):
        raise ConfigError(
            "settings", "the file holds no object", "Give keys and values."
        )
    return value
