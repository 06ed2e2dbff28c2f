"""The types of blocks of Anthropic Messages (`provider-rules` §1.A), and what holds for media.

The caller's blocks are held to the fields of the documentation. Types that are not listed are
carried through.
"""

from __future__ import annotations

from typing import Any

from ullage.values.messages import Role
from ullage.wires.block import Block, MediaLimits, fields, table

__all__ = ["BLOCKS", "MEDIA", "ROLES", "SERVER", "SERVER_CALLS", "SERVER_RESULTS", "THOUGHTS"]

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

_USER, _MODEL, _SYSTEM = ("user",), ("assistant",), ("system",)
_HELD = {"source": fields("media_type data url file_id")}
_CALL = {"id": str, "name": str, "input": dict}


def _may(names: str = "") -> frozenset[str]:
    return fields(f"{names} cache_control")


def _source(**types: tuple[str, ...]) -> dict[str, Any]:
    """What holds a medium: fields by type of the source."""
    held = {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)}
    return {"source": {**held, **types}}


def _server_result(kind: str, **more: Any) -> Block:
    """What a tool of the server's gave."""
    content = more.pop("content", (list, dict))
    return Block(
        kind=kind,
        roles=_MODEL,
        needs={"tool_use_id": str, "content": content},
        may=_may("caller is_error"),
        by_server=True,
        closes="tool_use_id",
        **more,
    )


BLOCKS = table(
    Block(kind="message", becomes="message", carried=fields("content")),
    Block(
        kind="text",
        becomes="text",
        text="text",
        roles=(*_USER, *_MODEL, *_SYSTEM),
        in_result=True,
        needs={"text": str},
        may=_may("citations"),
        edited="a text",
        carried=fields("text"),
    ),
    Block(
        kind="image",
        becomes="media",
        roles=_USER,
        in_result=True,
        needs={"source": dict},
        may=_may("transformations"),
        inner=_source(),
        edited="a text",
        carried=fields("source"),
        within=_HELD,
        media=("image",),
    ),
    Block(
        kind="document",
        becomes="media",
        roles=_USER,
        in_result=True,
        needs={"source": dict},
        may=_may("title context citations"),
        inner=_source(text=("media_type", "data"), content=("content",)),
        edited="a text",
        carried=fields("source title"),
        within=_HELD,
        media=("document",),
    ),
    Block(
        kind="search_result",
        roles=_USER,
        in_result=True,
        needs={"source": str, "title": str, "content": list},
        may=_may("citations"),
        not_null=fields("citations"),
        edited="a text",
    ),
    Block(kind="container_upload", roles=_USER, needs={"file_id": str}, may=_may()),
    Block(
        kind="thinking",
        becomes="reasoning",
        text="thinking",
        roles=_MODEL,
        needs={"thinking": str, "signature": str},
    ),
    Block(kind="redacted_thinking", becomes="reasoning", roles=_MODEL, needs={"data": str}),
    Block(
        kind="tool_use",
        becomes="call",
        text="input",
        roles=_MODEL,
        needs=_CALL,
        may=_may("caller toolset_name"),
        not_null=fields("caller"),
        carried=fields("name input"),
    ),
    Block(
        kind="tool_result",
        becomes="result",
        text="content",
        roles=_USER,
        needs={"tool_use_id": str},
        may=_may("content is_error toolset_name"),
        not_null=fields("is_error"),
        carried=fields("tool_use_id content is_error"),
    ),
    Block(
        kind="tool_reference",
        in_result=True,
        needs={"tool_name": str},
        may=_may(),
        edited="a text",
    ),
    Block(
        kind="browser_state",
        in_result=True,
        needs={"tabs": list},
        may=_may("state_changes"),
        edited="a text",
    ),
    Block(kind="tool_addition", roles=_SYSTEM, needs={"tool": dict}, may=_may()),
    Block(kind="tool_removal", roles=_SYSTEM, needs={"tool": dict}, may=_may()),
    Block(
        kind="server_tool_use",
        roles=_MODEL,
        needs=_CALL,
        may=_may("caller"),
        by_server=True,
        opens="id",
    ),
    Block(
        kind="mcp_tool_use",
        roles=_MODEL,
        needs=_CALL,
        may=_may("server_name"),
        by_server=True,
        opens="id",
    ),
    _server_result("mcp_tool_result", content=object),
    _server_result("web_search_tool_result"),
    _server_result("web_fetch_tool_result"),
    _server_result("code_execution_tool_result"),
    _server_result("bash_code_execution_tool_result"),
    _server_result("text_editor_code_execution_tool_result"),
    _server_result("tool_search_tool_result"),
    _server_result("advisor_tool_result"),
    Block(
        kind="mcp_tool_listing",
        roles=_MODEL,
        needs={"mcp_server_name": str, "tools": list},
        by_server=True,
    ),
    Block(
        kind="fallback",
        roles=_MODEL,
        needs={"from": dict, "to": dict},
        may=fields("trigger"),
        by_server=True,
    ),
    Block(
        kind="compaction",
        roles=(*_USER, *_MODEL),
        may=_may("content encrypted_content signature tool_changes"),
        unknown="A22",
    ),
)
"""Every type by its name."""

SERVER_CALLS = frozenset(row.kind for row in BLOCKS.values() if row.opens)
SERVER_RESULTS = frozenset(row.kind for row in BLOCKS.values() if row.closes)
SERVER = "server "
"""Before the id of such a call and of its result, where calls and results are paired."""

THOUGHTS = frozenset(row.kind for row in BLOCKS.values() if row.becomes == "reasoning")

MEDIA = MediaLimits(
    images=600,
    images_small_window=100,
    small_window_tokens=200_000,
    side_px=8_000,
    many_images=20,
    many_side_px=2_000,
    image_bytes=10_000_000,
)
"""A25 and the table of blocks."""
