"""What a call says of itself: its arguments by name, and what kind of output its tool gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ullage.core.on_demand import cached_by_text

ToolKind: TypeAlias = Literal["read", "search", "shell", "web", "other"]

_WEB = "fetch url browse browser http scrape crawl page navigate"
_SEARCH = (
    "grep rg search find glob list ls lsp dir directory tree query queries sql"
)
_SHELL = "bash shell sh exec execute run terminal command cmd powershell python test"
_READ = "read view cat open file source code"
_KINDS: tuple[tuple[ToolKind, frozenset[str]], ...] = (
    ("web", frozenset(("web", "website"))),
    ("search", frozenset(_SEARCH.split())),
    ("web", frozenset(_WEB.split())),
    ("shell", frozenset(_SHELL.split())),
    ("read", frozenset(_READ.split())),
)
"""The words that tell a kind, in the order in which they are looked for."""
_VOCABULARY = frozenset().union(*(words for _, words in _KINDS))
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""``readURL`` is two words, ``HTTPGet`` too."""

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
    """What kind of output a tool gives, judged by whole words of its name.

    ``read_file`` and ``Read`` are reads, ``web_search`` and ``webfetch`` are the web,
    ``mcp__files__grep`` is a search: the name of an MCP server says nothing of its tools. A part
    of a word says nothing either: ``get_emails`` lists no directory. Names of tools in English are
    understood, and others are ``"other"``.
    """
    _, _, name = tool.rpartition("__")
    words = set[str]()
    for word in _WORD.findall(name):
        words.update(_parts_of(word.lower()))
    for kind, signs in _KINDS:
        if not words.isdisjoint(signs):
            return kind
    return "other"


def _parts_of(word: str) -> tuple[str, ...]:
    """A word in the singular, or the two known words that it is made of, as ``readfile`` is."""
    if word not in _VOCABULARY:
        word = word.removesuffix("s")
    for middle in range(2, len(word) - 1):
        parts = word[:middle], word[middle:]
        if _VOCABULARY.issuperset(parts):
            return parts
    return (word,)


def head_share_of(kind: ToolKind) -> float:
    """How much of what is shown comes from the head: a shell says what went wrong at the end."""
    return 0.4 if kind == "shell" else 0.7
