"""What a model says, written down as the body of each vendor's reply.

`body_of` makes the whole reply; ids are numbered by the reply they stand in, so that the same
script gives the same bytes.
"""

import base64
import json
from typing import Any

from msgspec import Struct

MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "anthropic": "claude-opus-4-8",
    "gemini": "gemini-3-pro",
    "ollama": "gpt-oss:120b-cloud",
    "bedrock-converse": "anthropic.claude-opus-4-8-v1:0",
}


class Call(Struct, frozen=True):
    """A tool call; without an ``id`` it gets one of the vendor's kind.

    ``namespace`` is that of a tool of an MCP server, as Responses writes it.
    """

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""
    namespace: str = ""


class Reply(Struct, frozen=True):
    """What the model says: thought (signed where the vendor signs), text, then calls.

    ``stop`` is the vendor's own word for why it ended; None: the usual one.
    """

    text: str = ""
    calls: tuple[Call, ...] | list[Call] = ()
    thought: str = ""
    stop: str | None = None


class Prompt(Struct, frozen=True):
    """Tokens of a request, cached and written ones inside the total."""

    total: int
    cached: int = 0
    written: int = 0


def body_of(
    format: str, reply: Any, number: int, prompt: Prompt
) -> dict[str, Any]:
    """The whole reply ``number`` of a conversation; a dict is one already."""
    if isinstance(reply, dict):
        return reply
    said = Reply(reply) if isinstance(reply, str) else reply
    return _BODIES[format](said, number, prompt)


def _ids(reply, number, prefix):
    return [
        call.id or f"{prefix}_{number}_{n}"
        for n, call in enumerate(reply.calls)
    ]


def _output_tokens(reply):
    text = reply.text + "".join(
        call.name + json.dumps(call.arguments) for call in reply.calls
    )
    return len(text) // 4 + 8


def _thought_tokens(reply):
    return len(reply.thought) // 4


def signature_of(number):
    """What a vendor would sign with: base64 that says nothing."""
    return base64.b64encode(
        f"signed by the model, reply {number}".encode()
    ).decode()


def _anthropic(reply, number, prompt):
    blocks = []
    if reply.thought:
        signature = signature_of(number)
        blocks.append(
            {
                "type": "thinking",
                "thinking": reply.thought,
                "signature": signature,
            }
        )
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for id, call in zip(
        _ids(reply, number, "toolu"), reply.calls, strict=True
    ):
        blocks.append(
            {
                "type": "tool_use",
                "id": id,
                "name": call.name,
                "input": call.arguments,
            }
        )
    usage = {
        "input_tokens": prompt.total - prompt.cached - prompt.written,
        "cache_creation_input_tokens": prompt.written,
        "cache_read_input_tokens": prompt.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": prompt.written,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": _output_tokens(reply) + _thought_tokens(reply),
        "service_tier": "standard",
    }
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": MODELS["anthropic"],
        "content": blocks,
        "stop_reason": reply.stop
        or ("tool_use" if reply.calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }


def _chat(reply, number, prompt):
    message = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": None,
    }
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments),
                },
            }
            for id, call in zip(
                _ids(reply, number, "call"), reply.calls, strict=True
            )
        ]
    stop = reply.stop or ("tool_calls" if reply.calls else "stop")
    said, thought = _output_tokens(reply), _thought_tokens(reply)
    usage = {
        "prompt_tokens": prompt.total,
        "completion_tokens": said + thought,
        "total_tokens": prompt.total + said + thought,
        "prompt_tokens_details": {
            "cached_tokens": prompt.cached,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": thought,
            "audio_tokens": 0,
        },
    }
    return {
        "id": f"chatcmpl_{number}",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": MODELS["openai-chat"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": stop,
            }
        ],
        "usage": usage,
    }


def _responses(reply, number, prompt):
    output = []
    if reply.thought:
        output.append(
            {
                "id": f"rs_{number}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": reply.thought}],
                "encrypted_content": "gAAAAA" + signature_of(number) * 20,
            }
        )
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        said = {
            "id": f"msg_{number}",
            "type": "message",
            "status": "completed",
        }
        output.append({**said, "role": "assistant", "content": [part]})
    for n, (id, call) in enumerate(
        zip(_ids(reply, number, "call"), reply.calls, strict=True)
    ):
        output.append(
            {
                "id": f"fc_{number}_{n}",
                "type": "function_call",
                "status": "completed",
                "arguments": json.dumps(call.arguments),
                "call_id": id,
                "name": call.name,
                **({"namespace": call.namespace} if call.namespace else {}),
            }
        )
    said, thought = _output_tokens(reply), _thought_tokens(reply)
    usage = {
        "input_tokens": prompt.total,
        "input_tokens_details": {
            "cached_tokens": prompt.cached,
            "cache_write_tokens": 0,
        },
        "output_tokens": said + thought,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": prompt.total + said + thought,
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODELS["openai-responses"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def _gemini(reply, number, prompt):
    parts = [{"text": reply.thought, "thought": True}] if reply.thought else []
    if reply.text:
        parts.append({"text": reply.text})
    for n, (id, call) in enumerate(
        zip(_ids(reply, number, "call"), reply.calls, strict=True)
    ):
        part = {
            "functionCall": {
                "id": id,
                "name": call.name,
                "args": call.arguments,
            }
        }
        if n == 0:  # parallel siblings carry none (G7)
            part["thoughtSignature"] = signature_of(number)
        parts.append(part)
    said, thought = _output_tokens(reply), _thought_tokens(reply)
    usage = {
        "promptTokenCount": prompt.total,
        "candidatesTokenCount": said,
        "totalTokenCount": prompt.total + said + thought,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": prompt.total}
        ],
    }
    if prompt.cached:
        usage["cachedContentTokenCount"] = prompt.cached
    if thought:
        usage["thoughtsTokenCount"] = thought
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [
            {
                "content": content,
                "finishReason": reply.stop or "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": usage,
        "modelVersion": MODELS["gemini"],
        "responseId": f"reply{number}",
    }


def _ollama(reply, number, prompt):
    message = {"role": "assistant", "content": reply.text}
    if reply.thought:
        message["thinking"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "function": {
                    "index": n,
                    "name": call.name,
                    "arguments": call.arguments,
                },
            }
            for n, (id, call) in enumerate(
                zip(_ids(reply, number, "call"), reply.calls, strict=True)
            )
        ]
    cached = (
        {"prompt_eval_cached_count": prompt.cached} if prompt.cached else {}
    )
    return {
        "model": MODELS["ollama"],
        "created_at": "2026-11-27T05:00:00.123456789Z",
        "message": message,
        "done": True,
        "done_reason": reply.stop or "stop",
        "total_duration": 2_000_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": prompt.total,
        **cached,
        "prompt_eval_duration": 900_000_000,
        "eval_count": _output_tokens(reply) + _thought_tokens(reply),
        "eval_duration": 1_000_000_000,
    }


def _converse(reply, number, prompt):
    blocks = []
    if reply.thought:
        thought = {"text": reply.thought, "signature": signature_of(number)}
        blocks.append({"reasoningContent": {"reasoningText": thought}})
    if reply.text:
        blocks.append({"text": reply.text})
    for id, call in zip(
        _ids(reply, number, "tooluse"), reply.calls, strict=True
    ):
        body = {"toolUseId": id, "name": call.name, "input": call.arguments}
        blocks.append({"toolUse": body})
    output = _output_tokens(reply) + _thought_tokens(reply)
    usage = {
        "inputTokens": prompt.total - prompt.cached - prompt.written,
        "outputTokens": output,
        "totalTokens": prompt.total + output,
        "cacheReadInputTokens": prompt.cached,
        "cacheWriteInputTokens": prompt.written,
    }
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": reply.stop
        or ("tool_use" if reply.calls else "end_turn"),
        "usage": usage,
        "metrics": {"latencyMs": 100},
    }


_BODIES = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock-converse": _converse,
}
