"""The items of Responses, and the parts that stand in them (`provider-rules` §1.C).

Items that hold nothing we edit (server tools, compaction, references, programs) are carried
through untouched. So is an item of a type that is not listed; it speaks as the assistant.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.raw import field
from ullage.core.values.messages import Role
from ullage.wires.block import Block, fields, table

CALL_ID_LENGTH = 64
"""Most characters of a call_id where OpenAI serves the model (C6)."""

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}

_SCREENSHOT_TOKENS = 1_500
"""A screenshot of 1,280 by 800, as tiles or patches, rounded up."""
_EVERYONE = ("user", "system", "developer", "assistant")
_MODEL = ("assistant",)


def _text(kind: str, field: str = "text", **columns: Any) -> Block:
    """Text under a field of its own."""
    needs = {field: str}
    return Block(
        kind,
        becomes="text",
        text=field,
        needs=needs,
        edited="its field",
        carried=fields(field),
        **columns,
    )


def _opaque(kind: str, role: Role = "assistant", **columns: Any) -> Block:
    """An item that is carried through."""
    return Block(kind, roles=(role,), **columns)


def _call(kind: str, text: str, **columns: Any) -> Block:
    """A call of a tool of the caller's, made by the model or by a program."""
    return Block(
        kind,
        becomes="call",
        text=text,
        roles=_MODEL,
        caller="caller",
        **columns,
    )


def _output(kind: str, **columns: Any) -> Block:
    """An answer of a tool of the caller's. It is read by the one who called: model or program."""
    return Block(
        kind,
        becomes="result",
        text="output",
        roles=("tool",),
        caller="caller",
        **columns,
    )


PARTS = table(
    _text("input_text", roles=_EVERYONE, in_result=True),
    _text("output_text", roles=_MODEL),
    _text("text"),
    _text("refusal", "refusal", roles=_MODEL),
    Block(
        "input_image",
        becomes="media",
        roles=_EVERYONE,
        in_result=True,
        one_of=("image_url", "file_id"),
        edited="a text",
        carried=fields("image_url file_id detail"),
        media=("image",),
        data=("image_url", "file_id"),
        detail="detail",
    ),
    Block(
        "input_file",
        becomes="media",
        roles=_EVERYONE,
        in_result=True,
        edited="a text",
        one_of=("file_data", "file_url", "file_id"),
        media=("document",),
        carried=fields("file_data file_id file_url filename"),
        type="application/pdf",
        data=("file_data", "file_url", "file_id"),
        title="filename",
    ),
    Block(
        "input_audio",
        becomes="media",
        roles=("user",),
        needs={"input_audio": dict},
        edited="a text",
        carried=fields("input_audio"),
        within={"input_audio": fields("data format")},
        media=("audio",),
        data=("input_audio.data",),
        mime="input_audio.format",
    ),
    Block("computer_screenshot", tokens=_SCREENSHOT_TOKENS),
)
ITEMS = table(
    Block(
        "message",
        becomes="message",
        carried=fields("content phase"),
        prefix="msg_",
    ),
    Block(
        "reasoning",
        becomes="reasoning",
        roles=_MODEL,
        needs={"summary": list},
        prefix="rs_",
    ),
    _call(
        "function_call",
        "arguments",
        prefix="fc_",
        needs={"call_id": str, "name": str, "arguments": str},
        carried=fields("call_id name arguments async"),
    ),
    _call(
        "custom_tool_call",
        "input",
        prefix="ctc_",
        needs={"call_id": str, "name": str, "input": str},
        carried=fields("call_id name input"),
    ),
    _output("function_call_output", carried=fields("call_id output name")),
    _output("custom_tool_call_output", carried=fields("call_id output name")),
    _output("computer_call_output", needs={"output": dict}),
    _output("local_shell_call_output", needs={"output": str}),
    _output("shell_call_output"),
    _output("apply_patch_call_output", needs={"status": str}),
    _opaque("computer_call", opens="call_id"),
    _opaque("local_shell_call", opens="call_id"),
    _opaque("shell_call", opens="call_id", caller="caller"),
    _opaque("apply_patch_call", opens="call_id", caller="caller"),
    _opaque("web_search_call"),
    _opaque("file_search_call"),
    _opaque("code_interpreter_call"),
    Block(
        "image_generation_call",
        becomes="media",
        roles=_MODEL,
        media=("image",),
    ),
    _opaque("tool_search_call", opens="call_id"),
    _opaque("tool_search_output", closes="call_id", author="tool"),
    _opaque("mcp_list_tools", author="tool"),
    _opaque("mcp_call"),
    _opaque("mcp_approval_request", opens="id"),
    _opaque(
        "mcp_approval_response",
        "user",
        closes="approval_request_id",
        words="reason",
    ),
    _opaque(
        "program", opens="call_id", needs={"code": str, "fingerprint": str}
    ),
    _opaque("program_output", closes="call_id", author="program"),
    _opaque("additional_tools", "system"),
    _opaque("configuration_update", "system"),
    _opaque("compaction", needs={"encrypted_content": str}),
    _opaque("compaction_trigger", "user", author="system"),
    _opaque("item_reference", needs={"id": str}),
)
BLOCKS = {**PARTS, **ITEMS}
"""Every type by its name."""

OUTPUTS = frozenset(
    row.kind for row in ITEMS.values() if row.becomes == "result"
)
CALLS = frozenset(kind.removesuffix("_output") for kind in OUTPUTS)
CALLERS_OWN = frozenset(
    row.kind for row in ITEMS.values() if row.roles not in ((), _MODEL)
)
"""The items, but for messages, that the caller makes."""


def is_callers(item: Any, kind: str) -> bool:
    """Whether the caller made an item of this type, or else the model or a tool of the provider."""
    if kind == "message":
        return bool(field(item, "role") != "assistant")
    if kind == "tool_search_output":
        return bool(field(item, "execution") == "client")
    return kind in CALLERS_OWN


_KIND_SUFFIX = re.compile("(_call)?(_output)?$|_request$|_response$")
_ALIKE = ("function", "custom_tool")


def paired_by(kind: str, id: object) -> str:
    """The name that a call or request shares with its answer: what they are about, and the id.

    Functions and custom tools are answered alike, so that their id alone counts.
    """
    about = _KIND_SUFFIX.sub("", kind, count=1)
    if about in _ALIKE:
        return str(id or "")
    return f"{about} {id or ''}"
