"""The blocks of Converse: each is the one field that it has.

Types, names of fields and enumerations are those of the service model that botocore ships
(bedrock-runtime, 2023-09-30).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.values.messages import Role
from ullage.wires.block import Block, Kind, fields, table

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
}

_USER = ("user",)
_MODEL = ("assistant",)
_SYSTEM = ("system",)
_BOTH = (*_USER, *_MODEL)


def _medium(
    kind: str, media: Kind, *roles: str, in_result: bool = False
) -> Block:
    """A picture, a sound or a video: its format, and its bytes or its place in a bucket."""
    return Block(
        kind=kind,
        becomes="media",
        roles=roles,
        in_result=in_result,
        needs={"format": str, "source": dict},
        may=fields("error"),
        edited="a text",
        carried=fields(kind),
        within={kind: fields("format source")},
        media=(media,),
        data=(f"{kind}.source.bytes", f"{kind}.source.s3Location.uri"),
        mime=f"{kind}.format",
    )


BLOCKS = table(
    Block(
        kind="text",
        becomes="text",
        text="text",
        roles=(*_BOTH, *_SYSTEM),
        in_result=True,
        edited="a text",
        carried=fields("text"),
    ),
    Block(
        kind="json",
        becomes="text",
        text="json",
        in_result=True,
        edited="a text",
        carried=fields("json"),
    ),
    _medium("image", "image", *_BOTH, in_result=True),
    _medium("audio", "audio", *_BOTH),
    _medium("video", "document", *_USER, in_result=True),
    Block(
        kind="document",
        becomes="media",
        roles=_USER,
        in_result=True,
        needs={"name": str, "source": dict},
        may=fields("format context citations"),
        edited="a text",
        carried=fields("document"),
        within={"document": fields("format name source")},
        media=("document",),
        data=("document.source.bytes", "document.source.s3Location.uri"),
        mime="document.format",
        title="document.name",
    ),
    Block(
        kind="toolUse",
        becomes="call",
        text="input",
        roles=_MODEL,
        needs={"toolUseId": str, "name": str, "input": dict},
        may=fields("type"),
        carried=fields("toolUse"),
        within={"toolUse": fields("toolUseId name input")},
    ),
    Block(
        kind="toolResult",
        becomes="result",
        text="content",
        roles=_BOTH,
        needs={"toolUseId": str, "content": list},
        may=fields("status type"),
        carried=fields("toolResult"),
        within={"toolResult": fields("toolUseId content status")},
        author="tool",
    ),
    Block(
        kind="reasoningContent",
        becomes="reasoning",
        text="reasoningText.text",
        roles=_MODEL,
        may=fields("reasoningText redactedContent"),
    ),
    Block(
        kind="searchResult",
        roles=_USER,
        in_result=True,
        edited="a text",
        needs={"source": str, "title": str, "content": list},
        may=fields("citations"),
    ),
    Block(
        kind="guardContent",
        roles=_USER,
        may=fields("text image"),
        carried=fields("guardContent"),
        within={"guardContent": fields("text")},
    ),
    Block(
        kind="citationsContent",
        roles=_MODEL,
        edited="a text",
        may=fields("content citations"),
    ),
    Block(
        kind="toolAddition",
        roles=_SYSTEM,
        needs={"tool": dict},
    ),
    Block(
        kind="toolRemoval",
        roles=_SYSTEM,
        needs={"tool": dict},
    ),
    Block(
        kind="message",
        becomes="message",
        carried=fields("content"),
    ),
)
"""Every type by its name; of those with an object, ``needs`` and ``may`` are its fields."""

CACHE_POINT = "cachePoint"
"""A block that says: cache the prompt up to here. It is no part of a message."""


def kind_of(block: Mapping[str, Any]) -> str:
    """The field that a block has; ``""`` of one with none that is known."""
    for name, body in block.items():
        if name in BLOCKS and body is not None:
            return name
    return ""


def body_of(block: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """What stands in that field, where it is an object; an empty one where it is not."""
    body = block.get(kind)
    if isinstance(body, Mapping):
        return body
    return {}


def is_cache_point(block: object) -> bool:
    """Whether a block, or an entry of the tools or the system text, marks where to cache."""
    return isinstance(block, Mapping) and block.get(CACHE_POINT) is not None


def is_by_server(body: Mapping[str, Any]) -> bool:
    """Whether a call or a result is of a tool that the caller does not run."""
    kind = body.get("type")
    return isinstance(kind, str) and kind != ""
