"""Anthropic's rules that a whole request shows: its head, its model, its last message.

Roles (A0), system texts (A9), tool names (A8), all cache markers (A21), how it may end (A11,
A12), the open turn of manual thinking (A14), the tools of an open server call (A19), compaction
(A22), forced tools (A24) and images (A25). A model that is not named is judged by none of its own
rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.tokens import catalog
from ullage.tokens.payload import image_size
from ullage.wires.anthropic.blocks import MEDIA, SERVER_CALLS
from ullage.wires.anthropic.models import claude, refuses_force, takes_no_system_messages
from ullage.wires.anthropic.rules_blocks import is_tool_name
from ullage.wires.anthropic.rules_extras import head_markers
from ullage.wires.rules.problem import Problem, Report, Wire, kind_of, name_in, plain_message

__all__ = ["head_problems"]

_NO_PREFILL_SINCE = (4, 6)
_TURN_BEGINS = ("thinking", "redacted_thinking", "compaction")


def head_problems(body: Wire, messages: Any) -> list[Problem]:
    """The rules that the messages alone do not show."""
    report = Report()
    given = messages if isinstance(messages, (list, tuple)) else ()
    sent = [m for m in map(plain_message, given) if type(m) is dict]
    _system(body.get("system"), report)
    _tools(body.get("tools"), report)
    _roles(body, sent, report)
    _ending(body, sent, report)
    _open_turn(body, sent, report)
    _compactions(sent, report)
    _images(body, sent, report)
    return report.found + head_markers(body, messages)


def _system(system: Any, report: Report) -> None:
    if system is not None and not isinstance(system, (str, list)):
        report.add("A0", "system", f"text or a list, and it is {kind_of(system)}")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        text = block.get("text") if type(block) is dict else None
        if type(text) is not str or not text or text.isspace():
            report.add("A9", f"system[{index}]", "a text block with text is asked for")


def _tools(tools: Any, report: Report) -> None:
    if tools is not None and not isinstance(tools, list):
        report.add("A0", "tools", f"a list, and it is {kind_of(tools)}")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        name = tool.get("name") if type(tool) is dict else None
        if name is not None and not (type(name) is str and is_tool_name(name)):
            report.add("A8", f"tools[{index}].name", "the tool's name is not allowed")


def _roles(body: Wire, messages: list[Wire], report: Report) -> None:
    """A0: whether the model takes system messages among the others."""
    at = next((at for at, m in enumerate(messages) if m.get("role") == "system"), None)
    if at is not None and takes_no_system_messages(body.get("model")):
        report.add("A0", f"messages[{at}].role", "this model takes no system messages here")


def _ending(body: Wire, messages: list[Wire], report: Report) -> None:
    """A11 and A12. A paused turn may end the request; its open server tool tells it."""
    if not messages or messages[-1].get("role") != "assistant":
        return
    where, blocks = f"messages[{len(messages) - 1}]", _blocks(messages[-1])
    model = claude(body.get("model"))
    if model is not None and model[1] >= _NO_PREFILL_SINCE:
        paused = _open_server_calls(_blocks_of(messages[_last_run(messages) :]))
        report.need(paused, "A11", where, "the last message is the assistant's")
    elif blocks and name_in(blocks[-1], "type") == "text":
        text = name_in(blocks[-1], "text") or ""
        report.need(text == text.rstrip(), "A12", where, "its text ends with white space")


def _open_turn(body: Wire, messages: list[Wire], report: Report) -> None:
    """A14, A19 and A24: what thinking and open calls ask of the rest."""
    manual = name_in(body.get("thinking"), "type") == "enabled"
    begin = _open_loop(messages) if manual else None
    if begin is not None:
        first = next(iter(_blocks(messages[begin])), None)
        sentence = "the open turn does not begin with thinking, and thinking is manual"
        begins = name_in(first, "type") in _TURN_BEGINS
        report.need(begins, "A14", f"messages[{begin}].content", sentence)
    if isinstance(body.get("tools"), list) or body.get("model"):  # else it is a history alone
        tools = body.get("tools")
        names = {name_in(tool, "name") for tool in (tools if isinstance(tools, list) else ())}
        for name in _unfinished(_last_reply(messages)) - names:
            report.add("A19", "tools", f"an open call of {name[:64]!r} without its tool")
    if name_in(body.get("tool_choice"), "type") in ("any", "tool"):
        report.need(
            not manual and not refuses_force(body.get("model")),
            "A24",
            "tool_choice",
            "a forced tool, with a model or a mode of thinking that excludes it",
        )


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
        if messages[at].get("role") == "assistant":
            begin = at
        elif _kinds(messages[at]) != {"tool_result"}:
            break
    return begin


def _kinds(message: Wire) -> set[str | None]:
    return {name_in(block, "type") for block in _blocks(message)}


def _last_reply(messages: list[Wire]) -> list[Any]:
    """The blocks of the last run of assistant messages, if somebody speaks behind it."""
    stop = len(messages)
    while stop and messages[stop - 1].get("role") != "assistant":
        stop -= 1
    return _blocks_of(messages[_last_run(messages[:stop]) : stop]) if stop < len(messages) else []


def _last_run(messages: list[Wire]) -> int:
    """Where the run of assistant messages begins that stands last."""
    start = len(messages)
    while start and messages[start - 1].get("role") == "assistant":
        start -= 1
    return start


def _blocks_of(messages: list[Wire]) -> list[Any]:
    return [block for message in messages for block in _blocks(message)]


def _unfinished(blocks: list[Any]) -> set[str]:
    """Names of the server's tools whose call stands open beside a client's call."""
    if not any(name_in(block, "type") == "tool_use" for block in blocks):
        return set()
    opened = _open_server_calls(blocks)
    return {name_in(b, "name") or "" for b in opened if name_in(b, "type") == "server_tool_use"}


def _open_server_calls(blocks: list[Any]) -> list[Any]:
    """The calls of the server's tools that have no result among these blocks."""
    done = {name_in(block, "tool_use_id") for block in blocks}
    calls = [block for block in blocks if name_in(block, "type") in SERVER_CALLS]
    return [block for block in calls if name_in(block, "id") not in done]


def _compactions(messages: list[Wire], report: Report) -> None:
    """A22, as far as a request shows it: one signed block, first."""
    signed = 0
    for at, message in enumerate(messages):
        for index, block in enumerate(_blocks(message)):
            if name_in(block, "type") != "compaction":
                continue
            where = f"messages[{at}].content[{index}]"
            report.need(block.get("content") != "", "A22", where, "an empty summary")
            if block.get("signature"):
                signed += 1
                report.need(at == index == 0, "A22", where, "a signed summary is not the first")
    report.need(signed < 2, "A22", "messages", f"{signed} signed summaries, and one is allowed")


# -- images -------------------------------------------------------------------------------


def _images(body: Wire, messages: list[Wire], report: Report) -> None:
    """A25. The size shows of images whose data is in the request."""
    images = [found for at, m in enumerate(messages) for found in _images_in(m, f"messages[{at}]")]
    most = MEDIA.images
    if len(images) > MEDIA.images_small_window:
        model = catalog.lookup(str(body.get("model") or ""))
        if model.known and model.window_tokens <= MEDIA.small_window_tokens:
            most = MEDIA.images_small_window
    report.need(len(images) <= most, "A25", "messages", f"{len(images)} images, {most} may be sent")
    side = MEDIA.many_side_px if len(images) > MEDIA.many_images else MEDIA.side_px
    for where, block in images:
        source = block.get("source")
        data = name_in(source, "data") if name_in(source, "type") == "base64" else None
        if data is not None:
            _size(data, side, where, report)


def _size(data: str, side: int, where: str, report: Report) -> None:
    longest = max(image_size(data))
    report.need(longest <= side, "A25", where, f"{longest} pixels a side, {side} are allowed")
    most = MEDIA.image_bytes
    size = (len(data) - data[-2:].count("=")) * 3 // 4
    report.need(size <= most, "A25", where, f"{size} bytes, {most} are allowed")


def _images_in(thing: Any, where: str) -> Iterator[tuple[str, Wire]]:
    """The images of a message, those in its results too, with their places."""
    for index, block in enumerate(_blocks(thing)):
        kind, place = name_in(block, "type"), f"{where}.content[{index}]"
        if kind == "image":
            yield place, block
        elif kind == "tool_result":
            yield from _images_in(block, place)


def _blocks(thing: Any) -> list[Any]:
    """The content of a message or a result as blocks; a string is one text."""
    content = thing.get("content") if type(thing) is dict else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []
