"""Replies as the APIs give them, bodies and the SDKs' objects, and how they are called."""

import json

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from ullage.wires import FORMATS

MODEL = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "ollama": "gpt-oss:120b-cloud",
    "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
FORMAT_NAMES = tuple(MODEL)
SDK = {
    "openai-chat": ChatCompletion,
    "openai-responses": Response,
    "anthropic": Message,
    "gemini": GenerateContentResponse,
}
INPUT_TOKENS, OUTPUT_TOKENS = 400, 20


def reply(format, text="", calls=(), number=0):
    """A reply that says something, or asks for tools: pairs of name and arguments."""
    ids = [f"call_{number}_{n}" for n in range(len(calls))]
    named = [
        (id, name, arguments)
        for id, (name, arguments) in zip(ids, calls, strict=True)
    ]
    return _BODIES[format](text, named, number)


def as_sdk(format, body):
    if format == "ollama":
        ollama = pytest.importorskip(
            "ollama", reason="ollama is not installed"
        )
        return ollama.ChatResponse.model_validate(body)
    return (
        SDK[format].model_validate(body) if format in SDK else body
    )  # boto3 gives dicts


def _chat(text, calls, number):
    message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {"name": n, "arguments": json.dumps(a)},
            }
            for id, n, a in calls
        ]
    return {
        "id": f"chatcmpl_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL["openai-chat"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _responses(text, calls, number):
    output = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{id}",
            "call_id": id,
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for id, name, arguments in calls
    ]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "created_at": 1,
        "model": MODEL["openai-responses"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {
                "cached_tokens": 0,
                "cache_write_tokens": 0,
            },
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _anthropic(text, calls, number):
    content = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": id, "name": n, "input": a}
        for id, n, a in calls
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL["anthropic"],
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
        },
    }


def _gemini(text, calls, number):
    parts = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"name": name, "args": arguments}}
        for _, name, arguments in calls
    ]
    return {
        "responseId": f"gemini_{number}",
        "candidates": [
            {
                "content": {"role": "model", "parts": parts},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def _ollama(text, calls, number):
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"function": {"name": n, "arguments": a}} for _, n, a in calls
        ]
    return {
        "model": MODEL["ollama"],
        "created_at": "2026-11-27T05:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": INPUT_TOKENS,
        "eval_count": OUTPUT_TOKENS,
    }


def _converse(text, calls, number):
    content = [{"text": text}] if text else []
    content += [
        {"toolUse": {"toolUseId": id, "name": n, "input": a}}
        for id, n, a in calls
    ]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {
            "inputTokens": INPUT_TOKENS,
            "outputTokens": OUTPUT_TOKENS,
            "totalTokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
        "metrics": {"latencyMs": 1},
    }


_BODIES = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock-converse": _converse,
}


def request(format, history):
    more = {"max_tokens": 500} if format == "anthropic" else {}
    more |= {"options": {"num_predict": 500}} if format == "ollama" else {}
    return {"model": MODEL[format], FORMATS[format].key: history, **more}


def asking(format, text="What does the log say?"):
    return [FORMATS[format].user(text)]


def plain(value):
    """Objects of the SDKs as what goes over the wire."""
    return json.loads(json.dumps(value, default=_dumped))


def _dumped(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def results(format, history):
    """Every tool result in a history: its text, and whether it says it failed."""
    wire = FORMATS[format]
    parsed = [wire.parse(raw, "history") for raw in history]
    return [
        ("".join(leaf.text for leaf in result.content), result.is_error)
        for message in parsed
        for result in message.results
    ]
