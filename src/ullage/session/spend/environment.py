"""Numbers that environment variables hold."""

from __future__ import annotations

import os
import re

from ullage.core.errors import ConfigError

TOKEN_BUDGET = "SRE_AGENT_TOKEN_BUDGET"
"""The variable that holds a session's budget of tokens (multi-stage, Configuration)."""

_NUMBER = re.compile(
    r"[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{3}){1,5}|[0-9]{1,3}(?:_[0-9]{3}){1,5}"
)


def whole_number(variable: str) -> int | None:
    """The whole number that an environment variable holds, or None if it is unset or empty.

    Thousands may be parted by commas or underscores, as in ``850,000`` (multi-stage,
    Configuration).

    Args:
        variable: its name.

    Raises:
        ConfigError: it holds something else; its value is not shown.
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise ConfigError(
            variable,
            "this is no whole number",
            "Give one such as 850000 or 850,000.",
        )
    return int(re.sub("[,_]", "", text))
