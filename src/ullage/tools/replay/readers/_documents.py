"""Runs that are one value each: ATIF, SWE-agent, inspect, LangChain, Pydantic AI.

    ATIF       {"schema_version": "ATIF-v…", "agent": {"model_name": …}, "steps": [
                   {"source": "user", "message": …},
                   {"source": "agent", "message": …, "tool_calls": [{"tool_call_id": …,
                    "function_name": …, "arguments": {…}}], "observation": {"results": [
                        {"source_call_id": …, "content": …}]}}]}
    SWE-agent  {"trajectory": […], "history": [{"role": …, "message_type": …}]}
    inspect    {"id": …, "messages": […]}, by itself or under "samples"; ``.eval`` is a zip of it
    LangChain  {"messages": [{"type": "AIMessage", "content": …, "tool_calls": […]}]}, or with
               ``data`` or ``kwargs`` in a message, as its own functions write it
    Pydantic   {"messages": [{"kind": "request", "parts": […]}]} (see `_pydantic_ai`)

They are read as Chat Completions, whatever provider the agent spoke to: that is not in them.
Agents that act by text (SWE-agent's first ones) have no calls; their runs are conversations, in
which the user says what they observe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ullage.tools.replay.readers import _langchain, _pydantic_ai
from ullage.tools.replay.readers._log import (
    Call,
    LoggedConversation,
    answer,
    calls_in,
    fields_of,
    json_text,
    reply,
    say,
    seconds,
    text_of,
)
from ullage.tools.replay.readers._request import are_objects
from ullage.tools.replay.readers._run import DamageReport, Run

Value = dict[str, Any]


def is_document(value: Value) -> bool:
    """Whether the value is one of these runs."""
    return _kind_of(value) is not None or _is_note(value)


def runs_of(
    value: Value, name: str, line: int, report: DamageReport
) -> Iterator[Run]:
    """The runs in it: one, but for an inspect log of many samples."""
    if _is_note(value):
        return
    if "samples" in value:
        for number, sample in enumerate(value["samples"] or (), 1):
            if _is_sample(sample):
                yield from runs_of(sample, name, line, report)
            else:
                report.add(
                    line,
                    f"sample {number} of an inspect log holds no messages",
                )
        return
    kind = _kind_of(value) or ""
    history = LoggedConversation(
        f"{name}:{_id_in(value) or line}", "openai-chat", report
    )
    history.line = line
    _TAKE[kind](value, history)
    run = history.run()
    if run is None:
        report.add(line, f"a run of {kind} in which no model replies")
    else:
        yield run


def _id_in(value: Value) -> str:
    """What it calls itself."""
    for key in ("session_id", "instance_id", "environment", "id"):
        if isinstance(value.get(key), (str, int)):
            epoch = f"/{value['epoch']}" if "epoch" in value else ""
            return f"{value[key]}{epoch}"
    return ""


def _kind_of(value: Value) -> str | None:
    messages = value.get("messages")
    if str(value.get("schema_version")).startswith("ATIF-") and are_objects(
        value.get("steps")
    ):
        return "atif"
    if "trajectory" in value and are_objects(value.get("history")):
        return "swe-agent"
    if _is_sample(value) or (
        "eval" in value and isinstance(value.get("samples"), list)
    ):
        return "inspect"
    if _langchain.are_messages(messages):
        return "langchain"
    if _pydantic_ai.are_messages(messages):
        return "pydantic-ai"
    return None


def _is_note(value: Value) -> bool:
    """Lines between the LangChain messages of one log, which hold none."""
    keys = {"metadata": "total_stages", "stage_start": "num_events"}
    return keys.get(str(value.get("type"))) in value


def _is_sample(value: Any) -> bool:
    is_complete = (
        isinstance(value, dict) and {"id", "epoch", "messages"} <= value.keys()
    )
    return is_complete and are_objects(value["messages"])


def _atif(value: Value, history: LoggedConversation) -> None:
    """A step is one reply with what came of it."""
    history.of_model(fields_of(value.get("agent")).get("model_name"))
    for step in value["steps"]:
        history.stamp = seconds(step.get("timestamp"))
        text = text_of(step.get("message"))
        history.of_model(step.get("model_name"))
        if step.get("source") in ("user", "system"):
            say(history, text, role=step["source"])
            continue
        calls = calls_in(
            step.get("tool_calls"),
            "tool_call_id",
            "function_name",
            "arguments",
        )
        reply(history, text, calls)
        history.stamp = None
        for result in fields_of(step.get("observation")).get("results") or ():
            seen = text_of(result.get("content"))
            source = result.get("source_call_id")
            if calls:
                answer(history, str(source) if source else None, seen)
            else:
                say(history, seen)


def _swe_agent(value: Value, history: LoggedConversation) -> None:
    for message in value["history"]:
        raw_calls = [
            call
            for call in message.get("tool_calls") or ()
            if isinstance(call, dict)
        ]
        calls = [
            (str(call.get("id")), *_function(call.get("function")))
            for call in raw_calls
        ]
        answered = message.get("tool_call_ids") or [
            message.get("tool_call_id")
        ]
        _message(
            history, message, str(message.get("role")), calls, answered[0]
        )


def _function(body: Any) -> tuple[str, Any]:
    return (
        (str(body.get("name")), body.get("arguments"))
        if isinstance(body, dict)
        else ("", "")
    )


def _inspect(value: Value, history: LoggedConversation) -> None:
    attachments = fields_of(value.get("attachments"))
    history.of_model(fields_of(value.get("output")).get("model"))
    for stored in value["messages"]:
        message = _attached(stored, attachments)
        calls = calls_in(
            message.get("tool_calls"), "id", "function", "arguments"
        )
        error = message.get("error")
        if (
            isinstance(error, dict)
            and error.get("message")
            and not message.get("content")
        ):
            message = {**message, "content": error["message"]}
        role = str(message.get("role"))
        _message(history, message, role, calls, message.get("tool_call_id"))


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """The value with what inspect keeps beside it put back."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attachments.get(value.removeprefix("attachment://"), value)
    if isinstance(value, dict):
        return {
            key: _attached(item, attachments) for key, item in value.items()
        }
    return (
        [_attached(item, attachments) for item in value]
        if isinstance(value, list)
        else value
    )


def _take_langchain(value: Value, history: LoggedConversation) -> None:
    for written in value["messages"]:
        role, message = _langchain.plain(written)
        calls = calls_in(message.get("tool_calls"), "id", "name", "args")
        about = fields_of(message.get("response_metadata"))
        history.of_model(about.get("model_name") or about.get("model"))
        _message(history, message, role, calls, message.get("tool_call_id"))


def _take_pydantic_ai(value: Value, history: LoggedConversation) -> None:
    _pydantic_ai.take_messages(value["messages"], history)


def _message(
    history: LoggedConversation,
    message: Value,
    role: str,
    calls: list[Call],
    answered: Any,
) -> None:
    """One message with a role: said, replied, or the result of a call."""
    content = message.get("content")
    text = (
        text_of(content)
        if isinstance(content, (str, list))
        else json_text(content)
    )
    if role == "tool":
        answer(history, str(answered) if answered else None, text)
        return
    text = "" if content is None else text
    if role != "assistant":
        say(history, text, role="system" if role == "system" else "user")
    elif text or calls:
        reply(history, text, calls)


_TAKE: dict[str, Callable[[Value, LoggedConversation], None]] = {
    "atif": _atif,
    "swe-agent": _swe_agent,
    "inspect": _inspect,
    "langchain": _take_langchain,
    "pydantic-ai": _take_pydantic_ai,
}
