"""Trajectories: one run a line, already in wire form, with the recorder's own notes.

    {"id": …, "format": "openai-chat", "messages": […], "usage": [{"message_index": …}, …]}

Messages are taken as recorded, less the recorder's own keys (``x_…``). Nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._request import has_messages
from ullage.replay.readers._run import FormatName, Report, Run

_FORMATS: tuple[FormatName, ...] = ("openai-chat", "anthropic")


def is_trajectory(value: dict[str, Any]) -> bool:
    """Whether the value is a trajectory: it names its format."""
    return value.get("format") in _FORMATS and "messages" in value


def runs_of(value: dict[str, Any], name: str, line: int, report: Report) -> Iterator[Run]:
    """The run in one trajectory; damage when its messages are not messages."""
    if not has_messages(value):
        report.add(line, "a trajectory without a list of messages with roles")
        return
    messages = [_bare(message) for message in value["messages"]]
    recorded, counted = value.get("id"), value.get("usage") or ()
    model, task = value.get("model"), value.get("task")
    yield Run(
        id=recorded if isinstance(recorded, str) and recorded else f"{name}:{line}",
        format=value["format"],
        request={"model": model} if isinstance(model, str) else {},
        messages=messages,
        sent_whole=any(_is_of(row, len(messages)) for row in counted),
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


def _is_of(row: Any, index: int) -> bool:
    """Whether a row of counts is of the reply that would have stood at this index."""
    known = isinstance(row, dict) and isinstance(row.get("input_tokens"), int)
    return known and row.get("message_index") == index
