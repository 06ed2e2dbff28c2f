"""Anthropic's rules about server tools (A18, A19), cache markers (A21) and thinking (A13).

A server tool runs at the provider: call and result both stand in assistant messages. The
result follows in the same message, or, when the turn stayed open (paused, or mixed with
client tools), in the assistant message after. Two generations of open calls are enough to
say so: those of this message, and those carried over from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ullage.wires.anthropic.blocks import SERVER_CALLS, THOUGHTS
from ullage.wires.rules.problem import Problem, Report, Wire, name_in, plain_message

__all__ = [
    "Markers",
    "ServerTools",
    "head_markers",
    "thinking_problems",
]

MARKERS = 4


class ServerTools:
    """Calls of server tools that wait for their result, by id, with their place."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._open: dict[str, str] = {}
        self._carried: dict[str, str] = {}
        self.ended_with_result = False

    def begin_assistant(self) -> None:
        """An assistant message begins: what was carried till now is overdue."""
        if self._carried or self._open:
            self.overdue(self._report)
            self._carried, self._open = self._open, {}
        self.ended_with_result = False

    def overdue(self, report: Report) -> None:
        """Note the calls whose result should have come by now."""
        for where in self._carried.values():
            report.add("A18", where, "this server tool call has no result")

    def block(self, block: Wire, kind: str, where: str) -> None:
        """Take the next block, whoever made it."""
        self.ended_with_result = False
        if kind in SERVER_CALLS:
            self._open[str(block.get("id"))] = where
        elif kind.endswith("_tool_result"):
            self.ended_with_result = True
            asked = str(block.get("tool_use_id"))
            if self._open.pop(asked, None) is None and self._carried.pop(asked, None) is None:
                self._report.add("A18", where, "a server tool's result without its call")

    def follow_up(self, content: Any, at: int) -> None:
        """The user answers a turn that held client calls."""
        if self._open:
            blocks = content if isinstance(content, list) else [None]
            only = all(type(b) is dict and b.get("type") == "tool_result" for b in blocks)
            sentence = "an unfinished server tool allows nothing but results here"
            self._report.need(only, "A19", f"messages[{at}].content", sentence)

    def interrupted(self, at: int) -> None:
        """The user speaks after a turn that held no client calls."""
        for where in self._open.values():
            sentence = f"this server tool call has no result before messages[{at}]"
            self._report.add("A18", where, sentence)
        self._open = {}


class Markers:
    """The cache markers seen so far (A21)."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._ttls: list[str] = []

    def block(self, block: Wire, where: str) -> None:
        """Take a block that carries a marker."""
        kind = block.get("type")
        if kind in THOUGHTS:
            self._report.add("A21", where, "thinking carries no cache marker")
        elif kind == "text" and not block.get("text"):
            self._report.add("A21", where, "empty text carries no cache marker")
        ttl = _ttl(block)
        if ttl == "1h" and "5m" in self._ttls:
            self._report.add("A21", where, "a 1h marker stands behind a 5m marker")
        self._ttls.append(ttl)
        if len(self._ttls) == MARKERS + 1:
            self._report.add("A21", where, f"more than {MARKERS} cache markers")


def head_markers(body: Wire, messages: Any) -> list[Problem]:
    """The rules about markers that the messages alone do not show: A21 over the request."""
    head = [t for key in ("tools", "system") for t in _marked(body.get(key))]
    top = [body] if body.get("cache_control") is not None else []
    if not head and not top:
        return []
    report = Report()
    inside = [b for m in _list(messages) for b in _marked(_content(plain_message(m)))]
    ttls = [_ttl(thing) for thing in head + inside + top]
    if len(ttls) > MARKERS >= len(inside):
        report.add("A21", "cache_control", f"{len(ttls)} cache markers, {MARKERS} are allowed")
    last = _last_block(messages)
    if top and last.get("cache_control") is not None and _ttl(last) != _ttl(body):
        sentence = "it lives otherwise than the marker of the last block"
        report.add("A21", "cache_control", sentence)
    elif "5m" in ttls and "1h" in ttls[ttls.index("5m") :] and _is_heads(ttls, head, top):
        report.add("A21", "cache_control", "a 1h marker stands behind a 5m marker")
    return report.found


def _is_heads(ttls: list[str], head: list[Wire], top: list[Wire]) -> bool:
    """Whether the order of markers is wrong by one of the head; `Markers` tells of the others."""
    return ttls.index("5m") < len(head) or (bool(top) and ttls[-1] == "1h")


def _last_block(messages: Any) -> Wire:
    blocks = _content(plain_message(messages[-1])) if _list(messages) else []
    return blocks[-1] if blocks and type(blocks[-1]) is dict else {}


def thinking_problems(messages: Any, history: Sequence[Any]) -> list[Problem]:
    """A13: the last assistant message's thinking is what was returned, or all is gone."""
    at, message = next(_assistant_from_the_end(messages), (0, None))
    replies = (reply for _, reply in _assistant_from_the_end(history))
    returned = [_thinking(reply) for reply in replies if _are_one(message, reply)]
    if not returned or _thinking(message) in returned:
        return []
    if not any(_thinking(message) for message in messages):
        return []
    report = Report()
    sentence = "the thinking of the last assistant message is not as it was returned"
    report.add("A13", f"messages[{at}].content", sentence)
    return report.found


def _assistant_from_the_end(messages: Any) -> Iterator[tuple[int, Any]]:
    for at in range(len(_list(messages)) - 1, -1, -1):
        message = plain_message(messages[at])
        if type(message) is dict and message.get("role") == "assistant":
            yield at, message


def _are_one(sent: Any, returned: Any) -> bool:
    """Whether these are one message, but for its thinking and for what was cut beside calls."""
    calls = _calls(sent)
    return calls == _calls(returned) and (bool(calls) or _said(sent) == _said(returned))


def _calls(message: Any) -> list[Any]:
    blocks = _content(message)
    return [b.get("id") for b in blocks if type(b) is dict and b.get("type") == "tool_use"]


def _said(message: Any) -> list[Any]:
    return [block for block in _content(message) if name_in(block, "type") not in THOUGHTS]


def _thinking(message: Any) -> list[Wire]:
    blocks = _content(plain_message(message))
    return [b for b in blocks if type(b) is dict and b.get("type") in THOUGHTS]


def _content(message: Any) -> list[Any]:
    content = message.get("content") if type(message) is dict else None
    return content if isinstance(content, list) else []


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _marked(blocks: Any) -> Iterator[Wire]:
    """The blocks with a marker, those inside tool results too, in order."""
    for block in blocks if isinstance(blocks, list) else ():
        if type(block) is dict:
            if block.get("type") == "tool_result":
                yield from _marked(block.get("content"))
            if block.get("cache_control") is not None:
                yield block


def _ttl(thing: Wire) -> str:
    control = thing.get("cache_control")
    return str(control.get("ttl") or "5m") if type(control) is dict else "5m"
