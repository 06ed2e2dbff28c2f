"""What stands in a message of Chat Completions (`provider-rules` §1.B): parts, calls, fields.

Parts stand in ``content``, calls in ``tool_calls``, and what an assistant message has beside them
is a field of its own.
"""

from __future__ import annotations

from ullage.values.messages import Role
from ullage.wires.block import Block, fields, table

__all__ = ["BLOCKS", "CALLS", "FIELDS", "PARTS", "ROLES", "THOUGHTS"]

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_USER, _MODEL = ("user",), ("assistant",)
_THOUGHTS = "reasoning_content reasoning reasoning_details"

PARTS = table(
    Block(
        kind="text",
        becomes="text",
        text="text",
        roles=("system", "developer", "tool", *_MODEL, *_USER),
        in_result=True,
        needs={"text": str},
        edited="a text",
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
        kind="image_url",
        becomes="media",
        roles=_USER,
        needs={"image_url": dict},
        edited="a text",
        carried=fields("image_url"),
        within={"image_url": fields("url detail")},
        media=("image",),
    ),
    Block(
        kind="input_audio",
        becomes="media",
        roles=_USER,
        needs={"input_audio": dict},
        edited="a text",
        carried=fields("input_audio"),
        within={"input_audio": fields("data format")},
        media=("audio",),
    ),
    Block(
        kind="file",
        becomes="media",
        roles=_USER,
        needs={"file": dict},
        edited="a text",
        carried=fields("file"),
        within={"file": fields("file_id file_data filename")},
        media=("document",),
    ),
)

CALLS = table(
    Block(
        kind="function",
        becomes="call",
        text="arguments",
        roles=_MODEL,
        carried=fields("function"),
        within={"function": fields("name arguments")},
    ),
    Block(
        kind="custom",
        becomes="call",
        text="input",
        roles=_MODEL,
        carried=fields("custom"),
        within={"custom": fields("name input")},
    ),
)

FIELDS = table(
    Block(kind="audio", roles=_MODEL),
    Block(kind="function_call", roles=_MODEL),
    *(Block(kind=name, becomes="reasoning", roles=_MODEL) for name in _THOUGHTS.split()),
)
"""Fields that are carried through: what was said aloud is an id."""

THOUGHTS = fields(_THOUGHTS)
"""The same thought in the words of several servers; the last may hold it sealed."""

BLOCKS = {
    **PARTS,
    **CALLS,
    **FIELDS,
    **table(
        Block(
            kind="message",
            becomes="message",
            carried=fields(f"content tool_calls audio function_call refusal {_THOUGHTS}"),
        ),
        Block(
            kind="tool",
            becomes="result",
            roles=("tool",),
            needs={"tool_call_id": str},
            carried=fields("content tool_call_id name"),
        ),
    ),
}
"""Every type by its name; ``tool`` is a message of that role."""
