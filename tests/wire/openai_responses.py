"""OpenAI Responses: every item type of `provider-rules` §1.C."""

from tests.wire import PDF, PNG, SEALED, WAV, Example


def _user(*parts):
    return {"role": "user", "content": list(parts)}


def _text(text):
    return {"type": "input_text", "text": text}


_IMAGE = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{PNG}",
    "detail": "auto",
}
_FILE = {
    "type": "input_file",
    "filename": "a.pdf",
    "file_data": f"data:application/pdf;base64,{PDF}",
}
_DONE = {"status": "completed"}


def _call(number, arguments='{"path": "café.md"}', **more):
    call = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
    }
    return {
        **call,
        "name": "read_file",
        "arguments": arguments,
        **_DONE,
        **more,
    }


def _output(number, output, **more):
    return {
        "type": "function_call_output",
        "call_id": f"call_{number}",
        "output": output,
        **more,
    }


def _thought(number, **more):
    summary = [{"type": "summary_text", "text": "Hm."}]
    return {
        "id": f"rs_{number}",
        "type": "reasoning",
        "summary": summary,
        **more,
    }


def _said(number, *parts):
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        **_DONE,
        "content": parts,
    }


_PRINTED = {
    "type": "output_text",
    "text": "Yes, naïve 猫.",
    "annotations": [],
    "logprobs": [],
}
_TOOL = {
    "type": "function",
    "name": "grep",
    "parameters": {"type": "object"},
    "strict": None,
}


def _alone(type, speaker="assistant", /, **fields):
    """An item that is carried through untouched."""
    return Example(type, "Opaque", [{"type": type, **fields}], speaker)


def _hosted(kind, number):
    """A tool that is run by the caller and known to the model: its call, and its result."""
    first, second = _pair(kind, number), _pair(kind, number + 1)
    yield Example(kind, "Opaque", first)
    yield Example(f"{kind}_output", "ToolResult", second, "tool")


def _pair(kind, number):
    known = {
        "type": kind,
        "id": f"{kind[:2]}_{number}",
        "call_id": f"call_{number}",
    }
    answer = {"type": f"{kind}_output", "call_id": f"call_{number}"}
    match kind:
        case "computer_call":
            click = {"type": "click", "button": "left", "x": 1, "y": 2}
            call = {
                **known,
                "action": click,
                "pending_safety_checks": [],
                **_DONE,
            }
            shot = {
                "type": "computer_screenshot",
                "image_url": _IMAGE["image_url"],
            }
            return [
                call,
                {**answer, "output": shot, "acknowledged_safety_checks": []},
            ]
        case "local_shell_call":
            action = {"type": "exec", "command": ["ls"], "env": {}}
            answer = {
                "type": f"{kind}_output",
                "id": f"call_{number}",
                "output": "a.py\n",
            }
            return [{**known, "action": action, **_DONE}, answer]
        case "shell_call":
            ended = {"type": "exit", "exit_code": 0}
            printed = {"stdout": "a.py\n", "stderr": "", "outcome": ended}
            action = {"commands": ["ls"], "timeout_ms": None}
            return [
                {**known, "action": action, **_DONE},
                {**answer, "output": [printed]},
            ]
    operation = {"type": "delete_file", "path": "a.py"}
    return [{**known, "operation": operation, **_DONE}, {**answer, **_DONE}]


EXAMPLES = (
    Example(
        "input_text",
        "Text",
        [
            {"role": "developer", "content": "Be brief."},
            _user(_text("Is naïve 猫 well? 🙂"), _text("Tell me.")),
            {
                "type": "message",
                "role": "system",
                "content": [_text("It is late.")],
            },
        ],
        "user",
    ),
    Example(
        "input_image",
        "Media",
        [
            _user(
                _IMAGE,
                {"type": "input_image", "file_id": "file-1", "detail": "low"},
            )
        ],
        "user",
    ),
    Example(
        "input_file",
        "Media",
        [
            _user(
                _FILE,
                {
                    "type": "input_file",
                    "file_url": "https://example.com/a.pdf",
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
        "reasoning",
        "Reasoning",
        [_thought(1, encrypted_content=SEALED), _said(1, _PRINTED)],
    ),
    Example(
        "reasoning",
        "Reasoning",
        [
            _user(_text("And then?")),
            _thought(
                2, content=[{"type": "reasoning_text", "text": "Hm, hm."}]
            ),
            _said(2, _PRINTED),
        ],
        note="in the open",
    ),
    Example(
        "output_text", "Text", [_user(_text("And then?")), _said(3, _PRINTED)]
    ),
    Example(
        "refusal",
        "Text",
        [
            _user(_text("And then?")),
            _said(4, {"type": "refusal", "refusal": "I had rather not."}),
        ],
    ),
    Example(
        "function_call",
        "ToolCall",
        [
            _user(_text("And then?")),
            _thought(3, encrypted_content=SEALED),
            _call(1),
            _call(
                2,
                '{ "path" : "not as we would write it" }',
                caller={"type": "direct"},
            ),
            _output(2, "two"),
            _output(1, "one"),
        ],
    ),
    Example(
        "function_call",
        "ToolCall",
        [
            _call(3, **{"async": True}),
            _user(_text("Do not wait.")),
            _output(3, "at last"),
        ],
        note="asynchronous: its output may come later",
    ),
    Example(
        "function_call_output",
        "ToolResult",
        [
            _call(4),
            _output(4, [_text("See:"), _IMAGE, _FILE], id="fco_4", **_DONE),
        ],
        "tool",
    ),
    Example(
        "input_image",
        "Media",
        [_call(5), _output(5, [_IMAGE])],
        "tool",
        inside=True,
    ),
    Example(
        "custom_tool_call",
        "ToolCall",
        [
            {
                "type": "custom_tool_call",
                "id": "ctc_1",
                "call_id": "call_6",
                "name": "python",
                "input": "print(1)",
            },
            {
                "type": "custom_tool_call_output",
                "call_id": "call_6",
                "output": "1\n",
            },
        ],
    ),
    Example(
        "custom_tool_call_output",
        "ToolResult",
        [
            {
                "type": "custom_tool_call",
                "id": "ctc_2",
                "call_id": "call_7",
                "name": "python",
                "input": "print(2)",
            },
            {
                "type": "custom_tool_call_output",
                "call_id": "call_7",
                "output": [_text("2\n")],
            },
        ],
        "tool",
    ),
    Example(
        "computer_screenshot",
        "Opaque",
        [
            {
                "type": "computer_call",
                "id": "cu_2",
                "call_id": "call_9",
                "actions": [{"type": "screenshot"}],
                "pending_safety_checks": [],
                **_DONE,
            },
            {
                "type": "computer_call_output",
                "call_id": "call_9",
                "output": {"type": "computer_screenshot", "file_id": "file-2"},
            },
        ],
        "tool",
        inside=True,
    ),
    *_hosted("computer_call", 10),
    *_hosted("local_shell_call", 12),
    *_hosted("shell_call", 14),
    *_hosted("apply_patch_call", 16),
    _alone(
        "web_search_call",
        id="ws_1",
        action={"type": "search", "query": "well"},
        **_DONE,
    ),
    _alone(
        "file_search_call", id="fs_1", queries=["well"], results=None, **_DONE
    ),
    _alone(
        "code_interpreter_call",
        id="ci_1",
        code="1 + 1",
        container_id="cntr_1",
        outputs=[{"type": "logs", "logs": "2"}],
        **_DONE,
    ),
    Example(
        "image_generation_call",
        "Media",
        [
            {
                "type": "image_generation_call",
                "id": "ig_1",
                "result": PNG,
                **_DONE,
            }
        ],
    ),
    _alone(
        "tool_search_call",
        id="ts_1",
        call_id=None,
        arguments={"q": "x"},
        execution="server",
        **_DONE,
    ),
    _alone(
        "tool_search_output",
        id="tso_1",
        call_id=None,
        tools=[_TOOL],
        execution="server",
        **_DONE,
    ),
    _alone("mcp_list_tools", id="mcpl_1", server_label="x", tools=[]),
    _alone(
        "mcp_call",
        id="mcp_1",
        server_label="x",
        name="ask",
        arguments="{}",
        output="one",
    ),
    _alone(
        "mcp_approval_request",
        id="mcpr_1",
        server_label="x",
        name="ask",
        arguments="{}",
    ),
    _alone(
        "mcp_approval_response",
        "user",
        approval_request_id="mcpr_1",
        approve=True,
    ),
    _alone(
        "program",
        id="prog_1",
        call_id="call_20",
        code="f()",
        fingerprint=SEALED,
    ),
    _alone(
        "program_output", id="progo_1", call_id="call_20", result="1", **_DONE
    ),
    _alone("additional_tools", "system", role="developer", tools=[_TOOL]),
    _alone("configuration_update", "system", reasoning={"effort": "low"}),
    _alone("compaction", id="cmp_1", encrypted_content=SEALED),
    _alone("item_reference", id="msg_99"),
    Example(
        "input_text", "Text", [{"role": "user", "content": "And now?"}], "user"
    ),
    _alone("compaction_trigger", "user"),
)
