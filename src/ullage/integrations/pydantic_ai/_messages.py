"""Pydantic AI's messages as ullage's values, and back.

A request holds results and what the user says, a response what the model said: one to one with
Anthropic's messages. Parts are shared between histories, so an edit makes new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_ai import messages as ai
from pydantic_core import to_jsonable_python

from ullage import Host, Usage
from ullage.core.errors import FormatError, UnsupportedPart
from ullage.doors.host import (
    NO_REASONING,
    WHOLE,
    Content,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    arguments_of,
    as_json,
    media_tokens_of,
    ordered,
    sealed_bytes,
)
from ullage.integrations._base import counted, medium, wire_of
from ullage.wires import Change

__all__ = ["HOST", "content_of"]

_CONTENT: TypeAdapter[Any] = TypeAdapter(ai.UserContent)


def _parse(raw: Any) -> Message:
    if not isinstance(raw, (ai.ModelRequest, ai.ModelResponse)):
        problem = f"a {type(raw).__name__} is none"
        remedy = "Give ModelRequest and ModelResponse."
        raise FormatError("messages", problem, remedy)
    parts: list[Part] = []
    for at, part in enumerate(raw.parts):
        parts += _parts(part, at)
    is_request = isinstance(raw, ai.ModelRequest)
    return Message("user" if is_request else "assistant", ordered(parts))


def _parts(part: Any, at: int) -> Sequence[Part]:
    """A part as parts; ``at`` is its place, and of one in a list of content also where there."""
    match part:
        case ai.ToolReturnPart():
            failed = part.outcome != "success"
            content = tuple(_result(part))
            denied = part.outcome == "denied"
            author: Literal["user", "tool"] = "user" if denied else "tool"
            call_id, name = part.tool_call_id, part.tool_name
            result = ToolResult(
                call_id, content, failed, at, name, author=author
            )
            return [result]
        case ai.UserPromptPart(content=str(text)) | ai.TextPart(content=text):
            return [Text(text, at)]
        case ai.UserPromptPart(content=items):
            return [_item(item, at) for item in items]
        case ai.ToolCallPart():
            call_id, name = part.tool_call_id, part.tool_name
            return [ToolCall(call_id, name, part.args_as_json_str(), at)]
        case ai.FilePart(content=item):
            return [_item(item, at)]
        case ai.ThinkingPart(content=text, signature=sealed):
            return [Reasoning(text, at, bool(sealed), sealed_bytes(sealed, 0))]
        case ai.NativeToolCallPart(tool_call_id=own):
            return [_opaque(part, at, opens=own)]
        case ai.NativeToolReturnPart(tool_call_id=own):
            return [_opaque(part, at, closes=own)]
    return [_opaque(part, at, supersedes=isinstance(part, ai.CompactionPart))]


def _opaque(part: Any, at: int, **more: Any) -> Opaque:
    kind = getattr(part, "kind", type(part).__name__)
    kind = str(getattr(part, "part_kind", None) or kind)
    plain = to_jsonable_python(part, fallback=str)
    return Opaque(
        kind, as_json(plain, kind), at, media_tokens_of(plain), **more
    )


def _result(part: Any) -> Sequence[Content]:
    """What a tool gave: as the text that is sent; with media beside it, item by item."""
    if not part.files:
        return [Text(part.model_response_str(wrap_if_error=False))]
    return [_item(item, at) for at, item in enumerate(_items(part))]


def _items(part: Any) -> list[Any]:
    """What a result with media holds, each item as text or a medium."""
    return list(part.content_items(mode="str", wrap_if_error=False))


def _item(item: Any, at: int) -> Content:
    """Of a user's content, or of a result."""
    if isinstance(item, (str, ai.TextContent)):
        return Text(item if isinstance(item, str) else item.content, at)
    mime = _mime_of(item)
    if mime is None:
        return _opaque(item, at)
    block = _CONTENT.dump_python(item, mode="json")
    return medium(
        mime, getattr(item, "data", None), getattr(item, "url", ""), at, block
    )


def _mime_of(item: Any) -> str | None:
    """The type of a medium, by its kind where its address does not tell; None: it is none."""
    try:
        mime = getattr(item, "media_type", None)
    except ValueError:  # of an address without an ending
        mime = f"{str(getattr(item, 'kind', '')).partition('-')[0]}/*"
    return mime if isinstance(mime, str) else None


def content_of(block: Any) -> Any:
    """The content that was set aside as a block.

    Args:
        block: the block, as `Media` holds it.
    """
    return _CONTENT.validate_python(block)


def _show(
    raw: Any, message: Message, changes: Sequence[Change], silent: bool
) -> Any:
    parts = list(raw.parts)
    for number, item, text in changes:
        part = message.parts[number]
        parts[part.at] = _edited(parts[part.at], part, item, text)
    if silent:
        parts = [
            part for part in parts if not isinstance(part, ai.ThinkingPart)
        ]
        parts = parts or [ai.TextPart(NO_REASONING)]
    return replace(raw, parts=parts)


def _edited(raw: Any, part: Part, item: int, text: str) -> Any:
    if isinstance(part, ToolCall):
        return replace(raw, args=arguments_of(text))
    if isinstance(part, ToolResult) and part.content[item].at != WHOLE:
        items = _items(raw)
        items[part.content[item].at] = text
        return replace(raw, content=items)
    if isinstance(raw, ai.FilePart):
        return ai.TextPart(text)
    if isinstance(raw, (ai.ToolReturnPart, ai.TextPart)) or isinstance(
        raw.content, str
    ):
        return replace(raw, content=text)
    raise UnsupportedPart(
        "a part of a user's prompt", "it stands among others", "Leave it."
    )


def _user(text: str) -> ai.ModelRequest:
    return ai.ModelRequest(parts=[ai.UserPromptPart(text)])


def _usage(reply: Any) -> Usage | None:
    usage = getattr(reply, "usage", None)
    if usage is None or not hasattr(usage, "cache_read_tokens"):
        return None
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    reasoning = (usage.details or {}).get("reasoning_tokens")
    prompt, output = usage.input_tokens, usage.output_tokens
    return counted(
        prompt, output, read=read, written=written, reasoning=reasoning
    )


HOST = Host(
    "pydantic-ai",
    wire="anthropic",
    parse=_parse,
    show=_show,
    user=_user,
    provider=wire_of,
    usage=_usage,
)
"""A request of Pydantic AI's messages, tools as Anthropic has them, as a format."""
