"""The parts, calls and fields of a message of Chat Completions (`provider-rules` §1.B).

Parts stand in ``content``, calls in ``tool_calls``, and what an assistant message has beside them
is a field of its own.
"""

from __future__ import annotations

from typing import Any

from ullage.core.values.messages import Role
from ullage.wires.block import Block, Kind, fields, table

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

ID_LENGTH = 64
"""Most characters of a call's id where OpenAI serves the model (C6); 40 until 2025."""
INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
"""With one of these an assistant message needs no content (C5)."""

_USER = ("user",)
_MODEL = ("assistant",)
_THOUGHTS = "reasoning_content reasoning reasoning_details"

_SPOKEN = "content tool_calls audio function_call refusal"


def _call(kind: str, text: str) -> Block:
    return Block(
        kind,
        becomes="call",
        text=text,
        roles=_MODEL,
        carried=fields(kind),
        within={kind: fields(f"name {text}")},
    )


def _medium(kind: str, medium: Kind, names: str, **columns: Any) -> Block:
    return Block(
        kind,
        becomes="media",
        roles=_USER,
        needs={kind: dict},
        edited="a text",
        media=(medium,),
        carried=fields(kind),
        within={kind: fields(names)},
        **columns,
    )


PARTS = table(
    Block(
        "text",
        becomes="text",
        text="text",
        roles=("system", "developer", "tool", *_MODEL, *_USER),
        in_result=True,
        needs={"text": str},
        edited="a text",
        carried=fields("text"),
    ),
    Block(
        "refusal",
        becomes="text",
        text="refusal",
        roles=_MODEL,
        needs={"refusal": str},
        edited="its field",
        carried=fields("refusal"),
    ),
    _medium(
        "image_url",
        "image",
        "url detail",
        data=("image_url.url",),
        bare="image_url",
        detail="image_url.detail",
    ),
    _medium(
        "input_audio",
        "audio",
        "data format",
        data=("input_audio.data",),
        mime="input_audio.format",
    ),
    _medium(
        "file",
        "document",
        "file_id file_data filename",
        type="application/pdf",
        data=("file.file_data", "file.file_id"),
        title="file.filename",
    ),
)
CALLS = table(_call("function", "arguments"), _call("custom", "input"))
FIELDS = table(
    Block("audio", roles=_MODEL),
    Block(
        "function_call",
        becomes="call",
        text="arguments",
        roles=_MODEL,
        carried=fields("name arguments"),
    ),
    *(
        Block(name, becomes="reasoning", roles=_MODEL)
        for name in _THOUGHTS.split()
    ),
)
"""Fields that are carried through: what was said aloud is an id."""
BLOCKS = {
    **PARTS,
    **CALLS,
    **FIELDS,
    **table(
        Block(
            "message",
            becomes="message",
            carried=fields(f"{_SPOKEN} {_THOUGHTS}"),
        ),
        Block(
            "tool",
            becomes="result",
            roles=("tool",),
            needs={"tool_call_id": str},
            carried=fields("content tool_call_id name"),
        ),
    ),
}
"""Every type by its name; ``tool`` is a message of that role."""

THOUGHTS = fields(_THOUGHTS)
"""The same thought in the words of several servers; the last may hold it sealed."""
