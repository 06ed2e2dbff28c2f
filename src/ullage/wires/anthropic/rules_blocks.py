"""Anthropic's types of blocks: where each may stand, and its fields (A0, A23).

The caller's blocks are held to the fields of the documentation. A block that a server made goes
back as it came, and may be newer than this table: there an unknown field is only refused if it
is null, since nulls are what writing a block through a type of one's own adds. Types that are
not in the table are carried through.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ullage.wires.rules.problem import Report, Wire, name_in

__all__ = ["IN_RESULT", "judge_block", "judge_fields"]


class _Shape(Struct, frozen=True):
    """One type of block.

    Attributes:
        roles: of the messages it may stand in.
        needed: fields it has, with their types.
        more: fields it may have besides.
        served: whether the server makes it.
    """

    roles: tuple[str, ...]
    needed: tuple[tuple[str, type], ...]
    more: frozenset[str] = frozenset()
    served: bool = False

    def knows(self, name: str) -> bool:
        """Whether a block of this type may have such a field."""
        return name == "type" or name in self.more or any(name == key for key, _ in self.needed)


_USER, _ASSISTANT, _SYSTEM = ("user",), ("assistant",), ("system",)
_ANY = (*_USER, *_ASSISTANT, *_SYSTEM)
_CALL = (("id", str), ("name", str), ("input", dict))
_MARKER = "cache_control"
_SERVER_RESULT = _Shape(
    _ASSISTANT, (("tool_use_id", str),), frozenset(("content", "caller", "is_error", _MARKER)), True
)
_CHANGE = _Shape(_SYSTEM, (("tool", dict),), frozenset((_MARKER,)))
_BLOCKS = {
    "text": _Shape(_ANY, (("text", str),), frozenset(("citations", _MARKER))),
    "image": _Shape(_USER, (("source", dict),), frozenset(("transformations", _MARKER))),
    "document": _Shape(
        _USER, (("source", dict),), frozenset(("title", "context", "citations", _MARKER))
    ),
    "search_result": _Shape(
        _USER,
        (("source", str), ("title", str), ("content", list)),
        frozenset(("citations", _MARKER)),
    ),
    "container_upload": _Shape(_USER, (("file_id", str),), frozenset((_MARKER,))),
    "thinking": _Shape(_ASSISTANT, (("thinking", str), ("signature", str))),
    "redacted_thinking": _Shape(_ASSISTANT, (("data", str),)),
    "tool_use": _Shape(_ASSISTANT, _CALL, frozenset(("caller", "toolset_name", _MARKER))),
    "tool_result": _Shape(
        _USER,
        (("tool_use_id", str),),
        frozenset(("content", "is_error", "toolset_name", _MARKER)),
    ),
    "tool_addition": _CHANGE,
    "tool_removal": _CHANGE,
    "server_tool_use": _Shape(_ASSISTANT, _CALL, frozenset(("caller", _MARKER)), True),
    "mcp_tool_use": _Shape(_ASSISTANT, _CALL, frozenset(("server_name", _MARKER)), True),
    "mcp_tool_result": _SERVER_RESULT,
}
_WITH_CONTENT = frozenset(
    f"{name}_tool_result"
    for name in (
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search",
    )
)
_SOURCES = {
    "image": {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)},
    "document": {
        "base64": ("media_type", "data"),
        "text": ("media_type", "data"),
        "content": ("content",),
        "url": ("url",),
        "file": ("file_id",),
    },
}
IN_RESULT = frozenset(
    ("text", "image", "document", "search_result", "tool_reference", "browser_state")
)
"""The types of blocks that may stand in a tool_result."""


def judge_block(block: Wire, kind: str, role: str, where: str, report: Report) -> None:
    """Note where a block may not stand so, and what is wrong with its fields."""
    shape = _shape(kind)
    if shape is None:
        return
    if role not in shape.roles:
        report.add("A0", where, f"a {kind} block may not stand in a {role} message")
    judge_fields(block, kind, where, report)


def judge_fields(block: Wire, kind: str, where: str, report: Report) -> None:
    """Note the fields that a block of this type lacks, and those it should not have."""
    shape = _shape(kind)
    if shape is None:
        return
    extra = [name for name in block if not shape.knows(name)]
    if shape.served:
        extra = [name for name in extra if block[name] is None]
    elif not shape.knows(_MARKER) and block.get(_MARKER) is not None:
        extra.remove(_MARKER)  # A21 says so
    if extra:
        _unknown(extra, where, report)
    for name, wanted in shape.needed:
        if not isinstance(block.get(name), wanted):
            report.fields("A0", block, shape.needed, where)
            return
    if kind in _WITH_CONTENT:
        has = isinstance(block.get("content"), (list, dict))
        report.need(has, "A0", where, "the result of a server's tool has content")
    if kind in _SOURCES:
        _source(block["source"], _SOURCES[kind], f"{where}.source", report)


def _source(source: Wire, kinds: dict[str, tuple[str, ...]], where: str, report: Report) -> None:
    needed = kinds.get(name_in(source, "type") or "")
    if needed is None:
        report.add("A0", f"{where}.type", f"one of {', '.join(kinds)} is asked for")
        return
    for name in needed:
        held = source.get(name) is not None
        report.need(held, "A0", where, f"a source of this type has the field {name!r}")
    extra = [name for name in source if name != "type" and name not in needed]
    if extra:
        _unknown(extra, where, report)


def _unknown(extra: list[Any], where: str, report: Report) -> None:
    names = ", ".join(map(repr, extra))
    report.add("A23", where, f"fields the API does not know: {names[:200]}")


def _shape(kind: str) -> _Shape | None:
    return _SERVER_RESULT if kind in _WITH_CONTENT else _BLOCKS.get(kind)
