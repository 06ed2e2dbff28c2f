"""Cache markers where the caller set none, at the places that survive the next batch.

Anthropic keeps a prefix only up to a marker, and finds it again only within 20 blocks before a
marker of a later request (`provider-rules` §3.4); four are allowed. So they stand

    tools, system ▲   record, … ▲ record, record ▲   turns …   the newest ▲

A batch writes again what is behind the records of earlier ones. A client that marks its newest
messages alone has no marker near those, and then pays for all records again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ullage.doors.host import field
from ullage.wires import MARKERS, wire_named

if TYPE_CHECKING:
    from ullage import AsyncView, View

_KEY, _MARKER = "cache_control", {"type": "ephemeral"}
_BACK = 18
"""Messages from one marker to the next before it, so that no block lies between their reaches."""
_UNMARKED = frozenset(("thinking", "redacted_thinking"))
"""Blocks that take no marker (A21)."""


def marked(view: View | AsyncView) -> Mapping[str, Any]:
    """A view with cache markers, or the view itself: on another wire, or where it has some.

    Args:
        view: what `Session.fit` gave; it is not changed.
    """
    if not wire_named(view.wire.wire).takes_cache_markers or _has_markers(
        view
    ):
        return view
    changed = dict(view)
    for key in ("system", "tools"):
        if (head := _with_marker(changed.get(key))) is not None:
            changed[key] = head
            break
    messages = list(changed["messages"])
    for index in _places(view, messages):
        content = _with_marker(field(messages[index], "content"))
        if content is not None and isinstance(messages[index], dict):
            messages[index] = {**messages[index], "content": content}
    return {**changed, "messages": messages}


def _has_markers(view: Mapping[str, Any]) -> bool:
    contents = (field(message, "content") for message in view["messages"])
    heads = (view.get("system"), view.get("tools"))
    lists = (
        content
        for content in chain(heads, contents)
        if isinstance(content, (list, tuple))
    )
    return _KEY in view or any(
        _is_marked(block) for content in lists for block in content
    )


def _is_marked(block: Any) -> bool:
    inner = field(block, "content")
    inside: Iterable[Any] = inner if isinstance(inner, list) else ()
    return any(
        field(value, key) for value in (block, *inside) for key in MARKERS
    )


def _places(view: View | AsyncView, messages: Sequence[Any]) -> set[int]:
    """Of which messages the ends are marked: the newest one, and what no batch will touch.

    That is the newest record with what users said behind it, and as far before it as one marker
    finds, for a batch that has just been made put new records between. While there is no record,
    it is what was sent before the newest reply.
    """
    newest, window = len(messages) - 1, view.sent.window
    record = max((placed.stop for placed in window.open_summaries), default=0)
    settled = newest - (view.sent.size - record)
    while record and settled < newest and _is_said(messages[settled + 1]):
        settled += 1
    replies = (
        index
        for index in range(newest, -1, -1)
        if field(messages[index], "role") == "assistant"
    )
    settled_ends = (
        {settled, settled - _BACK} if record else {next(replies, 0) - 1}
    )
    return {place for place in {newest, *settled_ends} if 0 <= place <= newest}


def _is_said(message: Any) -> bool:
    content = field(message, "content")
    blocks = content if isinstance(content, (list, tuple)) else ()
    is_result = any(field(block, "type") == "tool_result" for block in blocks)
    return field(message, "role") == "user" and not is_result


def _with_marker(content: Any) -> list[Any] | None:
    """Content with a cache marker at its last block that may have one; None if none may."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = list(content) if isinstance(content, (list, tuple)) else []
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if isinstance(block, dict) and _takes_marker(block):
            blocks[index] = {**block, _KEY: _MARKER}
            return blocks
    return None


def _takes_marker(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    return kind not in _UNMARKED and not (
        kind == "text" and not str(block.get("text")).strip()
    )
