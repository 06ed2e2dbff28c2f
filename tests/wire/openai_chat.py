"""OpenAI Chat Completions: every message and part of `provider-rules` §1.B."""

from tests.wire import PDF, PNG, WAV, Example


def _user(*parts):
    return {"role": "user", "content": list(parts)}


def _text(text):
    return {"type": "text", "text": text}


def _call(id, name="read_file", arguments='{"path": "café.md"}', **more):
    body = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": body, **more}


def _result(id, content):
    return {"role": "tool", "tool_call_id": id, "content": content}


EXAMPLES = (
    Example(
        "text",
        "Text",
        [
            {"role": "developer", "content": [_text("Be brief.")]},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Is naïve 猫 well? 🙂", "name": "ann"},
            {"role": "assistant", "content": [_text("Yes.")]},
            {"role": "system", "content": "It is late."},
        ],
        "user",
    ),
    Example(
        "image_url",
        "Media",
        [
            _user(
                _text("What is this?"),
                {
                    "type": "image_url",
                    "image_url": {
                        "url": f"data:image/png;base64,{PNG}",
                        "detail": "low",
                    },
                },
                {
                    "type": "image_url",
                    "image_url": {"url": "https://example.com/a.png"},
                },
            )
        ],
        "user",
    ),
    Example(
        "input_audio",
        "Media",
        [
            _user(
                {
                    "type": "input_audio",
                    "input_audio": {"data": WAV, "format": "wav"},
                }
            )
        ],
        "user",
    ),
    Example(
        "file",
        "Media",
        [
            _user(
                {
                    "type": "file",
                    "file": {
                        "file_data": f"data:application/pdf;base64,{PDF}",
                        "filename": "a.pdf",
                    },
                },
                {"type": "file", "file": {"file_id": "file-1"}},
                {
                    **_text("The same."),
                    "prompt_cache_breakpoint": {
                        "mode": "explicit",
                        "ttl": "30m",
                    },
                },
            )
        ],
        "user",
    ),
    Example(
        "refusal",
        "Text",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "refusal", "refusal": "I had rather not."}
                ],
            },
        ],
    ),
    Example(
        "refusal",
        "Text",
        [
            {
                "role": "assistant",
                "content": None,
                "refusal": "I had rather not.",
            }
        ],
        note="as the field beside the content",
    ),
    Example(
        "function",
        "ToolCall",
        [
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "tool_calls": [
                    _call("call_1"),
                    _call(
                        "call_2",
                        arguments='{ "path" : "not as we would write it" }',
                    ),
                    _call("call_3", arguments="{not json"),
                ],
            },
            _result("call_2", [_text("two"), _text("lines")]),
            _result("call_1", "one"),
            {**_result("call_3", "Error: not JSON"), "name": "read_file"},
        ],
    ),
    Example(
        "custom",
        "ToolCall",
        [
            {
                "role": "assistant",
                "content": "Running.",
                "tool_calls": [
                    {
                        "id": "call_4",
                        "type": "custom",
                        "custom": {"name": "python", "input": "print(1)"},
                    }
                ],
            },
            _result("call_4", ""),
        ],
    ),
    Example(
        "tool",
        "ToolResult",
        [
            {"role": "assistant", "tool_calls": [_call("call_5")]},
            _result("call_5", "all is well\n"),
        ],
        "tool",
    ),
    Example(
        "text",
        "Text",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [_call("call_6")],
            },
            _result("call_6", [_text("in parts")]),
        ],
        "tool",
        inside=True,
    ),
    Example(
        "thought_signature",
        "ToolCall",
        [
            {
                "role": "assistant",
                "tool_calls": [
                    _call(
                        "call_7",
                        extra_content={
                            "google": {"thought_signature": "c2lnbmVk"}
                        },
                    )
                ],
            },
            _result("call_7", "ok"),
        ],
        note="of Gemini's compatible endpoint (C12): stays on its call",
    ),
    Example(
        "reasoning_content",
        "Reasoning",
        [{"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}],
        note="of compatible servers",
    ),
    Example(
        "reasoning",
        "Reasoning",
        [{"role": "assistant", "content": "Yes.", "reasoning": "Hm."}],
        note="of compatible servers",
    ),
    Example(
        "reasoning_details",
        "Reasoning",
        [
            {
                "role": "assistant",
                "content": "Yes.",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "Hm.",
                        "signature": "c2ln",
                    }
                ],
            }
        ],
        note="of compatible servers, perhaps sealed",
    ),
    Example(
        "audio",
        "Opaque",
        [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
        note="what the model said aloud, by its id",
    ),
    Example(
        "function_call",
        "ToolCall",
        [
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "read_file", "arguments": "{}"},
            },
            {
                "role": "function",
                "name": "read_file",
                "content": "all is well",
            },
            {"role": "user", "content": "Thanks."},
        ],
        note="deprecated",
    ),
)
