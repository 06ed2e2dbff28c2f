"""Inspect's messages as ullage's values, and back: one to one with those of Chat Completions.

An edited message has an id of its own, as Inspect's own compaction gives it, so that its record
takes it for another message; made of what it says, since the log keeps equal messages once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from inspect_ai.model import (
    ChatMessageBase,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    ModelOutput,
)
from pydantic import TypeAdapter

from ullage import Host, Usage
from ullage.core.errors import FormatError
from ullage.doors.host import (
    NO_REASONING,
    WHOLE,
    Block,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    arguments_of,
    as_json,
    cannot_edit,
    filled,
    ordered,
    read_part,
    sealed_bytes,
)
from ullage.integrations._base import counted, wire_of
from ullage.wires import Change

__all__ = ["HOST", "content_of"]

_CONTENT: TypeAdapter[Any] = TypeAdapter(Content)


def _parse(raw: Any) -> Message:
    if not isinstance(raw, ChatMessageBase):
        kind = type(raw).__name__
        raise FormatError(
            "messages", f"a {kind} is none", "Give Inspect's chat messages."
        )
    if isinstance(raw, ChatMessageTool):
        # A failed tool's message is what providers are sent of it.
        content = raw.content if raw.error is None else raw.error.message
        result = ToolResult(
            raw.tool_call_id or "",
            tuple(_content(content)),  # type: ignore[arg-type]
            raw.error is not None,
            WHOLE,
            raw.function or "",
        )
        return Message("tool", (result,))
    calls = getattr(raw, "tool_calls", None) or ()
    return Message(
        raw.role,
        ordered([*_content(raw.content), *map(_call, calls, count())]),
    )


def _call(call: Any, at: int) -> Part:
    return ToolCall(
        call.id,
        call.function,
        as_json(call.arguments, "tool_calls.arguments"),
        at,
    )


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    return [_part(item, at) for at, item in enumerate(content)]


def _part(item: Any, at: int) -> Part:
    if isinstance(item, ContentText):
        return Text(item.text, at)
    if isinstance(item, ContentReasoning):
        text = (item.summary or "") if item.redacted else item.reasoning
        sealed = item.reasoning if item.redacted else item.signature
        return Reasoning(text, at, bool(sealed), sealed_bytes(sealed, 0))
    plain = item.model_dump(mode="json", exclude_none=True)
    return read_part(_MEDIA, plain, at, item.type)


_ROWS = (
    Block("image", media=("image",), data=("image",), detail="detail"),
    Block("audio", media=("audio",), data=("audio",), mime="format"),
    Block("video", media=("document",), data=("video",), type="video/mp4"),
    Block(
        "document", media=("document",), data=("document",), mime="mime_type"
    ),
)
_MEDIA = {row.kind: row for row in _ROWS}


def content_of(block: Any) -> Any:
    """The content that was set aside as a block.

    Args:
        block: the block, as `Media` holds it.
    """
    return _CONTENT.validate_python(block)


def _show(
    raw: Any, message: Message, changes: Sequence[Change], silent: bool
) -> Any:
    update: dict[str, Any] = {
        "id": uuid5(NAMESPACE_OID, f"{raw.id}{changes}{silent}").hex
    }
    content = raw.content
    calls = list(getattr(raw, "tool_calls", None) or ())
    for number, item, text in changes:
        part = message.parts[number]
        if isinstance(part, ToolCall):
            calls[part.at] = replace(
                calls[part.at], arguments=arguments_of(text)
            )
            update["tool_calls"] = calls
        elif getattr(raw, "error", None) is not None:
            update["error"] = replace(raw.error, message=text)
        else:
            leaf = part.content[item] if isinstance(part, ToolResult) else part
            content = _said(content, leaf, text)
    if silent and not isinstance(content, str):
        content = [
            item for item in content if not isinstance(item, ContentReasoning)
        ]
        content = content or ("" if calls else NO_REASONING)
    return raw.model_copy(update={**update, "content": content})


def _said(content: Any, leaf: Any, text: str) -> Any:
    """A content with another text at a place."""
    if not isinstance(leaf, (Text, Media)):
        raise cannot_edit(getattr(leaf, "kind", "reasoning"))
    if leaf.at == WHOLE:
        return text
    items = list(content)
    items[leaf.at] = ContentText(text=filled(text, "text", "blank text"))
    return items


def _user(text: str) -> ChatMessageUser:
    return ChatMessageUser(id=uuid5(NAMESPACE_OID, text).hex, content=text)


def _usage(output: Any) -> Usage | None:
    """Of a `ModelOutput`, whose input has no cached tokens in it."""
    usage = output.usage if isinstance(output, ModelOutput) else None
    if usage is None:
        return None
    read = usage.input_tokens_cache_read or 0
    written = usage.input_tokens_cache_write or 0
    prompt = usage.input_tokens + read + written
    reasoning = usage.reasoning_tokens
    return counted(
        prompt,
        usage.output_tokens,
        read=read,
        written=written,
        reasoning=reasoning,
    )


HOST = Host(
    "inspect-ai",
    wire="openai-chat",
    parse=_parse,
    show=_show,
    user=_user,
    provider=wire_of,
    usage=_usage,
)
"""A request of Inspect's messages, tools as Chat Completions has them, as a format."""
