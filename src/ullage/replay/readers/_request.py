"""Plain provider requests, with or without the response they got.

    {"model": …, "messages": […], "tools": […], "response": {…}}

The format follows from structure only one of the two APIs has, then from the model's name.
The reply is appended when it can stand in a history: a reply whose calls nobody answered
cannot, so it is left off and its usage is kept under the index it would have had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._run import FormatName, Report, Run
from ullage.usage import Usage

__all__ = ["anthropic_usage", "has_messages", "is_request", "runs_of"]

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_OF_THE_LOG = (
    "messages", "response", "kwargs", "context_window", "raw_messages", "raw_response",
    "cost", "timestamp", "latency_sec", "id", "usage",
)  # fmt: skip
_OF_THE_CLIENT = ("extra_body", "extra_headers", "extra_query", "timeout")
_ANTHROPIC_BLOCKS = {
    "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document",
    "server_tool_use", "search_result",
}  # fmt: skip
_OPENAI_PARTS = {"image_url", "input_audio", "file", "refusal"}
_REPLY_KEYS = ("role", "content", "refusal", "tool_calls", "function_call", "audio")


def has_messages(value: dict[str, Any]) -> bool:
    """``messages`` is a list of messages with roles, in a shape either API would know."""
    messages = value.get("messages")
    return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))


def is_request(value: dict[str, Any]) -> bool:
    """Whether the value is a request: messages, and something else a request has."""
    known = ("model", "system", "tools", "max_tokens", "max_completion_tokens", "response")
    return any(key in value for key in known) and has_messages(value)


def runs_of(value: dict[str, Any], name: str, line: int, report: Report) -> Iterator[Run]:
    """The run in one request."""
    response = value.get("response")
    response = response if isinstance(response, dict) else {}
    format = _format(value, response)
    messages = list(value["messages"])
    reply, usage = (_chat if format == "openai-chat" else _anthropic)(response)
    index = len(messages)
    if reply is not None:
        messages.append(reply)
    yield Run(
        id=f"{name}:{line}",
        format=format,
        request=_head(value, response),
        messages=messages,
        usage={index: usage} if usage else {},
        source="request",
        stamps={},
    )


def anthropic_usage(counts: Any, *, output: bool = True) -> Usage | None:
    """Anthropic's usage object, or None if it is none. Cached tokens lie outside the input."""
    if not isinstance(counts, dict) or not isinstance(counts.get("input_tokens"), int):
        return None
    return Usage(
        fresh_tokens=counts["input_tokens"],
        cache_read_tokens=counts.get("cache_read_input_tokens") or 0,
        cache_write_tokens=counts.get("cache_creation_input_tokens") or 0,
        output_tokens=(counts.get("output_tokens") or 0) if output else 0,
    )


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    calls = message.get("tool_calls") or ()
    return isinstance(calls, (list, tuple)) and all(
        isinstance(call, dict) and not isinstance(call.get("function"), str) for call in calls
    )


def _format(value: dict[str, Any], response: dict[str, Any]) -> FormatName:
    openai, anthropic = "choices" in response, "system" in value or "content" in response
    for tool in value.get("tools") or ():
        if isinstance(tool, dict):
            openai, anthropic = openai or "function" in tool, anthropic or "input_schema" in tool
    for message in value["messages"]:
        kinds = _kinds(message.get("content"))
        openai = openai or bool(kinds & _OPENAI_PARTS) or _only_openai(message)
        anthropic = anthropic or bool(kinds & _ANTHROPIC_BLOCKS)
    if openai != anthropic:
        return "openai-chat" if openai else "anthropic"
    model = value.get("model")
    return "anthropic" if isinstance(model, str) and "claude" in model else "openai-chat"


def _only_openai(message: dict[str, Any]) -> bool:
    return "tool_calls" in message or message["role"] in ("tool", "developer", "function")


def _kinds(content: Any) -> set[str]:
    blocks = content if isinstance(content, list) else ()
    return {str(block.get("type")) for block in blocks if isinstance(block, dict)}


def _head(value: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The request without its messages; the log's own fields are left out."""
    kwargs = value.get("kwargs")
    head = dict(kwargs) if isinstance(kwargs, dict) else {}
    head = {key: item for key, item in head.items() if key not in _OF_THE_CLIENT}
    head |= {key: item for key, item in value.items() if key not in _OF_THE_LOG}
    if "model" not in head and isinstance(response.get("model"), str):
        head["model"] = response["model"]
    return head


def _chat(response: dict[str, Any]) -> tuple[dict[str, Any] | None, Usage | None]:
    """The reply and usage of a Chat Completions response."""
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = first.get("message") if isinstance(first, dict) else None
    usage = _chat_usage(response.get("usage"))
    if not isinstance(message, dict) or message.get("tool_calls"):
        return None, usage
    reply = {key: message[key] for key in _REPLY_KEYS if message.get(key) is not None}
    return (reply if reply.get("content") else None), usage


def _chat_usage(counts: Any) -> Usage | None:
    """OpenAI's usage object: cached tokens lie inside the prompt."""
    if not isinstance(counts, dict) or not isinstance(counts.get("prompt_tokens"), int):
        return None
    details = counts.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = details.get("cached_tokens") or 0
    written = details.get("cache_write_tokens") or 0
    return Usage(
        fresh_tokens=counts["prompt_tokens"] - read - written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=counts.get("completion_tokens") or 0,
    )


def _anthropic(response: dict[str, Any]) -> tuple[dict[str, Any] | None, Usage | None]:
    """The reply and usage of an Anthropic response."""
    content, usage = response.get("content"), anthropic_usage(response.get("usage"))
    if not isinstance(content, list) or not content or "tool_use" in _kinds(content):
        return None, usage
    return {"role": "assistant", "content": content}, usage
