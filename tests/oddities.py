"""Requests that hold every block of their format, and one place of them made odd.

`test_one_place` draws from here; what is found is the place, the value and the call, so that a
failure is told in one line.
"""

import copy
import functools
import random

from tests import histories
from tests.formats.rule_examples import (
    ASK,
    GO,
    IMAGE,
    NEXT,
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
    parts,
    put,
    responds,
    said,
    tool,
    use,
    user,
)

PIXELS = "A" * 48
LONG = "all work and no play\n" * 900
PNG = f"data:image/png;base64,{PIXELS}"
BASE64 = {"type": "base64", "media_type": "image/png", "data": PIXELS}
BLOB = {"inlineData": {"mimeType": "image/png", "data": PIXELS}}
SOUND = {"type": "input_audio", "input_audio": {"data": PIXELS, "format": "wav"}}

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
                {"type": "document", "title": "t", "source": {"type": "text", "data": "x"}},
            ),
            assistant(THOUGHT, SERVER, SERVED, use("a"), use("b")),
            user(
                gave("a", content=LONG),
                gave(
                    "b",
                    content=[TEXT, {"type": "image", "source": {"type": "url", "url": "u"}}],
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
        "tools": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
        "messages": [
            {"role": "system", "content": "be brief"},
            user(TEXT, IMAGE, SOUND, {"type": "file", "file": {"file_id": "f"}}),
            {
                **asks(
                    call("a", **SIGNED),
                    {"id": "b", "type": "custom", "custom": {"name": "n", "input": "i"}},
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
        "tools": [{"type": "function", "name": "run", "parameters": {}, "strict": None}],
        "input": [
            user(
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
                {"type": "input_file", "file_data": f"data:application/pdf;base64,{PIXELS}"},
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
                    {"stdout": LONG, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
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
            "tools": [{"function_declarations": [{"name": "run", "parameters": {}}]}],
            "max_output_tokens": 5,
        },
        "contents": [
            parts(
                {"text": "x"},
                BLOB,
                {"fileData": {"fileUri": "gs://x", "mimeType": "video/mp4"}},
            ),
            model({"text": "t", "thought": True}, calls(signature="c2ln"), calls("b", id="2")),
            parts(
                responds(response={"result": LONG}),
                responds("b", id="2", response={"result": [1]}, parts=[BLOB]),
            ),
            model(
                {"executableCode": {"language": "PYTHON", "code": "x"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "x"}},
                {"text": "z", "thoughtSignature": "c2ln"},
            ),
            ASK,
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
            "iterations": [{"type": "message", "input_tokens": 9, "output_tokens": 9}],
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
            "input_tokens_details": {"cached_tokens": 1, "cached_tokens_details": {}},
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
}
"""A reply a format, with all that is read of its usage."""

ARGUMENTS = {"ref": "x", "tool_call_id": "a", "pattern": "work", "offset": 3, "limit": 5}


def holding_itself():
    """A dict with itself inside."""
    found = {"type": "text", "text": "again"}
    found["more"] = [found]
    return found


def nested(levels):
    """A dict in a dict, so many times."""
    return functools.reduce(lambda inner, _: {"a": inner}, range(levels), {})


class Absent:
    """The key is not there at all."""


ODD = (
    *(Absent, None, True, False, 0, -1, 5, 1.5, 10**30, float("nan"), float("inf")),
    *("", " ", "x", "\ud800", "7", "tool", "tool_use", "function_call_output", b"bytes"),
    *([], [None], [[]], [{}], ["x"], [1], {}, {"a": None}, {1: 2}, {"type": None}),
    *({"type": []}, {"type": "text"}, {"type": "text", "text": None}, {"role": "user"}),
    *(("x",), frozenset("x"), Absent(), len, nested(90), nested(5_000), holding_itself),
)
"""What is put there; a function is called for what it makes."""


def places(value, at=()):
    """The path of everything in a request."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from places(item, (*at, key))


def with_odd(value, path, odd):
    """A copy of a value with something odd at one place."""
    new = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    if odd is Absent:
        del inner[path[-1]]
    else:
        inner[path[-1]] = odd() if odd is holding_itself else odd
    return new


def odd_ones(value):
    """Every (path, odd value) of a request, list or reply."""
    return [(path, odd) for path in places(value) for odd in ODD]


def written(turns, format):
    """A history of `tests.histories`, as a request."""
    return histories.request(format, histories.wire(format, turns))


def some(value, seed, count):
    """So many of its odd ones, the same for the same seed."""
    ones = odd_ones(value)
    return random.Random(seed).sample(ones, min(count, len(ones)))


__all__ = ["ARGUMENTS", "EVERYTHING", "GO", "REPLIES", "odd_ones", "some", "with_odd", "written"]
