"""Read a view as a model would: by its visible text, and by the calls its notices name.

The tests, the fuzzer and the benches judge by it. It knows the wires and the notices, and nothing
of formats, windows, ledgers or stores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ullage.tools.replay.reading import ask, follow, reachable

__all__ = [
    "ask",
    "content_of",
    "follow",
    "reachable",
    "results",
    "texts_of",
    "visible",
]

Wire = Mapping[str, Any]

_TEXTS = ("text", "input_text", "output_text")


def content_of(message: Wire) -> Any:
    """What a message says: its content, or its parts."""
    return message["parts"] if "parts" in message else message.get("content")


def texts_of(content: Any) -> list[str]:
    """The texts of a message's or of a result's content.

    A search result and a document hold texts of their own, which a model reads as any other.
    """
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for block in content if isinstance(content, list) else ():
        if _is_text(block):
            texts.append(block["text"])
        elif block.get("type") == "search_result":
            texts.extend(texts_of(block.get("content")))
        elif block.get("type") == "document":
            source = block.get("source", {})
            texts.extend(texts_of(source.get("content")))
            if source.get("type") == "text":
                texts.append(source["data"])
    return texts


def _is_text(block: Wire) -> bool:
    if "type" in block:
        return block["type"] in _TEXTS
    return isinstance(block.get("text"), str) and not block.get("thought")


def results(message: Wire) -> Iterator[tuple[str, list[str]]]:
    """Call id and texts of every tool result in a message of any format."""
    if "parts" in message:
        yield from _responses(message["parts"])
    elif str(message.get("type")).endswith("_call_output"):
        yield str(message.get("call_id")), texts_of(message.get("output"))
    elif message.get("role") == "tool":
        yield (
            str(message.get("tool_call_id")),
            texts_of(message.get("content")),
        )
    elif isinstance(message.get("content"), list):
        for block in message["content"]:
            given = block.get("toolResult")
            if given is not None:
                yield (
                    str(given["toolUseId"]),
                    [_said(item) for item in given["content"]],
                )
            if block.get("type") == "tool_result":
                yield str(block["tool_use_id"]), texts_of(block.get("content"))


def _said(item: Wire) -> str:
    """The text of an item of Converse: JSON as text, and of a blank text what it wraps."""
    if "json" not in item:
        return str(item.get("text", ""))
    match item["json"]:
        case {"output": str(text), **more} if text.isspace() and not more:
            return text
    return json.dumps(item["json"], ensure_ascii=False, separators=(",", ":"))


def _responses(parts: Sequence[Wire]) -> Iterator[tuple[str, list[str]]]:
    """Id (or name) and text of each functionResponse: what its wrapper holds, as text."""
    for part in parts:
        given = part.get("functionResponse")
        if given is not None:
            value = given["response"]
            if len(value) == 1 and set(value) <= {"result", "output", "error"}:
                (value,) = value.values()
            if not isinstance(value, str):
                value = json.dumps(
                    value, ensure_ascii=False, separators=(",", ":")
                )
            blobs = [
                blob.get("inlineData", {}) for blob in given.get("parts", ())
            ]
            plain = [
                blob["data"]
                for blob in blobs
                if blob.get("mimeType") == "text/plain"
            ]
            texts = [
                value,
                *(base64.b64decode(data).decode() for data in plain),
            ]
            yield str(given.get("id") or given["name"]), texts


def visible(messages: Sequence[Wire]) -> Iterator[str]:
    """Every text a model sees, call arguments included."""
    for message in messages:
        yield from texts_of(content_of(message))
        for part in message.get("parts", ()):
            if "functionCall" in part:
                yield json.dumps(
                    part["functionCall"].get("args"), ensure_ascii=False
                )
        for call in message.get("tool_calls") or ():
            arguments = call.get("function", {}).get("arguments", "")
            is_text = isinstance(arguments, str)
            yield (
                arguments
                if is_text
                else json.dumps(arguments, ensure_ascii=False)
            )
            yield str(call.get("custom", {}).get("input", ""))
        if message.get("type") in ("function_call", "custom_tool_call"):
            yield str(message.get("arguments") or message.get("input") or "")
        blocks = (
            message["content"]
            if isinstance(message.get("content"), list)
            else ()
        )
        for block in blocks:
            call = block.get("toolUse") or block
            if "input" in call:
                yield json.dumps(call["input"], ensure_ascii=False)
        for _, texts in results(message):
            if message.get("role") != "tool":
                yield from texts
