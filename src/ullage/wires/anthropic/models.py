"""Facts that the name of a Claude tells: how its thinking is bound, what its API refuses."""

from __future__ import annotations

import re
from typing import Any

from ullage.wires.models import ANY_ID, Family

_VERSIONED = r"claude-(?:[a-z]+-)?"

FAMILIES = (
    Family(
        "preserved thinking",
        _VERSIONED + r"(?:5[-.](?!0)\d{1,2}|[6-9]|[1-9]\d)(?!\d)",
        rule="strip",
        manual_rule="frozen",
    ),
    Family(
        "kept thinking",
        _VERSIONED
        + r"5(?!\d)|claude-opus-4[-.][5-9](?!\d)|claude-sonnet-4[-.][6-9](?!\d)",
    ),
    Family("stripped thinking", ""),
)
"""In the first family, thinking is bound to all that stands before it (A13 to A17)."""

_CLAUDE = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_NO_FORCED_TOOL_SINCE = {"fable": (5, 1), "sonnet": (5, 5)}


def claude(model: Any) -> tuple[str, tuple[int, int]] | None:
    """Family and version of a Claude, such as ("opus", (4, 6)); None of any other model."""
    match = _CLAUDE.search(model) if isinstance(model, str) else None
    if match is None:
        return None
    family, major, minor = match.groups()
    return family or "", (int(major), int(minor or 0))


def refuses_force(model: Any) -> bool:
    """Whether it takes no ``tool_choice`` that forces a tool (A24)."""
    family, version = claude(model) or ("", (0, 0))
    return version >= _NO_FORCED_TOOL_SINCE.get(family, (99, 0))


def takes_no_system_messages(model: Any) -> bool:
    """Whether it is a Claude whose system text stands beside the messages alone.

    They may stand among them for Opus from 4.8 on, and from 5 on for all but Sonnet 5
    (`provider-rules` §1.A).
    """
    named = claude(model)
    if named is None:
        return False
    family, version = named
    if family == "opus":
        return version < (4, 8)
    return version < (5, 0) or named == ("sonnet", (5, 0))


_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


def call_ids(model: Any) -> re.Pattern[str]:
    """The form that the ids of calls must have, for a model (A8).

    Where another maker's model is named, no API is known to refuse an id.
    """
    return _ID if not model or "claude" in str(model).lower() else ANY_ID
