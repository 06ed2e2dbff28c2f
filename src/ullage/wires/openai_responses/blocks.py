"""The items of Responses, and the parts that stand in them (`provider-rules` §1.C).

Items that hold nothing we edit (server tools, compaction, references, programs) are carried
through untouched. So is an item of a type that is not listed; it speaks as the assistant.
"""

from __future__ import annotations

from typing import Any

from ullage.values.messages import Role
from ullage.wires.block import Block, fields, table

__all__ = ["BLOCKS", "CALLERS_OWN", "CALLS", "ITEMS", "OUTPUTS", "PARTS", "ROLES"]

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}

_EVERYONE = ("user", "system", "developer", "assistant")
_MODEL = ("assistant",)
_CALL = "call_id name"


def _opaque(kind: str, role: Role = "assistant", **more: Any) -> Block:
    """An item that is carried through."""
    return Block(kind=kind, roles=(role,), **more)


def _output(kind: str, **more: Any) -> Block:
    """What the caller's tool answered."""
    return Block(kind=kind, becomes="result", text="output", roles=("tool",), **more)


PARTS = table(
    Block(
        kind="input_text",
        becomes="text",
        text="text",
        roles=_EVERYONE,
        in_result=True,
        needs={"text": str},
        edited="its field",
        carried=fields("text"),
    ),
    Block(
        kind="output_text",
        becomes="text",
        text="text",
        roles=_MODEL,
        needs={"text": str},
        edited="its field",
        carried=fields("text"),
    ),
    Block(
        kind="text",
        becomes="text",
        text="text",
        needs={"text": str},
        edited="its field",
        carried=fields("text"),
    ),
    Block(
        kind="refusal",
        becomes="text",
        text="refusal",
        roles=_MODEL,
        needs={"refusal": str},
        edited="its field",
        carried=fields("refusal"),
    ),
    Block(
        kind="input_image",
        becomes="media",
        roles=_EVERYONE,
        in_result=True,
        one_of=("image_url", "file_id"),
        edited="a text",
        carried=fields("image_url file_id detail"),
        media=("image",),
    ),
    Block(
        kind="input_file",
        becomes="media",
        roles=_EVERYONE,
        in_result=True,
        one_of=("file_data", "file_url", "file_id"),
        edited="a text",
        carried=fields("file_data file_id file_url filename"),
        media=("document",),
    ),
    Block(
        kind="input_audio",
        becomes="media",
        roles=("user",),
        needs={"input_audio": dict},
        edited="a text",
        carried=fields("input_audio"),
        within={"input_audio": fields("data format")},
        media=("audio",),
    ),
    Block(kind="computer_screenshot"),
)

ITEMS = table(
    Block(kind="message", becomes="message", carried=fields("content phase"), prefix="msg_"),
    Block(
        kind="reasoning", becomes="reasoning", roles=_MODEL, needs={"summary": list}, prefix="rs_"
    ),
    Block(
        kind="function_call",
        becomes="call",
        text="arguments",
        roles=_MODEL,
        needs={"call_id": str, "name": str, "arguments": str},
        carried=fields(f"{_CALL} arguments async"),
        prefix="fc_",
    ),
    Block(
        kind="custom_tool_call",
        becomes="call",
        text="input",
        roles=_MODEL,
        needs={"call_id": str, "name": str, "input": str},
        carried=fields(f"{_CALL} input"),
        prefix="ctc_",
    ),
    _output("function_call_output", carried=fields("call_id output name")),
    _output("custom_tool_call_output", carried=fields("call_id output name")),
    _output("computer_call_output", needs={"output": dict}),
    _output("local_shell_call_output", needs={"output": str}),
    _output("shell_call_output"),
    _output("apply_patch_call_output", needs={"status": str}),
    _opaque("computer_call", opens="call_id"),
    _opaque("local_shell_call", opens="call_id"),
    _opaque("shell_call", opens="call_id"),
    _opaque("apply_patch_call", opens="call_id"),
    _opaque("web_search_call"),
    _opaque("file_search_call"),
    _opaque("code_interpreter_call"),
    Block(kind="image_generation_call", becomes="media", roles=_MODEL, media=("image",)),
    _opaque("tool_search_call", opens="call_id"),
    _opaque("tool_search_output", closes="call_id"),
    _opaque("mcp_list_tools"),
    _opaque("mcp_call"),
    _opaque("mcp_approval_request", opens="id"),
    _opaque("mcp_approval_response", "user", closes="approval_request_id"),
    _opaque("program", opens="call_id", needs={"code": str, "fingerprint": str}),
    _opaque("program_output", closes="call_id"),
    _opaque("additional_tools", "system"),
    _opaque("configuration_update", "system"),
    _opaque("compaction", needs={"encrypted_content": str}),
    _opaque("compaction_trigger", "user"),
    _opaque("item_reference", needs={"id": str}),
)

BLOCKS = {**PARTS, **ITEMS}
"""Every type by its name."""

OUTPUTS = frozenset(row.kind for row in ITEMS.values() if row.becomes == "result")
CALLS = frozenset(kind.removesuffix("_output") for kind in OUTPUTS)
CALLERS_OWN = frozenset(row.kind for row in ITEMS.values() if row.roles not in ((), _MODEL))
"""The items, but for messages, that the caller makes."""
