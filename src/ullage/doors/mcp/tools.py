"""The tools of a server as its lists name them, and ours at the end of them.

A tool whose results may be cut declares the notice in its output schema, or no schema (`noticed`).

Ours are in the first list a client sees and stay as they are: a list that changes in mid-session
costs every client its cache. If the server has a tool of one of our names, all of ours get a
prefix; the names are settled at the end of the first whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from ullage import ToolSpec
from ullage.doors.host import Words
from ullage.doors.mcp.frames import (
    UnreadableFrame,
    encode,
    fields_of,
    items_of,
    value_of,
)
from ullage.doors.mcp.noticed import schema_with_notice

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def _of_a_server(tool: ToolSpec) -> ToolSpec:
    """A server never sees the id of a model's call: the ref takes its place."""
    properties = tool.parameters["properties"]
    if "tool_call_id" not in properties:
        return tool
    named = {**properties["tool_call_id"], "description": "The ref to read"}
    properties = {**properties, "tool_call_id": named}
    return replace(
        tool, parameters={**tool.parameters, "properties": properties}
    )


_TOOLSET = Words().toolset
TOOLSET = replace(_TOOLSET, tools=tuple(map(_of_a_server, _TOOLSET.tools)))
"""The recall tools, as a server offers them."""

_PREFIXES = ("ullage_", *(f"ullage{n}_" for n in range(2, 10)))


class ToolListing(Struct, frozen=True):
    """The tools of a server, as its lists declared them so far.

    Attributes:
        schemas: of each tool named so far its output schema as JSON, or None if it declares none.
        prefix: what stands before our names.
    """

    schemas: Mapping[str, bytes | None] = {}
    prefix: str = ""

    @property
    def words(self) -> Words:
        """The wording of notices, which name our tools."""
        return Words(prefix=self.prefix, toolset=TOOLSET)

    def words_of(self, tool: str) -> Words | None:
        """The wording under which a tool is one of ours; None if it is the server's.

        A client may remember a list of an earlier session, and its prefix.
        """
        return None if tool in self.schemas else our_words(tool)


def our_words(tool: str) -> Words | None:
    """The wording under which a tool of this name may be ours; None if it cannot be."""
    wordings = (
        Words(prefix=prefix, toolset=TOOLSET) for prefix in ("", *_PREFIXES)
    )
    return next((words for words in wordings if words.is_recall(tool)), None)


def is_our_name(tool: str) -> bool:
    """Whether one of our tools may be called so, in this session or an earlier one."""
    return our_words(tool) is not None


def prefix_beside(names: Collection[str], prefix: str = "") -> str:
    """The prefix under which none of our names is among these: the one at hand, if it will do."""
    for candidate in (prefix, *_PREFIXES):
        if not any(candidate + tool.name in names for tool in TOOLSET.tools):
            return candidate
    raise UnreadableFrame("a server with a tool under every name of ours")


def extended(
    result: bytes | Raw,
    listed: ToolListing,
    *,
    is_first_page: bool,
    may_cut: Callable[[str], bool] = lambda tool: True,
) -> tuple[bytes | None, ToolListing]:
    """A page of ``tools/list`` as the client is given it, and what it tells.

    The last page has our tools at its end. A page of which nothing changes stays as it is: None.

    Args:
        result: the result as JSON.
        listed: what earlier pages told.
        is_first_page: whether the list begins here: what was listed before counts no more.
        may_cut: whether the results of the tool of a name may be cut.

    Raises:
        Unreadable: it is not such a result. It should be passed on as it is.
    """
    fields = fields_of(result)
    if "tools" not in fields:
        raise UnreadableFrame("a list without tools")
    tools = items_of(fields["tools"])
    schemas = {} if is_first_page else dict(listed.schemas)
    schemas.update(map(_declared, tools))
    listed_tools = [_as_given(tool, may_cut) for tool in tools]
    is_last_page = (
        "nextCursor" not in fields or value_of(fields["nextCursor"]) is None
    )
    if not is_last_page:
        page = (
            None
            if listed_tools == tools
            else encode({**fields, "tools": listed_tools})
        )
        return page, replace(listed, schemas=schemas)
    prefix = prefix_beside(schemas, listed.prefix)
    own_tools = [
        Raw(encode(as_listed(tool, prefix))) for tool in TOOLSET.tools
    ]
    return encode(
        {**fields, "tools": [*listed_tools, *own_tools]}
    ), ToolListing(schemas, prefix)


def _as_given(tool: Raw, may_cut: Callable[[str], bool]) -> Raw:
    """A tool as the client gets it: its schema declares our notice, or is left out."""
    name, schema = _declared(tool)
    if schema is None or not may_cut(name):
        return tool
    fields = fields_of(tool)
    with_notice = schema_with_notice(schema)
    if with_notice is None:
        del fields["outputSchema"]
    else:
        fields["outputSchema"] = Raw(with_notice)
    return Raw(encode(fields))


def _declared(tool: Raw) -> tuple[str, bytes | None]:
    """The name of a tool, and its output schema."""
    fields = fields_of(tool)
    name = value_of(fields.get("name", b"null"))
    if not isinstance(name, str):
        raise UnreadableFrame("a tool without a name")
    schema = bytes(fields.get("outputSchema", b"null"))
    return name, None if schema.strip() == b"null" else schema


def as_listed(tool: ToolSpec, prefix: str = "") -> dict[str, Any]:
    """A tool of ours as MCP lists it: it only reads, and reaches for nothing else."""
    return {
        "name": prefix + tool.name,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def version_of(params: Mapping[str, Any]) -> str | None:
    """The protocol version that a request names itself, as from 2026-07-28 on; None before.

    Args:
        params: of the request, read.
    """
    meta = params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else None
