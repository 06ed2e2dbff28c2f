"""Requests that hold every block of their format, and what may be put into a place of them."""

import copy
import functools
import operator
from contextlib import suppress

from tests.wires.rule_examples import (
    ASK,
    IMAGE,
    NEXT,
    REASONED,
    SERVED,
    SERVER,
    SIGNED,
    TEXT,
    THOUGHT,
    asked,
    asks,
    assistant,
    call,
    calls,
    gave,
    model,
    mused,
    numbered,
    parts,
    put,
    responds,
    returns,
    runs,
    said,
    says,
    tool,
    use,
    user,
    uses,
)

PIXELS = "A" * 48
LONG = "all work and no play\n" * 900
PNG = f"data:image/png;base64,{PIXELS}"
BASE64 = {"type": "base64", "media_type": "image/png", "data": PIXELS}
BLOB = {"inlineData": {"mimeType": "image/png", "data": PIXELS}}
SOUND = {
    "type": "input_audio",
    "input_audio": {"data": PIXELS, "format": "wav"},
}

EVERYTHING = {
    "anthropic": {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "be brief"}],
        "thinking": {"type": "adaptive"},
        "tool_choice": {"type": "auto"},
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
        "messages": [
            user(
                TEXT,
                {"type": "image", "source": BASE64},
                {
                    "type": "document",
                    "title": "t",
                    "source": {"type": "text", "data": "x"},
                },
            ),
            assistant(THOUGHT, SERVER, SERVED, use("a"), use("b")),
            user(
                gave("a", content=LONG),
                gave(
                    "b",
                    content=[
                        TEXT,
                        {
                            "type": "image",
                            "source": {"type": "url", "url": "u"},
                        },
                    ],
                    is_error=True,
                ),
            ),
            assistant(TEXT),
            NEXT,
        ],
    },
    "openai-chat": {
        "model": "gpt-4.1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {"type": "function", "function": {"name": "run", "parameters": {}}}
        ],
        "messages": [
            {"role": "system", "content": "be brief"},
            user(
                TEXT, IMAGE, SOUND, {"type": "file", "file": {"file_id": "f"}}
            ),
            {
                **asks(
                    call("a", **SIGNED),
                    {
                        "id": "b",
                        "type": "custom",
                        "custom": {"name": "n", "input": "i"},
                    },
                ),
                "reasoning_content": "r",
            },
            tool("a", LONG),
            tool("b", [TEXT]),
            {
                "role": "assistant",
                "content": "x",
                "refusal": "no",
                "audio": {"id": "a"},
                "function_call": {"name": "f", "arguments": "{}"},
            },
            NEXT,
        ],
    },
    "openai-responses": {
        "model": "gpt-5",
        "instructions": "be brief",
        "store": False,
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "name": "run",
                "parameters": {},
                "strict": None,
            }
        ],
        "input": [
            user(
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
                {
                    "type": "input_file",
                    "file_data": f"data:application/pdf;base64,{PIXELS}",
                },
                SOUND,
            ),
            mused(),
            asked(id="fc_1"),
            put(output=[{"type": "input_text", "text": LONG}]),
            {
                "type": "shell_call",
                "call_id": "s1",
                "status": "completed",
                "action": {"commands": ["ls"]},
            },
            {
                "type": "shell_call_output",
                "call_id": "s1",
                "output": [
                    {
                        "stdout": LONG,
                        "stderr": "",
                        "outcome": {"type": "exit", "exit_code": 0},
                    }
                ],
            },
            {"type": "compaction", "encrypted_content": "g", "id": "cmp_1"},
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "x",
                "arguments": "{}",
                "server_label": "s",
            },
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": True,
            },
            {
                "type": "image_generation_call",
                "id": "ig_1",
                "result": PIXELS,
                "status": "completed",
            },
            said(id="msg_1"),
            NEXT,
        ],
    },
    "gemini": {
        "model": "gemini-3-pro",
        "config": {
            "system_instruction": {"parts": [{"text": "be brief"}]},
            "tools": [
                {"function_declarations": [{"name": "run", "parameters": {}}]}
            ],
            "max_output_tokens": 5,
        },
        "contents": [
            parts(
                {"text": "x"},
                BLOB,
                {
                    "fileData": {"fileUri": "gs://x", "mimeType": "video/mp4"},
                    "videoMetadata": {
                        "startOffset": "1s",
                        "endOffset": "2s",
                        "fps": 2,
                    },
                    "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
                },
            ),
            model(
                {"text": "t", "thought": True},
                calls(signature="c2ln"),
                calls("b", id="2"),
            ),
            parts(
                responds(response={"result": LONG}),
                responds("b", id="2", response={"result": [1]}, parts=[BLOB]),
            ),
            model(
                {"executableCode": {"language": "PYTHON", "code": "x"}},
                {
                    "codeExecutionResult": {
                        "outcome": "OUTCOME_OK",
                        "output": "x",
                    }
                },
                {"text": "z", "thoughtSignature": "c2ln"},
            ),
            ASK,
        ],
    },
    "ollama": {
        "model": "gpt-oss:120b-cloud",
        "think": True,
        "format": {"type": "object"},
        "options": {"num_ctx": 8_000, "num_predict": 5},
        "tools": [
            {"type": "function", "function": {"name": "run", "parameters": {}}}
        ],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "x", "images": [PIXELS]},
            {**runs(numbered("a"), "look"), "thinking": "t"},
            {
                "role": "tool",
                "tool_name": "run",
                "tool_call_id": "a",
                "content": LONG,
            },
            {
                "role": "tool",
                "name": "look",
                "content": "y",
                "images": [PIXELS],
            },
            {"role": "assistant", "content": "z"},
            NEXT,
        ],
    },
    "bedrock-converse": {
        "modelId": "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "system": [{"text": "be brief"}, {"cachePoint": {"type": "default"}}],
        "inferenceConfig": {"maxTokens": 5},
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "run", "inputSchema": {"json": {}}}},
                {"cachePoint": {"type": "default"}},
            ],
            "toolChoice": {"auto": {}},
        },
        "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
        "messages": [
            user(
                says("x"),
                {"image": {"format": "png", "source": {"bytes": PIXELS}}},
                {
                    "document": {
                        "name": "d",
                        "source": {"content": [says("y"), says("z")]},
                    }
                },
                {
                    "guardContent": {
                        "text": {"text": "g", "qualifiers": ["query"]}
                    }
                },
            ),
            assistant(REASONED, says("t"), uses("a"), uses("b")),
            user(
                returns("a", LONG),
                returns(
                    "b",
                    content=[{"json": {"n": [1]}}, says("x")],
                    status="error",
                ),
                {"cachePoint": {"type": "default", "ttl": "5m"}},
            ),
            assistant(
                {"citationsContent": {"content": [says("z")], "citations": []}}
            ),
            user(says("and now?")),
        ],
    },
}
"""One legal request a format, of every block that is looked into."""

REPLIES = {
    "anthropic": {
        "id": "msg_1",
        "content": [TEXT],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 9,
            "cache_read_input_tokens": 1,
            "cache_creation_input_tokens": 1,
            "cache_creation": {"ephemeral_1h_input_tokens": 1},
            "output_tokens_details": {"thinking_tokens": 1},
            "iterations": [
                {"type": "message", "input_tokens": 9, "output_tokens": 9}
            ],
        },
        "input_transformations": [{"type": "thinking_dropped", "reason": "x"}],
    },
    "openai-chat": {
        "id": "c",
        "choices": [{"message": {"role": "assistant", "content": "x"}}],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    },
    "openai-responses": {
        "id": "r",
        "output": [said(id="msg_2")],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 9,
            "input_tokens_details": {
                "cached_tokens": 1,
                "cached_tokens_details": {},
            },
            "output_tokens_details": {"reasoning_tokens": 1},
        },
    },
    "gemini": {
        "responseId": "g",
        "candidates": [{"content": model({"text": "x"})}],
        "usageMetadata": {
            "promptTokenCount": 9,
            "candidatesTokenCount": 9,
            "thoughtsTokenCount": 1,
            "cachedContentTokenCount": 1,
            "toolUsePromptTokenCount": 1,
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 1}],
        },
    },
    "ollama": {
        "model": "gpt-oss:120b-cloud",
        "message": {"role": "assistant", "content": "x"},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 9,
        "prompt_eval_cached_count": 1,
        "eval_count": 9,
    },
    "bedrock-converse": {
        "output": {"message": assistant(says("x"))},
        "stopReason": "end_turn",
        "usage": {
            "inputTokens": 9,
            "outputTokens": 9,
            "totalTokens": 20,
            "cacheReadInputTokens": 1,
            "cacheWriteInputTokens": 1,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 1}],
        },
    },
}
"""A reply a format, with all that is read of its usage."""

RECALLS = {
    "anthropic": {
        "type": "tool_use",
        "id": "t9",
        "name": "get_continuation",
        "input": {"tool_call_id": "a", "offset": 3, "limit": 5},
    },
    "openai-chat": {
        "id": "c9",
        "type": "function",
        "function": {
            "name": "get_continuation",
            "arguments": '{"tool_call_id": "a"}',
        },
    },
    "openai-responses": {
        "type": "function_call",
        "call_id": "c9",
        "name": "get_continuation",
        "arguments": '{"tool_call_id": "c1"}',
    },
    "gemini": {
        "functionCall": {
            "name": "get_continuation",
            "args": {"tool_call_id": "run#1"},
            "id": "9",
        }
    },
    "ollama": {
        "id": "c9",
        "function": {
            "name": "get_continuation",
            "arguments": {"tool_call_id": "a"},
        },
    },
    "bedrock-converse": {
        "toolUse": {
            "toolUseId": "t9",
            "name": "get_continuation",
            "input": {"tool_call_id": "a", "offset": 3},
        }
    },
}
"""A call of ours a format."""


class Strange:
    """No JSON, and no SDK's object."""

    __slots__ = ()


def holding_itself():
    """A block with itself inside."""
    block = {"type": "text", "text": "again"}
    block["content"] = [block]
    return block


def nested(levels):
    """Containers within each other, so many times."""
    value = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"type": "text", "content": value}
    return value


ABSENT = object()
"""What is put where the key is to be missing."""

ODD = (
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        1.5,
        10**30,
        10**400,
        float("nan"),
        float("inf"),
    ),
    *(
        "",
        " ",
        "x",
        "7",
        "\x00",
        "\ud800",
        "robot",
        "tool",
        "tool_use",
        "function_call_output",
    ),
    *(b"bytes", ("a", "tuple"), frozenset((1,)), Strange(), len),
    *([], [None], [7], ["text"], [[]], [{}], {}, {7: 7}, {"a": None}),
    *(
        {"type": None},
        {"type": 7},
        {"type": [None]},
        {"type": "text"},
        {"type": "hologram"},
    ),
    *(
        [{"type": "hologram", "rays": [1, None]}],
        {"role": ["user"]},
        {"role": "user"},
    ),
    *(
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        {"text": None},
        {"name": None},
    ),
)
ENDLESS = (
    holding_itself,
    lambda: [holding_itself()],
    lambda: nested(201),
    lambda: nested(5_000),
)
"""What makes values that are refused wherever they stand."""

EVERY_ODD = (ABSENT, *ODD, nested(90), *(make() for make in ENDLESS))


def places(value, at=()):
    """The path of everything in a request."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from places(item, (*at, key))


def put(request, path, value):
    """Put a value there; nothing if an earlier one took the place away."""
    with suppress(LookupError, TypeError):
        holder = functools.reduce(operator.getitem, path[:-1], request)
        if value is ABSENT:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value


def with_odd(value, path, odd):
    """A copy of a value with something odd at one place."""
    new = copy.deepcopy(value)
    put(new, path, odd)
    return new


def odd_ones(value):
    """Every way to make one place of a value odd: its path, and what is put there."""
    return [(path, odd) for path in places(value) for odd in EVERY_ODD]
