"""Runs that are one value in wire form: provider requests, and trajectories.

    {"model": …, "messages": […], "tools": […], "response": {…}}    Chat Completions, Anthropic
    {"messages": […], …}                                            the same, of a model unknown
    {"model": …, "input": […] or "…", "response": {…}}              Responses
    {"contents": […], "response": {…}}                              Gemini
    […]                                                             the history alone
    {"id": …, "format": "openai-chat", "messages": […]}             a trajectory names its format

Else the format follows from the field of the history; of the two APIs with ``messages`` from the
reply, else as a session recognises it (`ullage.wires.recognise`); else it is Chat Completions. A
reply is appended when it can be part of a history: one whose calls nobody answered cannot, so it
is left off.

The messages of a trajectory are taken as recorded, less the recorder's own keys (``x_…``). Where
it counts tokens of a reply behind its end, its whole history was sent. Nothing is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from ullage.core.errors import FormatError
from ullage.tools.replay.readers import _langchain, _pydantic_ai
from ullage.tools.replay.readers._run import DamageReport, FormatName, Run
from ullage.wires import FORMATS, WIRES, model_in, recognise, wire_named

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_OF_THE_LOG = (
    "messages", "response", "kwargs", "context_window", "raw_messages", "raw_response",
    "cost", "timestamp", "latency_sec", "id", "usage", "input", "contents",
)  # fmt: skip
_OF_A_REQUEST = (
    "model",
    "system",
    "tools",
    "max_tokens",
    "max_completion_tokens",
    "response",
)
"""With one of these beside the messages it is a request, and so are its other fields; else it is a
row of a data set, whose fields are its own."""
_OF_THE_CLIENT = ("extra_body", "extra_headers", "extra_query", "timeout")
_HISTORIES = ("messages", "contents", "input")
"""The fields with a history, in the order in which they are looked for."""


def has_messages(value: dict[str, Any]) -> bool:
    """``messages`` is a list of messages with roles, in a shape either API would know."""
    messages = value.get("messages")
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(map(_is_message, messages))
    )


def as_request(value: Any) -> Any:
    """A list that is a history alone, as a request; anything else as it is."""
    if _langchain.are_messages(value) or _pydantic_ai.are_messages(value):
        return {"messages": value}
    if not value or not are_objects(value) or "role" not in value[0]:
        return value
    if any("parts" in message for message in value):
        return {"contents": value}
    if all("role" in message for message in value):
        return {"messages": value}
    return (
        {"input": value}
        if all("role" in i or "type" in i for i in value)
        else value
    )


def is_request(value: dict[str, Any]) -> bool:
    """Whether the value is a request: a history, and something else a request has."""
    if "messages" in value:
        return has_messages(value)
    if "contents" in value:
        contents = value["contents"]
        return are_objects(contents) and all(
            isinstance(c.get("parts"), list) for c in contents
        )
    beside = (
        "instructions",
        "tools",
        "max_output_tokens",
        "reasoning",
        "store",
        "response",
    )
    if isinstance(value.get("input"), str):
        return "model" in value and any(key in value for key in beside)
    items = value.get("input")
    known_items = are_objects(items) and all(
        "role" in i or "type" in i for i in items or ()
    )
    is_known = len(value) == 1 or any(
        key in value for key in ("model", *beside)
    )
    return bool(items) and known_items and is_known


def run_of(value: dict[str, Any], name: str, line: int) -> Run:
    """The run in one request; ``value`` is one by `is_request`."""
    response = value.get("response")
    response = response if isinstance(response, dict) else {}
    format = _format(value, response)
    history = value[FORMATS[format].key]
    messages = (
        [{"role": "user", "content": history}]
        if isinstance(history, str)
        else list(history)
    )
    return Run(
        id=f"{name}:{line}",
        format=format,
        request=_head(value, response),
        messages=[*messages, *_answer(format, response)],
        sent_whole=True,
        line=line,
    )


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    calls = message.get("tool_calls") or ()
    return isinstance(calls, (list, tuple)) and all(
        isinstance(call, dict) and not isinstance(call.get("function"), str)
        for call in calls
    )


def _format(value: dict[str, Any], response: dict[str, Any]) -> FormatName:
    key = next(key for key in _HISTORIES if key in value)
    wires = [wire for wire in WIRES if wire.format.key == key]
    replied = [wire for wire in wires if wire.reply_field in response]
    wire = wires[0]
    if len(replied) == 1:
        wire = replied[0]
    elif len(wires) > 1:
        with suppress(FormatError):
            candidate = wire_named(recognise(value).wire)
            wire = candidate if candidate in wires else wire
    return cast("FormatName", wire.name)


def _head(value: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The request without its messages; the log's own fields are left out."""
    kwargs = value.get("kwargs")
    head = dict(kwargs) if isinstance(kwargs, dict) else {}
    head = {
        key: item for key, item in head.items() if key not in _OF_THE_CLIENT
    }
    if "messages" not in value or any(key in value for key in _OF_A_REQUEST):
        head |= {
            key: item for key, item in value.items() if key not in _OF_THE_LOG
        }
    model = response.get("model") or response.get("modelVersion")
    if model_in(head) is None and isinstance(model, str):
        head["model"] = model
    return head


def _answer(name: FormatName, response: dict[str, Any]) -> list[Any]:
    """What the reply adds to the history. A reply with calls adds nothing."""
    wire = wire_named(name)
    if not are_objects(response.get(wire.reply_field)):
        return []
    raws = wire.format.reply(response)
    if any(wire.format.calls(raw) for raw in raws):
        return []
    fields = wire.reply_message_fields
    if fields:
        raws = [
            {key: raw[key] for key in fields if raw.get(key) is not None}
            for raw in raws
        ]
    return raws


def are_objects(values: Any) -> bool:
    """Whether it is a list of objects and nothing else."""
    return isinstance(values, list) and all(
        isinstance(value, dict) for value in values
    )


_FORMATS = tuple(wire.name for wire in WIRES if wire.format.key == "messages")
"""The formats of trajectories."""


def is_trajectory(value: dict[str, Any]) -> bool:
    """Whether the value is a trajectory: it names its format."""
    return value.get("format") in _FORMATS and "messages" in value


def trajectory_of(
    value: dict[str, Any], name: str, line: int, report: DamageReport
) -> Iterator[Run]:
    """The run in one trajectory; damage when its messages are not messages."""
    if not has_messages(value):
        report.add(line, "a trajectory without a list of messages with roles")
        return
    messages = [_bare(message) for message in value["messages"]]
    recorded = value.get("id")
    counted = value.get("usage") or ()
    model = value.get("model")
    task = value.get("task")
    yield Run(
        id=recorded
        if isinstance(recorded, str) and recorded
        else f"{name}:{line}",
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
        if not key.startswith("x_")
        and (key != "reasoning_content" or isinstance(item, str))
    }


def _is_of(row: Any, index: int) -> bool:
    """Whether a row of counts is of the reply that would have stood at this index."""
    is_count = isinstance(row, dict) and isinstance(
        row.get("input_tokens"), int
    )
    return is_count and row.get("message_index") == index
