"""Looking for a line in the view, and for the call that brings it back.

A piece of evidence is a line of a file that some tool result showed. As long as a visible
tool result shows it, it can be quoted. When the result has become a notice, the notice says
which call reads it again; ``ways`` lists such calls, the best first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from demo import notices
from demo.status import Address

__all__ = ["Need", "Shown", "View", "find", "text_of", "ways"]

_PART = re.compile(r'"start_line": ?(\d+), ?"end_line": ?(\d+)')

ToolUse = tuple[str, dict[str, Any]]
"""The name and the arguments of a call the model makes."""


class Need(Struct, frozen=True):
    """A line that must be quoted.

    Attributes:
        place: its file and number.
        word: something the line holds, as a regular expression.
    """

    place: Address
    word: str


class Shown(Struct, frozen=True):
    """A tool result as the view shows it, beside the call that asked for it."""

    name: str
    arguments: dict[str, Any]
    text: str


class Notice(Struct, frozen=True):
    """A visible line that spells out recall calls, and the result it stands in, if any."""

    shown: Shown | None
    line: str
    calls: tuple[notices.Call, ...]


class View:
    """What the model sees of one request.

    Attributes:
        messages: the request's messages.
        offered: the names of the tools in the request.
        search: the tool that searches a ref and its argument for the ref, or None.
        finds: whether a tool finds lines by words in all that left the view.
        results: the tool results in order, each with its call.
        notices: the lines that say how to read on, the newest first.
    """

    def __init__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any]
    ) -> None:
        self.messages = messages
        self.offered = {tool["function"]["name"] for tool in tools}
        self.search = _search_of(tools)
        self.finds = "words" in _parameters(tools).get(
            notices.CONTINUATION, {}
        )
        self._uses = {
            call_id: use for m in messages for call_id, use in uses(m)
        }
        self.results = [
            self._shown(m) for m in messages if m["role"] == "tool"
        ]
        self.notices = list(_notices(self))

    def _shown(self, message: Mapping[str, Any]) -> Shown:
        name, arguments = self._uses.get(message["tool_call_id"], ("", {}))
        return Shown(name, arguments, text_of(message))

    def latest(self) -> list[Shown]:
        """The results that came in since the last reply."""
        tail = []
        for message in reversed(self.messages):
            if message["role"] != "tool":
                break
            tail.append(self._shown(message))
        return tail[::-1]

    def opens(self, ref: str, path: str) -> bool:
        """Whether some visible text says that a ref opens a result about a path."""
        for notice in self.notices:
            if any(call.ref == ref for call in notice.calls):
                shown = notice.shown
                if shown is not None and shown.name not in notices.RECALL:
                    return _reads(shown, path)
                if path in notice.line:
                    return True
        return False


def _parameters(tools: Sequence[Any]) -> dict[str, Any]:
    """The parameters of each tool, by its name."""
    return {
        tool["function"]["name"]: tool["function"]
        .get("parameters", {})
        .get("properties", {})
        for tool in tools
    }


def _search_of(tools: Sequence[Any]) -> tuple[str, str] | None:
    taken = _parameters(tools)
    if notices.GREP in taken:
        return notices.GREP, "ref_id"
    searches = "pattern" in taken.get(notices.CONTINUATION, {})
    return (notices.CONTINUATION, "tool_call_id") if searches else None


def _notices(view: View) -> Iterator[Notice]:
    """Every visible line that spells out a recall call, newest first."""
    texts: list[tuple[Shown | None, str]] = [
        (shown, shown.text) for shown in view.results
    ]
    texts += [(None, text_of(m)) for m in view.messages if m["role"] != "tool"]
    for shown, text in reversed(texts):
        for line in text.split("\n") if notices.may_call(text) else ():
            if found := notices.calls(line):
                yield Notice(shown, line, tuple(found))


def uses(message: Mapping[str, Any]) -> Iterator[tuple[str, ToolUse]]:
    """The tool calls of a message: id, name, arguments (empty where they do not parse)."""
    for call in message.get("tool_calls") or ():
        try:
            arguments = json.loads(call["function"]["arguments"])
        except json.JSONDecodeError:
            arguments = {}
        yield call["id"], (call["function"]["name"], arguments)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whether one string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def find(view: View, need: Need) -> str | None:
    """The text of a needed line, from the newest result of reading its file that shows it.

    What a search says about a line is a hint; what the file says is evidence.
    """
    path, line = need.place.path, need.place.line
    read = re.compile(rf"^ *{line}\|(.*)$", re.MULTILINE)
    recalled = re.compile(rf"(?:^|\D){line}\|(.*)$", re.MULTILINE)
    for shown in reversed(view.results):
        text = shown.text
        if shown.name in notices.RECALL and not _ref(shown.arguments):
            text = notices.lines_of(text, "read_file", path)
            ours, pattern = bool(text), recalled
        elif shown.name in notices.RECALL:
            ours, pattern = view.opens(_ref(shown.arguments), path), recalled
        else:
            ours, pattern = _reads(shown, path), read
        for match in pattern.finditer(text) if ours else ():
            if re.search(need.word, match[1]):
                return match[1]
    return None


def ways(view: View, need: Need) -> Iterator[ToolUse]:
    """The calls that may bring a needed line back, the best first.

    Searching what the notices of the right results open; finding the line by words in all that
    left the view; reading on page by page; the same through an index that is itself set aside; at
    the very last the file again.
    """
    path, line = need.place.path, need.place.line
    named = need.word.startswith("(def|class) ")
    pattern = need.word if named else rf"\b{line}\|.*{need.word}"
    direct = _sources(view, need)
    yield from _greps(view, direct, pattern)
    if view.finds:
        yield (
            notices.CONTINUATION,
            {"words": f"read_file {path}", "pattern": pattern},
        )
    yield from _pages(view, direct)
    index = [
        call
        for notice in view.notices
        if notice.shown is None
        for call in notice.calls
    ]
    yield from _greps(view, index, re.escape(path))
    yield from _pages(view, index)
    yield "read_file", {"path": path, "start_line": line, "end_line": line}


def _sources(view: View, need: Need) -> list[notices.Call]:
    """The calls that open the results in which the line was, or may have been."""
    right = [
        n
        for n in view.notices
        if n.shown is not None and _covers(n.shown, need)
    ]
    right += [n for n in view.notices if _speaks_of(n.line, need)]
    return list(
        dict.fromkeys(call for notice in right for call in notice.calls)
    )


def _reads(shown: Shown, path: str) -> bool:
    return shown.name == "read_file" and shown.arguments.get("path") == path


def _covers(shown: Shown, need: Need) -> bool:
    given, line = shown.arguments, need.place.line
    within = (
        int(given.get("start_line", 1))
        <= line
        <= int(given.get("end_line", line))
    )
    return _reads(shown, need.place.path) and within


def _speaks_of(line: str, need: Need) -> bool:
    """Whether an account's line is about reading the needed line of the file."""
    if need.place.path not in line:
        return False
    part = _PART.search(line)
    return part is None or int(part[1]) <= need.place.line <= int(part[2])


def _greps(
    view: View, sources: Sequence[notices.Call], pattern: str
) -> Iterator[ToolUse]:
    if view.search is not None:
        name, key = view.search
        for ref in dict.fromkeys(call.ref for call in sources):
            yield name, {key: ref, "pattern": pattern}


def _pages(view: View, sources: Sequence[notices.Call]) -> Iterator[ToolUse]:
    """Each source from where its notice says, then where the pages so far said to go on."""
    if notices.CONTINUATION not in view.offered:
        return
    first = [call for call in sources if call.name == notices.CONTINUATION]
    refs = {call.ref for call in first}
    for call in first:
        yield notices.CONTINUATION, call.arguments()
    for shown in view.results:
        if (
            shown.name == notices.CONTINUATION
            and _ref(shown.arguments) in refs
        ):
            offset = notices.page(shown.text)[1]
            if offset is not None:
                yield (
                    notices.CONTINUATION,
                    {**shown.arguments, "offset": offset},
                )


def _ref(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("ref_id") or arguments.get("tool_call_id") or "")
