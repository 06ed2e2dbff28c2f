"""Converse messages, as Strands keeps them, as ullage's values, and back.

A block has one key, its kind; bytes stand in it as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from strands.types.session import encode_bytes_values

from ullage import Host, Usage
from ullage.core.errors import FormatError
from ullage.doors.host import (
    NO_REASONING,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    arguments_of,
    as_json,
    cannot_edit,
    filled,
    list_at,
    media_tokens_of,
    ordered,
)
from ullage.integrations._base import counted, wire_of
from ullage.wires import Change

__all__ = ["HOST"]

_MEDIA: dict[str, tuple[Literal["image", "document", "audio"], str]] = {
    "image": ("image", "image"),
    "document": ("document", "application"),
    "video": ("document", "video"),
    "audio": ("audio", "audio"),
}
"""What a block holds, and how its type begins."""
_MARKER = "cachePoint"


def _parse(raw: Any) -> Message:
    if not isinstance(raw, Mapping) or raw.get("role") not in (
        "user",
        "assistant",
    ):
        raise FormatError(
            "messages", "not a Converse message", "Give a role and a content."
        )
    blocks = enumerate(list_at(raw.get("content"), "content"))
    parts = [_part(block, at) for at, block in blocks if _MARKER not in block]
    return Message(raw["role"], ordered(parts))


def _part(block: Mapping[str, Any], at: int) -> Part:
    if call := block.get("toolUse"):
        arguments = as_json(call.get("input"), "toolUse.input")
        return ToolCall(
            str(call.get("toolUseId")), str(call.get("name")), arguments, at
        )
    if result := block.get("toolResult"):
        items = enumerate(list_at(result.get("content"), "toolResult.content"))
        content = tuple(_content(item, n) for n, item in items)
        failed = result.get("status") == "error"
        return ToolResult(str(result.get("toolUseId")), content, failed, at)
    if thought := block.get("reasoningContent"):
        reasoning = thought.get("reasoningText") or {}
        sealed = (
            reasoning.get("signature") or thought.get("redactedContent") or ""
        )
        return Reasoning(
            str(reasoning.get("text") or ""),
            at,
            bool(sealed),
            len(sealed) * 3 // 4,
        )
    return _content(block, at)


def _content(block: Mapping[str, Any], at: int) -> Content:
    kind = next(iter(block), "")
    value = block.get(kind)
    if kind == "text" and isinstance(value, str):
        return Text(value, at)
    if kind == "json":
        return Text(as_json(value, "json"), at)
    plain = encode_bytes_values(dict(block))
    if kind in _MEDIA and isinstance(value, Mapping):
        source = plain[kind].get("source") or {}
        inline = source.get("bytes")
        data = (
            inline["data"]
            if isinstance(inline, Mapping)
            else as_json(source, "source")
        )
        medium, group = _MEDIA[kind]
        return Media(
            medium, f"{group}/{value.get('format')}", data, at, block=plain
        )
    return Opaque(kind, as_json(plain, kind), at, media_tokens_of(block))


def _show(
    raw: Any, message: Message, changes: Sequence[Change], silent: bool
) -> Any:
    content = list(raw["content"])
    for number, item, text in changes:
        part = message.parts[number]
        block = content[part.at]
        if isinstance(part, ToolCall):
            content[part.at] = {
                "toolUse": {**block["toolUse"], "input": arguments_of(text)}
            }
        elif isinstance(part, ToolResult):
            items = list(block["toolResult"]["content"])
            leaf = part.content[item]
            items[leaf.at] = _said(leaf, text)
            content[part.at] = {
                "toolResult": {**block["toolResult"], "content": items}
            }
        else:
            content[part.at] = _said(part, text)
    if silent:
        content = [
            block for block in content if "reasoningContent" not in block
        ]
    return {**raw, "content": content or [{"text": NO_REASONING}]}


def _said(part: Part, text: str) -> dict[str, str]:
    if isinstance(part, (Text, Media)):
        return {"text": filled(text, "text", "blank text")}
    raise cannot_edit(getattr(part, "kind", "reasoning"))


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


def _usage(event: Any) -> Usage | None:
    """Of the event that ends a model call.

    Whether its input counts cached tokens differs by model, its total never: it has them all.
    """
    if not isinstance(event, Mapping) or "stop" not in event:
        return None
    count = event["stop"][2].get
    total = count("totalTokens") or 0
    output = count("outputTokens") or 0
    read = count("cacheReadInputTokens")
    written = count("cacheWriteInputTokens")
    return counted(total - output, output, read=read, written=written)


HOST = Host(
    "strands",
    wire="anthropic",
    parse=_parse,
    show=_show,
    user=_user,
    provider=wire_of,
    usage=_usage,
)
"""A request of Converse messages, tools as Messages has them, as a format."""
