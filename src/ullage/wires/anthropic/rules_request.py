"""Anthropic's rules about a whole request: its head (A0, A8, A9), cache markers (A21) and images
(A25); and about what was returned (A13).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ullage.tokens import catalog
from ullage.tokens.payload import image_size
from ullage.values.limits import ANTHROPIC_MEDIA
from ullage.wires.anthropic.blocks import THOUGHTS
from ullage.wires.rules.problem import Problem, Report, Wire, items_of, name_in

__all__ = [
    "Markers",
    "blocks_of",
    "is_tool_name",
    "judge_head",
    "judge_images",
    "thinking_problems",
]

_MARKERS = 4
is_tool_name = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z").match
"""Whether a tool may be called so (A8)."""


def judge_head(head: Wire, report: Report) -> None:
    """A0, A8 and A9: system texts and tools."""
    for key, kinds in (("system", (str, list)), ("tools", list)):
        if head.get(key) is not None:
            report.fields("A0", head, {key: kinds}, key)
    for index, block in enumerate(items_of(head.get("system"))):
        text = name_in(block, "text") or ""
        where = f"system[{index}]"
        report.need(text and not text.isspace(), "A9", where, "a text block with text is asked for")
    for index, tool in enumerate(items_of(head.get("tools"))):
        name = tool.get("name") if type(tool) is dict else None
        legal = name is None or (type(name) is str and is_tool_name(name))
        report.need(legal, "A8", f"tools[{index}].name", "the tool's name is not allowed")


def blocks_of(thing: Any) -> list[Any]:
    """The content of a message or a result as blocks; a string is one text."""
    content = thing.get("content") if type(thing) is dict else None
    return [{"type": "text", "text": content}] if type(content) is str else items_of(content)


# -- images and cache markers -------------------------------------------------------------


def judge_images(head: Wire, images: list[tuple[str, Wire]], report: Report) -> None:
    """A25. The size shows of images whose data is in the request."""
    limits = ANTHROPIC_MEDIA
    most = limits.images
    if len(images) > limits.images_small_window:
        model = catalog.lookup(str(head.get("model") or ""))
        if model.known and model.window_tokens <= limits.small_window_tokens:
            most = limits.images_small_window
    report.need(len(images) <= most, "A25", "messages", f"{len(images)} images, {most} may be sent")
    side = limits.many_side_px if len(images) > limits.many_images else limits.side_px
    for where, block in images:
        source = block.get("source")
        data = name_in(source, "data") if name_in(source, "type") == "base64" else None
        if data is None:
            continue
        longest = max(image_size(data))
        sentence = f"{longest} pixels a side, {side} are allowed"
        report.need(longest <= side, "A25", where, sentence)
        size = (len(data) - data[-2:].count("=")) * 3 // 4
        sentence = f"{size} bytes, {limits.image_bytes} are allowed"
        report.need(size <= limits.image_bytes, "A25", where, sentence)


class Markers:
    """The cache markers so far, in the order of the request: tools, system, messages (A21)."""

    def __init__(self, head: Wire, report: Report) -> None:
        self._report = report
        self._ttls: list[str] = []
        for key in ("tools", "system"):
            for index, block in enumerate(items_of(head.get(key))):
                if type(block) is dict and block.get("cache_control") is not None:
                    self._add(block, f"{key}[{index}]", report)

    def on_block(self, block: Wire, where: str) -> None:
        """Take the next marker, which a block of a message carries."""
        if block.get("type") in THOUGHTS:
            self._report.add("A21", where, "thinking carries no cache marker")
        elif block.get("type") == "text" and not block.get("text"):
            self._report.add("A21", where, "empty text carries no cache marker")
        self._add(block, where, self._report)

    def of_request(self, head: Wire, last: Any, report: Report) -> None:
        """Judge the marker of the request itself, which is one on its last block."""
        if head.get("cache_control") is None:
            return
        own = last.get("cache_control") if type(last) is dict else None
        if own is not None and _ttl(last) != _ttl(head):
            sentence = "it lives otherwise than the marker of the last block"
            report.add("A21", "cache_control", sentence)
        before = self._ttls.copy()
        self._add(head, "cache_control", report)
        self._ttls = before

    def _add(self, thing: Wire, where: str, report: Report) -> None:
        ttl = _ttl(thing)
        if ttl == "1h" and "5m" in self._ttls:
            report.add("A21", where, "a 1h marker stands behind a 5m marker")
        self._ttls.append(ttl)
        if len(self._ttls) == _MARKERS + 1:
            report.add("A21", where, f"more than {_MARKERS} cache markers")


def _ttl(thing: Wire) -> str:
    control = thing.get("cache_control")
    return str(control.get("ttl") or "5m") if type(control) is dict else "5m"


# -- what was returned --------------------------------------------------------------------


def thinking_problems(messages: Sequence[Any], history: Sequence[Any]) -> list[Problem]:
    """A13: the last assistant message's thinking is what was returned, or all is gone."""
    at, message = next(_replies(messages), (0, None))
    returned = [_thinking(reply) for _, reply in _replies(history) if _are_one(message, reply)]
    report = Report()
    if returned and _thinking(message) not in returned and any(map(_thinking, messages)):
        sentence = "the thinking of the last assistant message is not as it was returned"
        report.add("A13", f"messages[{at}].content", sentence)
    return report.found


def _replies(messages: Sequence[Any]) -> Iterator[tuple[int, Wire]]:
    """The assistant messages with their places, the last one first."""
    for at in range(len(messages) - 1, -1, -1):
        if name_in(messages[at], "role") == "assistant":
            yield at, messages[at]


def _are_one(sent: Any, returned: Any) -> bool:
    """Whether these are one message, but for its thinking and for what was cut beside calls."""
    calls = _calls(sent)
    return calls == _calls(returned) and (bool(calls) or _said(sent) == _said(returned))


def _calls(message: Any) -> list[Any]:
    return [b.get("id") for b in blocks_of(message) if name_in(b, "type") == "tool_use"]


def _said(message: Any) -> list[Any]:
    return [block for block in blocks_of(message) if name_in(block, "type") not in THOUGHTS]


def _thinking(message: Any) -> list[Any]:
    return [block for block in blocks_of(message) if name_in(block, "type") in THOUGHTS]
