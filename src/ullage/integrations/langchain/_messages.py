"""LangChain's messages as ullage's values, and back: content, calls and results as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from ullage import Host, Usage
from ullage.core.errors import FormatError
from ullage.doors.host import (
    NO_REASONING,
    WHOLE,
    Message,
    Part,
    ToolCall,
    ToolResult,
    arguments_of,
    as_json,
    ordered,
)
from ullage.integrations._base import (
    counted,
    is_thought,
    read_parts,
    show_text,
    thought,
    wire_of,
)
from ullage.wires import Change

__all__ = ["HOST"]

_ROLES: dict[type, Literal["assistant", "user", "system"]] = {
    AIMessage: "assistant",
    HumanMessage: "user",
    SystemMessage: "system",
}
_THOUGHT = "reasoning_content"
"""Where models of other makers have what they thought, beside the content."""


def _parse(raw: Any) -> Message:
    if isinstance(raw, ToolMessage):
        content = tuple(read_parts(raw.content, "ToolMessage.content"))
        failed = raw.status == "error"
        result = ToolResult(
            raw.tool_call_id,
            content,  # type: ignore[arg-type]
            failed,
            WHOLE,
            raw.name or "",
        )
        return Message("tool", (result,))
    role = next(
        (role for kind, role in _ROLES.items() if isinstance(raw, kind)), None
    )
    if role is None:
        kind = type(raw).__name__
        raise FormatError(
            "messages",
            f"a {kind} is none of the model's",
            "Give chat messages.",
        )
    parts = read_parts(raw.content, f"{type(raw).__name__}.content")
    if isinstance(raw, AIMessage):
        parts += map(_call, raw.tool_calls, range(len(raw.tool_calls)))
        if aside := raw.additional_kwargs.get(_THOUGHT):
            parts.append(thought({"thinking": aside}, WHOLE))
    return Message(role, ordered(parts))


def _call(call: Any, at: int) -> Part:
    return ToolCall(
        call["id"] or "",
        call["name"],
        as_json(call["args"], "tool_calls.args"),
        at,
    )


def _show(
    raw: Any, message: Message, changes: Sequence[Change], silent: bool
) -> Any:
    content = raw.content
    calls = list(getattr(raw, "tool_calls", ()))
    for number, item, text in changes:
        part = message.parts[number]
        if isinstance(part, ToolCall):
            # LangChain does not read the arguments in a block of the same call.
            calls[part.at] = {**calls[part.at], "args": arguments_of(text)}
        else:
            leaf = part.content[item] if isinstance(part, ToolResult) else part
            content = show_text(content, leaf.at, text)
    update: dict[str, Any] = {"content": content}
    if isinstance(raw, AIMessage):
        update["tool_calls"] = calls
    if silent:
        visible = (
            content
            if isinstance(content, str)
            else [b for b in content if not is_thought(b)]
        )
        update["content"] = visible or ("" if calls else NO_REASONING)
        aside = {
            key: v
            for key, v in raw.additional_kwargs.items()
            if key != _THOUGHT
        }
        update["additional_kwargs"] = aside
    return raw.model_copy(update=update)


def _usage(reply: Any) -> Usage | None:
    """Of a `ModelResponse`, or of a message of the model's."""
    messages = getattr(reply, "result", [reply])
    usage = next(
        (
            message.usage_metadata
            for message in messages
            if isinstance(message, AIMessage)
        ),
        None,
    )
    if usage is None:
        return None
    of_input = usage.get("input_token_details")
    of_output = usage.get("output_token_details")
    read = (of_input or {}).get("cache_read")
    written = (of_input or {}).get("cache_creation")
    reasoning = (of_output or {}).get("reasoning")
    prompt = usage["input_tokens"]
    output = usage["output_tokens"]
    return counted(
        prompt, output, read=read, written=written, reasoning=reasoning
    )


HOST = Host(
    "langchain",
    wire="openai-chat",
    parse=_parse,
    show=_show,
    user=HumanMessage,
    provider=wire_of,
    usage=_usage,
)
"""A request of LangChain's messages, tools as Chat Completions has them, as a format."""
