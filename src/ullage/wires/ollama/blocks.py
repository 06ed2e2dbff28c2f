"""What stands in a message of Ollama's chat: its fields, and the calls in one of them.

A message has no list of blocks: each row is a field. Source: ``api/types.go`` of ollama/ollama, and
the types of the Python client (ollama 0.6).
"""

from __future__ import annotations

from ullage.core.values.messages import Role
from ullage.wires.block import Block, fields, table

ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_ANYONE = tuple(ROLES)
_MODEL = ("assistant",)
_SPOKEN = "content images tool_calls thinking"

BLOCKS = table(
    Block(
        kind="content",
        becomes="text",
        text="content",
        roles=_ANYONE,
        in_result=True,
        edited="its field",
        carried=fields("content"),
    ),
    Block(
        kind="images",
        becomes="media",
        roles=_ANYONE,
        in_result=True,
        edited="a text",
        media=("image",),
        carried=fields("images"),
        data=("images",),
    ),
    Block(
        kind="tool_calls",
        becomes="call",
        text="arguments",
        roles=_MODEL,
        needs={"function": dict},
        carried=fields("function"),
        within={"function": fields("name arguments index")},
    ),
    Block(
        kind="thinking",
        becomes="reasoning",
        roles=_MODEL,
    ),
    Block(
        kind="message",
        becomes="message",
        carried=fields(_SPOKEN),
    ),
    Block(
        kind="tool",
        becomes="result",
        roles=("tool",),
        carried=fields("content images tool_name name tool_call_id"),
    ),
)
"""Every field by its name; ``message`` and ``tool`` are whole messages."""

TEXTS = ("content", "thinking")
"""The fields that hold one text each."""
TOOL_NAMES = ("tool_name", "name")
"""Where a result names its tool; the second in clients from before there was the first."""
