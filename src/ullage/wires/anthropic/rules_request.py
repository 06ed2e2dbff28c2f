"""Anthropic's rules that a whole request shows, and what was returned.

The head (A0, A8, A9), cache markers (A21), how the messages may end (A11, A12), thinking (A13,
A14), the tools of an open server call (A19), forced tools (A24) and images (A25). A model that is
not named is judged by none of its own rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile
from typing import Any

from ullage.tokens import catalog
from ullage.tokens.payload import image_size
from ullage.wires.anthropic.blocks import MEDIA, SERVER_CALLS, THOUGHTS
from ullage.wires.anthropic.models import claude, refuses_force, takes_no_system_messages
from ullage.wires.rules.problem import Problem, Report, Wire, items_of, name_in

__all__ = ["Markers", "blocks_of", "is_tool_name", "judge_request", "thinking_problems"]

_MARKERS = 4
_NO_PREFILL_SINCE = (4, 6)
_TURN_BEGINS = ("thinking", "redacted_thinking", "compaction")
is_tool_name = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z").match
"""Whether a tool may be called so (A8)."""


def judge_request(
    head: Wire, messages: list[Wire], images: list[tuple[str, Wire]], report: Report
) -> None:
    """The rules that the messages alone do not show.

    Args:
        head: the request without its messages.
        messages: those that are objects.
        images: the places of the images in them, and their blocks.
        report: takes what is found.
    """
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
    at = next((at for at, m in enumerate(messages) if m.get("role") == "system"), None)
    if at is not None and takes_no_system_messages(head.get("model")):
        report.add("A0", f"messages[{at}].role", "this model takes no system messages here")
    _ending(head, messages, report)
    _thinking_and_tools(head, messages, report)
    _images(head, images, report)


def _ending(head: Wire, messages: list[Wire], report: Report) -> None:
    """A11 and A12. A paused turn may end the request; its open server tool shows it."""
    if not messages or not _is_model(messages[-1]):
        return
    where, last = f"messages[{len(messages) - 1}]", blocks_of(messages[-1])[-1:]
    model = claude(head.get("model"))
    if model is not None and model[1] >= _NO_PREFILL_SINCE:
        paused = _open_server_calls(_last_reply(messages))
        report.need(paused, "A11", where, "the last message is the assistant's")
    elif last and name_in(last[0], "type") == "text":
        text = name_in(last[0], "text") or ""
        report.need(text == text.rstrip(), "A12", where, "its text ends with white space")


def _thinking_and_tools(head: Wire, messages: list[Wire], report: Report) -> None:
    """A14, A19 and A24: what thinking and open calls ask of the rest."""
    manual = name_in(head.get("thinking"), "type") == "enabled"
    begin = _open_loop(messages) if manual else None
    if begin is not None:
        first = blocks_of(messages[begin])[:1]
        sentence = "the open turn does not begin with thinking, and thinking is manual"
        begins = bool(first) and name_in(first[0], "type") in _TURN_BEGINS
        report.need(begins, "A14", f"messages[{begin}].content", sentence)
    if isinstance(head.get("tools"), list) or head.get("model"):  # else it is a history alone
        names = {name_in(tool, "name") for tool in items_of(head.get("tools"))}
        for name in _unfinished(messages) - names:
            report.add("A19", "tools", f"an open call of {name[:64]!r} without its tool")
    if name_in(head.get("tool_choice"), "type") in ("any", "tool"):
        sentence = "a forced tool, with a model or a mode of thinking that excludes it"
        allowed = not manual and not refuses_force(head.get("model"))
        report.need(allowed, "A24", "tool_choice", sentence)


def _open_loop(messages: list[Wire]) -> int | None:
    """Where the turn begins whose results are the last thing said; None if there is no such.

    A tool loop is one turn: it goes back to the last message of the user's that held more than
    results. Words beside the newest results leave it open, a message behind them ends it, and
    system messages are no part of it.
    """
    said = [at for at, message in enumerate(messages) if message.get("role") != "system"]
    begin = None
    if not said or "tool_result" not in _kinds(messages[said[-1]]):
        return None
    while said and messages[said[-1]].get("role") == "user":
        said.pop()
    while said:
        at = said.pop()
        if _is_model(messages[at]):
            begin = at
        elif _kinds(messages[at]) != {"tool_result"}:
            break
    return begin


def _unfinished(messages: list[Wire]) -> set[str]:
    """The server's tools whose call stands open beside a client's, where somebody spoke since."""
    reply = _last_reply(messages)
    kinds = {name_in(block, "type") for block in reply}
    if "tool_use" not in kinds or _is_model(messages[-1]):
        return set()
    opened = _open_server_calls(reply)
    return {name_in(b, "name") or "" for b in opened if name_in(b, "type") == "server_tool_use"}


def _open_server_calls(blocks: list[Any]) -> list[Any]:
    """The calls of the server's tools that have no result among these blocks."""
    done = {name_in(block, "tool_use_id") for block in blocks}
    calls = [block for block in blocks if name_in(block, "type") in SERVER_CALLS]
    return [block for block in calls if name_in(block, "id") not in done]


def _last_reply(messages: list[Wire]) -> list[Any]:
    """The blocks of the last run of assistant messages."""
    behind = dropwhile(lambda message: not _is_model(message), reversed(messages))
    run = [*takewhile(_is_model, behind)]
    return [block for message in reversed(run) for block in blocks_of(message)]


def _is_model(message: Wire) -> bool:
    return message.get("role") == "assistant"


def _kinds(message: Wire) -> set[str | None]:
    return {name_in(block, "type") for block in blocks_of(message)}


def blocks_of(thing: Any) -> list[Any]:
    """The content of a message or a result as blocks; a string is one text."""
    content = thing.get("content") if type(thing) is dict else None
    return [{"type": "text", "text": content}] if type(content) is str else items_of(content)


# -- images and cache markers -------------------------------------------------------------


def _images(head: Wire, images: list[tuple[str, Wire]], report: Report) -> None:
    """A25. The size shows of images whose data is in the request."""
    most = MEDIA.images
    if len(images) > MEDIA.images_small_window:
        model = catalog.lookup(str(head.get("model") or ""))
        if model.known and model.window_tokens <= MEDIA.small_window_tokens:
            most = MEDIA.images_small_window
    report.need(len(images) <= most, "A25", "messages", f"{len(images)} images, {most} may be sent")
    side = MEDIA.many_side_px if len(images) > MEDIA.many_images else MEDIA.side_px
    for where, block in images:
        source = block.get("source")
        data = name_in(source, "data") if name_in(source, "type") == "base64" else None
        if data is None:
            continue
        longest = max(image_size(data))
        sentence = f"{longest} pixels a side, {side} are allowed"
        report.need(longest <= side, "A25", where, sentence)
        size = (len(data) - data[-2:].count("=")) * 3 // 4
        sentence = f"{size} bytes, {MEDIA.image_bytes} are allowed"
        report.need(size <= MEDIA.image_bytes, "A25", where, sentence)


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
        if type(messages[at]) is dict and _is_model(messages[at]):
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
