"""Answer a recall call. Whatever is wrong with the call is reported to the model, never raised."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from ullage.recall.found import FromHistory, find
from ullage.recall.grep import search
from ullage.recall.pattern import PatternError
from ullage.recall.read import characters, lines, numbered
from ullage.recall.source import Source
from ullage.values.effects import Get, Output, Steps
from ullage.values.messages import ToolCall
from ullage.values.notices import Words
from ullage.values.toolset import CONTINUATION, GREP

D = TypeVar("D", int, None)

_loads = msgspec.json.Decoder().decode


class Answer(msgspec.Struct, frozen=True):
    """What a recall call gives.

    Attributes:
        text: what the model reads.
        ref: the ref that was opened, or None if none was.
        is_error: whether the call could not be answered.
        block: a content block to give back as what it was, or None.
    """

    text: str
    ref: str | None = None
    is_error: bool = False
    block: Any = None


def answer(call: ToolCall, words: Words, from_history: FromHistory) -> Steps[Answer]:
    """Answer one recall call."""
    name = call.name.removeprefix(words.prefix)
    arguments = _arguments(call.arguments)
    if name not in words.toolset.names or arguments is None:
        return _error("the arguments are not a JSON object", "Send the call again.")
    named_by = "tool_call_id" if name == CONTINUATION else "ref_id"
    wanted = arguments.get(named_by)
    if not isinstance(wanted, str) or not wanted:
        return _error(f"{named_by} is missing", "Give the ref that the notice names.")
    found = yield from find(wanted, from_history)
    if found is None:
        if words.toolset.unknown is not None:
            asked = json.dumps(wanted[:80])[1:-1]
            return Answer(words.toolset.unknown.format(asked=asked), is_error=True)
        return _error(
            f"nothing is kept under {wanted[:80]!r}",
            "Copy the ref from the notice exactly; it has 16 characters.",
        )
    searches = name == GREP or (words.toolset.searches and bool(arguments.get("pattern")))
    if found.kind == "block" and not searches and not arguments.get("offset"):
        output = found if isinstance(found, Output) else (yield Get(found.ref))
        block = _loads(output.text)
        kind = block.get("type", "block") if isinstance(block, dict) else "block"
        return Answer(f"[{kind} {output.ref}, complete]", output.ref, block=block)
    source = Source(found)
    if searches:
        return (yield from _search(arguments, source, words, 2 if name == CONTINUATION else 0))
    return (yield from _page(name, arguments, source, words, wanted))


def _page(
    name: str, arguments: dict[str, Any], source: Source, words: Words, asked: str
) -> Steps[Answer]:
    toolset = words.toolset
    if name == CONTINUATION:
        offset = _integer(arguments.get("offset"), None)
        page = yield from characters(source, offset, words, toolset.page_chars, asked)
        return Answer(page, source.ref)
    offset = _integer(arguments.get("offset"), 0)
    limit = _integer(arguments.get("limit"), toolset.page_lines)
    page = yield from lines(source, offset, limit, words, toolset.page_chars)
    return Answer(page, source.ref)


def _search(arguments: dict[str, Any], source: Source, words: Words, context: int) -> Steps[Answer]:
    pattern, context = arguments.get("pattern"), _integer(arguments.get("context_lines"), context)
    if not isinstance(pattern, str) or not pattern:
        return _error("pattern is missing", "Give a regular expression in RE2 syntax.")
    try:
        found = yield from search(
            source,
            pattern,
            ignore_case=bool(arguments.get("ignore_case")),
            context_lines=min(max(context, 0), 5),
            max_matches=words.toolset.matches,
        )
    except PatternError as error:
        return _error(str(error), "Change the pattern.")
    shown = [
        numbered(line.number, line.text, "-" if line.match is None else ":")
        + (f" [… a part of the line, from character {line.start:,}]" if line.clipped else "")
        for line in found.lines
    ]
    more = "" if found.total_is_exact else "more than "
    counts = f"{found.shown:,} of {more}{found.total:,} matching lines"
    last = f"[{counts}; {source.chars:,} characters searched]"
    return Answer("\n".join([*shown, last]), source.ref)


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        value = _loads(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _integer(value: Any, default: D) -> int | D:
    """A number as models write it: 4000, 4000.0, "4000", "4,000" or "4000.0"."""
    if isinstance(value, str):
        value = value.replace(",", "").removesuffix(".0")
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _error(problem: str, remedy: str) -> Answer:
    return Answer(json.dumps({"error": problem, "remedy": remedy}), is_error=True)
