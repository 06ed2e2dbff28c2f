"""Cache markers where the caller set none, at the places that survive the next batch.

Anthropic keeps a prefix only up to a marker, and finds it again only within 20 blocks before a
marker of a later request (`provider-rules` §3.4); four are allowed. So they stand

    tools, system ▲   record, … ▲ record, record ▲   turns …   the newest ▲

A batch writes again what is behind the records of earlier ones. A client that marks its newest
messages alone has no marker near those, and then pays for all records again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ullage.doors.host import field
from ullage.wires import MARKERS, wire_named

if TYPE_CHECKING:
    from ullage import AsyncView, View

_KEY = "cache_control"
_MARKER = {"type": "ephemeral"}
_BACK = 18
"""Messages from one marker to the next before it, so that no block lies between their reaches."""
_UNMARKED = frozenset(("thinking", "redacted_thinking"))
"""Blocks that take no marker (A21)."""


def marked(view: View | AsyncView) -> Mapping[str, Any]:
    """A view with cache markers, or the view itself: on another wire, or where it has some.

    Args:
        view: what `Session.fit` gave; it is not changed.
    """
    if not wire_named(view.wire.wire).takes_cache_markers:
        return view
    if _has_markers(view):
        return view
    marked_view = dict(view)
    for key in ("system", "tools"):
        head = _with_marker(marked_view.get(key))
        if head is not None:
            # one marker stands behind both: the system text comes after the tools
            marked_view[key] = head
            break
    messages = list(marked_view["messages"])
    for index in _places(view, messages):
        message = messages[index]
        content = _with_marker(field(message, "content"))
        if content is not None and isinstance(message, dict):
            messages[index] = {**message, "content": content}
    marked_view["messages"] = messages
    return marked_view


def _has_markers(view: Mapping[str, Any]) -> bool:
    """Whether the caller has set a marker anywhere."""
    if _KEY in view:
        return True
    contents = (field(message, "content") for message in view["messages"])
    heads = (view.get("system"), view.get("tools"))
    for content in chain(heads, contents):
        if not isinstance(content, (list, tuple)):
            continue
        if any(map(_is_marked, content)):
            return True
    return False


def _is_marked(block: Any) -> bool:
    """Whether a block has a marker, or one of those that a result holds."""
    blocks = [block]
    content = field(block, "content")
    if isinstance(content, list):
        blocks += content
    return any(_has_marker(item) for item in blocks)


def _has_marker(block: Any) -> bool:
    return any(field(block, key) for key in MARKERS)


def _places(view: View | AsyncView, messages: Sequence[Any]) -> set[int]:
    """Of which messages the ends are marked: the newest one, and what no batch will touch.

    That is the newest record with what users said behind it, and as far before it as one marker
    finds, for a batch that has just been made put new records between. While there is no record,
    it is what was sent before the newest reply.
    """
    newest = len(messages) - 1
    summaries = view.sent.window.open_summaries
    record_stop = max((placed.stop for placed in summaries), default=0)
    if record_stop:
        settled = newest - (view.sent.size - record_stop)
        while settled < newest and _is_said(messages[settled + 1]):
            settled += 1
        places = {newest, settled, settled - _BACK}
    else:
        places = {newest, _newest_reply(messages) - 1}
    return {place for place in places if 0 <= place <= newest}


def _newest_reply(messages: Sequence[Any]) -> int:
    """The index of the newest message of the model; 0 where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if field(messages[index], "role") == "assistant":
            return index
    return 0


def _is_said(message: Any) -> bool:
    """Whether a message is the user's own words, and no result of a tool."""
    if field(message, "role") != "user":
        return False
    content = field(message, "content")
    if not isinstance(content, (list, tuple)):
        return True
    types = (field(block, "type") for block in content)
    return "tool_result" not in types


def _with_marker(content: Any) -> list[Any] | None:
    """Content with a cache marker at its last block that may have one; None if none may."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, (list, tuple)):
        return None
    blocks = list(content)
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if isinstance(block, dict) and _takes_marker(block):
            blocks[index] = {**block, _KEY: _MARKER}
            return blocks
    return None


def _takes_marker(block: Mapping[str, Any]) -> bool:
    """Whether a block may have a marker: a text without words may not."""
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text")).strip())
    return kind not in _UNMARKED
