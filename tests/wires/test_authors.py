"""One table for each wire says who wrote a block of a type, and who reads it."""

import pytest

from ullage.wires import FORMATS

ROLES = {
    "user": "user",
    "assistant": "model",
    "system": "system",
    "tool": "tool",
}
OTHERS = {
    "anthropic": {
        "tool_result": "tool",
        "tool_reference": "tool",
        "browser_state": "tool",
        "mcp_tool_result": "tool",
        "web_search_tool_result": "tool",
        "web_fetch_tool_result": "tool",
        "code_execution_tool_result": "program",
        "bash_code_execution_tool_result": "program",
        "text_editor_code_execution_tool_result": "program",
        "tool_search_tool_result": "tool",
        "advisor_tool_result": "model",
        "mcp_tool_listing": "tool",
        "compaction": "model",
    },
    "openai-responses": {
        "tool_search_output": "tool",
        "mcp_list_tools": "tool",
        "program_output": "program",
        "compaction_trigger": "system",
    },
    "openai-chat": {},
    "ollama": {},
    "gemini": {
        "functionResponse": "tool",
        "executableCode": "model",
        "codeExecutionResult": "program",
        "toolCall": "model",
        "toolResponse": "tool",
    },
}
"""The types whose author is another than the role of their message says."""
CALLED = {
    "anthropic": {
        "tool_use",
        "server_tool_use",
        "mcp_tool_result",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
    },
    "openai-responses": {
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "computer_call_output",
        "local_shell_call_output",
    },
    "openai-chat": set(),
    "ollama": set(),
    "gemini": set(),
}
"""The types that say who made the call."""


@pytest.mark.parametrize("format", sorted(OTHERS))
def test_a_table_says_who_wrote_each_type(format):
    rows = FORMATS[format].blocks
    found = {
        kind: row.author
        for kind, row in rows.items()
        if row.author is not None
    }
    assert found == OTHERS[format]
    for row in rows.values():
        assert {role: row.written_by(role) for role in ROLES} == (
            ROLES if row.author is None else dict.fromkeys(ROLES, row.author)
        )


@pytest.mark.parametrize("format", sorted(CALLED))
def test_a_caller_that_is_not_the_model_is_a_program(format):
    rows = FORMATS[format].blocks
    assert {kind for kind, row in rows.items() if row.caller} == CALLED[format]
    for kind in CALLED[format]:
        row = rows[kind]
        for caller in (None, {"type": "direct"}, {}, "direct", {"type": None}):
            assert row.read_by({"type": kind, "caller": caller}) == "model"
        for name in (
            "code_execution_20250825",
            "code_execution_20260120",
            "program",
            "newer_9",
        ):
            caller = {
                "type": name,
                "tool_id": "srvtoolu_1",
                "caller_id": "c_1",
            }
            assert row.read_by({"type": kind, "caller": caller}) == "program"
