"""The types of blocks of Anthropic Messages (`provider-rules` §1.A), and what holds for media.

The caller's blocks are held to the fields of the documentation. Types that are not listed are
carried through.
"""

from __future__ import annotations

from typing import Any

from ullage.core.values.authors import Author
from ullage.core.values.messages import Role
from ullage.wires.block import Block, fields, table

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
}

_USER = ("user",)
_MODEL = ("assistant",)
_SYSTEM = ("system",)
_CALL = {"id": str, "name": str, "input": dict}
_SOURCES = {
    "base64": ("media_type", "data"),
    "url": ("url",),
    "file": ("file_id",),
}
_DATA = ("source.data", "source.url", "source.file_id")
_MIME = "source.media_type"
_SOURCE_FIELDS = {"source": fields("media_type data url file_id")}


def _may(names: str = "") -> frozenset[str]:
    return fields(f"{names} cache_control")


def _server_call(kind: str, may: str) -> Block:
    caller = "caller" if "caller" in may else ""
    return Block(
        kind,
        roles=_MODEL,
        needs=_CALL,
        may=_may(may),
        by_server=True,
        opens="id",
        caller=caller,
    )


def _server_result(
    name: str,
    content: Any = (list, dict),
    *,
    author: Author = "tool",
) -> Block:
    """The result of a tool that the server runs."""
    needs = {"tool_use_id": str, "content": content}
    may = _may("caller is_error")
    kind = f"{name}_tool_result"
    return Block(
        kind,
        roles=_MODEL,
        needs=needs,
        may=may,
        by_server=True,
        closes="tool_use_id",
        author=author,
        caller="caller",
    )


BLOCKS = table(
    Block("message", becomes="message", carried=fields("content")),
    Block(
        "text",
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
        "image",
        becomes="media",
        roles=_USER,
        in_result=True,
        needs={"source": dict},
        may=_may("transformations"),
        inner={"source": _SOURCES},
        edited="a text",
        carried=fields("source"),
        within=_SOURCE_FIELDS,
        media=("image",),
        data=_DATA,
        mime=_MIME,
    ),
    Block(
        "document",
        becomes="media",
        roles=_USER,
        in_result=True,
        needs={"source": dict},
        may=_may("title context citations"),
        edited="a text",
        inner={
            "source": {
                **_SOURCES,
                "text": ("media_type", "data"),
                "content": ("content",),
            }
        },
        carried=fields("source title"),
        within=_SOURCE_FIELDS,
        media=("document",),
        data=_DATA,
        mime=_MIME,
        title="title",
    ),
    Block(
        "search_result",
        roles=_USER,
        in_result=True,
        edited="a text",
        needs={"source": str, "title": str, "content": list},
        may=_may("citations"),
        not_null=fields("citations"),
    ),
    Block(
        "container_upload",
        roles=_USER,
        needs={"file_id": str},
        may=_may(),
        reader="program",
    ),
    Block(
        "thinking",
        becomes="reasoning",
        text="thinking",
        roles=_MODEL,
        needs={"thinking": str, "signature": str},
    ),
    Block(
        "redacted_thinking",
        becomes="reasoning",
        roles=_MODEL,
        needs={"data": str},
    ),
    Block(
        "tool_use",
        becomes="call",
        text="input",
        roles=_MODEL,
        needs=_CALL,
        may=_may("caller toolset_name"),
        not_null=fields("caller"),
        carried=fields("name input"),
        caller="caller",
    ),
    Block(
        "tool_result",
        becomes="result",
        text="content",
        roles=_USER,
        needs={"tool_use_id": str},
        may=_may("content is_error toolset_name"),
        not_null=fields("is_error"),
        carried=fields("tool_use_id content is_error"),
        author="tool",
    ),
    Block(
        "tool_reference",
        in_result=True,
        needs={"tool_name": str},
        may=_may(),
        edited="a text",
        author="tool",
    ),
    Block(
        "browser_state",
        in_result=True,
        needs={"tabs": list},
        may=_may("state_changes"),
        edited="a text",
        author="tool",
    ),
    Block("tool_addition", roles=_SYSTEM, needs={"tool": dict}, may=_may()),
    Block("tool_removal", roles=_SYSTEM, needs={"tool": dict}, may=_may()),
    _server_call("server_tool_use", "caller"),
    _server_call("mcp_tool_use", "server_name"),
    _server_result("mcp", object),
    _server_result("web_search"),
    _server_result("web_fetch"),
    _server_result("code_execution", author="program"),
    _server_result("bash_code_execution", author="program"),
    _server_result("text_editor_code_execution", author="program"),
    _server_result("tool_search"),
    _server_result("advisor", author="model"),
    Block(
        "mcp_tool_listing",
        roles=_MODEL,
        needs={"mcp_server_name": str, "tools": list},
        by_server=True,
        author="tool",
    ),
    Block(
        "fallback",
        roles=_MODEL,
        needs={"from": dict, "to": dict},
        may=fields("trigger"),
        by_server=True,
    ),
    Block(
        "compaction",
        roles=(*_USER, *_MODEL),
        unknown="A22",
        author="model",
        may=_may("content encrypted_content signature tool_changes"),
    ),
)
"""Every type by its name."""

SERVER_CALLS = frozenset(row.kind for row in BLOCKS.values() if row.opens)
SERVER_RESULTS = frozenset(row.kind for row in BLOCKS.values() if row.closes)
SERVER = "server "
"""Before the id of such a call and of its result, where calls and results are paired."""

THOUGHTS = frozenset(
    row.kind for row in BLOCKS.values() if row.becomes == "reasoning"
)
