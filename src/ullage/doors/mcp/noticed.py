"""Where the structure of a result says that it was cut, and how the schema allows it.

Clients give the model the structure of a result alone, where it has one. So a structure that was
cut says so itself, in a string under a name of ours, and the tool's ``outputSchema`` declares that
string as optional. A schema that leaves no room for it is not declared to the client at all: the
client then takes the result as it is (MCP 2025-11-25, server/tools, "Output Schema").
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Raw

from ullage.doors.mcp.frames import (
    UnreadableFrame,
    encode,
    fields_of,
    value_of,
)

_NAMES = ("ullage", "ullage_notice", "ullage_cut")
_DECLARED = {
    "type": "string",
    "description": "What was cut of this result, and how to read on.",
}
_CLOSED = frozenset(
    (
        *(
            "$ref",
            "$dynamicRef",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "enum",
            "const",
        ),
        *(
            "maxProperties",
            "patternProperties",
            "propertyNames",
            "dependentSchemas",
        ),
    )
)
"""Keywords at the root of a schema that may forbid one more name."""


def notice_name(names: Collection[str]) -> str | None:
    """The name under which a structure says that it was cut; None if each is taken.

    Args:
        names: the names that its schema declares, or that it has where no schema is declared.
    """
    return next((name for name in _NAMES if name not in names), None)


def declared_names(schema: bytes) -> Collection[str] | None:
    """The names of a schema that leaves room for a notice; None if it leaves none.

    Args:
        schema: an ``outputSchema`` as JSON.
    """
    try:
        root = value_of(schema)
    except UnreadableFrame:
        return None
    if not isinstance(root, Mapping) or root.get("type") != "object":
        return None
    properties = root.get("properties", {})
    if not isinstance(properties, Mapping) or not _CLOSED.isdisjoint(root):
        return None
    required = root.get("required", [])
    return [*properties, *(required if isinstance(required, list) else ())]


def schema_with_notice(schema: bytes) -> bytes | None:
    """A schema that declares the notice as well; None if it leaves no room for one.

    All else in it keeps its bytes.

    Args:
        schema: an ``outputSchema`` as JSON.
    """
    names = declared_names(schema)
    name = None if names is None else notice_name(names)
    if name is None:
        return None
    root = fields_of(schema)
    properties = fields_of(root["properties"]) if "properties" in root else {}
    properties = {**properties, name: Raw(encode(_DECLARED))}
    return encode({**root, "properties": Raw(encode(properties))})
