"""Trajectories: one run a line, already in wire form, with the recorder's own notes.

    {"id": …, "format": "openai-chat", "messages": […], "usage": [{"message_index": …}, …]}

Messages are taken as recorded, less the recorder's own keys (``x_…``). Nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._request import has_messages
from ullage.replay.readers._run import FormatName, Report, Run
from ullage.values.usage import Usage
from ullage.wires.usages import Counts, read

_FORMATS: tuple[FormatName, ...] = ("openai-chat", "anthropic")
# Their output counts are often the value at the start of the stream.
_UNSURE_OUTPUT = ("claude-code", "claudecode_run")
_INPUT, _READ = "input_tokens", "cache_read_input_tokens"
_WRITTEN = "cache_creation_input_tokens"


def is_trajectory(value: dict[str, Any]) -> bool:
    """Whether the value is a trajectory: it names its format."""
    return value.get("format") in _FORMATS and "messages" in value


def runs_of(value: dict[str, Any], name: str, line: int, report: Report) -> Iterator[Run]:
    """The run in one trajectory; damage when its messages are not messages."""
    if not has_messages(value):
        report.add(line, "a trajectory without a list of messages with roles")
        return
    messages = [_bare(message) for message in value["messages"]]
    recorded = value.get("id")
    model, task = value.get("model"), value.get("task")
    yield Run(
        id=recorded if isinstance(recorded, str) and recorded else f"{name}:{line}",
        format=value["format"],
        request={"model": model} if isinstance(model, str) else {},
        messages=messages,
        usage=_usage(value, messages),
        source="trajectory",
        stamps={},
        line=line,
        task=task if isinstance(task, str) and not value.get("joined") else "",
    )


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """The message without the recorder's keys; reasoning is kept when it is text."""
    return {
        key: item
        for key, item in message.items()
        if not key.startswith("x_") and (key != "reasoning_content" or isinstance(item, str))
    }


def _usage(value: dict[str, Any], messages: list[dict[str, Any]]) -> dict[int, Usage]:
    """Reported counts by message index.

    Recorders took the vendor's fields over as they were. Cached tokens lie outside the
    input where there is a count of cache writes, or where more was read than the input
    holds; else inside (`provider-rules` §4.1).
    """
    rows = [row for row in value.get("usage") or () if _is_usage(row, len(messages))]
    is_outside = any(_WRITTEN in row or (row.get(_READ) or 0) > row[_INPUT] for row in rows)
    is_sure = value.get("harness") not in _UNSURE_OUTPUT
    counts = Counts(
        prompt=_INPUT,
        read=_READ,
        written=_WRITTEN,
        beside_cache=is_outside,
        output="output_tokens" if is_sure else "",
        reasoning="reasoning_tokens" if is_sure else "",
    )
    found = ((row["message_index"], read(row, counts)) for row in rows)
    return {index: usage for index, usage in found if usage is not None}


def _is_usage(row: Any, messages: int) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get(_INPUT), int):
        return False
    index = row.get("message_index")
    return isinstance(index, int) and 0 <= index <= messages
