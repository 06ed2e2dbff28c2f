"""What a call says of itself: its arguments by name, and what kind of output its tool gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ullage.on_demand import cached_by_text

ToolKind: TypeAlias = Literal["read", "search", "shell", "web", "other"]

_KINDS: tuple[tuple[ToolKind, tuple[str, ...]], ...] = (
    ("search", ("grep", "search", "find", "glob", "list", "ls", "dir", "tree", "query")),
    ("web", ("web", "fetch", "url", "browse", "http", "scrape", "page", "navigate")),
    ("shell", ("bash", "shell", "exec", "run", "terminal", "command", "cmd", "python", "test")),
    ("read", ("read", "view", "cat", "open", "file", "source", "get_code")),
)

LIMIT_CHARS: Mapping[ToolKind, int] = {
    "shell": 6_000,
    "web": 8_000,
    "other": 8_000,
    "search": 16_000,
    "read": 40_000,
}

_loads = msgspec.json.Decoder().decode


def fields_of(arguments: str) -> dict[str, Any] | None:
    """The arguments of a call by name; None where they are no JSON object."""
    try:
        value = _loads(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_plain_text(arguments: str) -> bool:
    """Whether the arguments of a call are text for the tool, and no JSON."""
    try:
        _loads(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return bool(arguments.strip())
    return False


@cached_by_text(256)
def kind_of(tool: str) -> ToolKind:
    """What kind of output a tool gives, judged by its name.

    The words of the name decide, the last one first matched: ``read_file`` and ``Read`` are
    reads, ``web_search`` is the web, ``mcp__files__grep`` is a search.
    """
    name = tool.lower()
    if name.startswith("web"):
        return "web"
    for kind, words in _KINDS:
        if any(word in name for word in words):
            return kind
    return "other"


def head_share_of(kind: ToolKind) -> float:
    """How much of what is shown comes from the head: a shell says what went wrong at the end."""
    return 0.4 if kind == "shell" else 0.7
