"""The parts of Gemini's contents (`provider-rules` §1.D): each is the one field that holds data.

Names are the wire's; a part may have them in the SDK's spelling.
"""

from __future__ import annotations

from ullage.core.values.messages import Role
from ullage.wires.block import Block, fields, table

ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
}

_USER = ("user", "function")
_MODEL = ("model",)
_ANYONE = (*_USER, *_MODEL)


def _blob(kind: str, data: str) -> Block:
    """A medium: ``data`` is the field with its base64 or with its address."""
    within = {kind: fields(f"mimeType displayName {data}")}
    return Block(
        kind,
        becomes="media",
        roles=_ANYONE,
        in_result=True,
        needs={data: (str, bytes)},
        edited="a text",
        carried=fields(kind),
        within=within,
        media=("image", "audio", "document"),
        data=(f"{kind}.{data}",),
        mime=f"{kind}.mimeType",
        title=f"{kind}.displayName",
    )


PARTS = table(
    Block(
        "text",
        becomes="text",
        text="text",
        roles=_ANYONE,
        edited="its field",
        carried=fields("text"),
    ),
    _blob("inlineData", "data"),
    _blob("fileData", "fileUri"),
    Block(
        "functionCall",
        becomes="call",
        text="args",
        roles=_MODEL,
        needs={"name": str},
        carried=fields("functionCall"),
        within={"functionCall": fields("name args")},
    ),
    Block(
        "functionResponse",
        becomes="result",
        text="response",
        roles=_USER,
        needs={"name": str, "response": dict},
        carried=fields("functionResponse"),
        within={"functionResponse": fields("name response parts")},
        author="tool",
    ),
    Block("executableCode", roles=_ANYONE, author="model"),
    Block("codeExecutionResult", roles=_ANYONE, author="program"),
    Block("toolCall", roles=_ANYONE, author="model"),
    Block("toolResponse", roles=_ANYONE, author="tool"),
)
"""Every field with data; of those with an object ``needs`` is what the object must have."""

BLOCKS = {
    **PARTS,
    **table(Block("message", becomes="message", carried=fields("parts"))),
}

_BESIDE = (
    "thought thoughtSignature mediaResolution mediaProcessing audioTranscription partMetadata"
    " videoMetadata audioMetadata documentMetadata speechMetadata spreadsheetMetadata"
)
KNOWN = fields(_BESIDE).union(PARTS)
"""Every field a part may have, those that say more of the data included."""
