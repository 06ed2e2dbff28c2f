"""The recall tools as the model sees them. Their bytes are constant within a session."""

from __future__ import annotations

from ullage.formats import ToolSpec
from ullage.notices import CONTINUATION, GREP, READ

__all__ = ["PAGE_CHARS", "PAGE_LINES", "specs"]

PAGE_CHARS = 8_000
PAGE_LINES = 200
MATCHES = 50

_REF = {"type": "string", "description": "The ref from the notice"}

_SPECS = (
    ToolSpec(
        CONTINUATION,
        "Read on in a tool output that was shown in part or set aside. Returns the next "
        f"{PAGE_CHARS:,} characters, and says where to read on.",
        {
            "type": "object",
            "properties": {
                "tool_call_id": {
                    "type": "string",
                    "description": "The ref from the notice, or the id of the tool call",
                },
                "offset": {
                    "type": "integer",
                    "description": "Character offset to read from (default: 0)",
                },
            },
            "required": ["tool_call_id"],
        },
    ),
    ToolSpec(
        READ,
        "Read a tool output that was set aside, by line. Lines are numbered from 1.",
        {
            "type": "object",
            "properties": {
                "ref_id": _REF,
                "offset": {"type": "integer", "description": "Lines to skip (default: 0)"},
                "limit": {
                    "type": "integer",
                    "description": f"Lines to return (default: {PAGE_LINES})",
                },
            },
            "required": ["ref_id"],
        },
    ),
    ToolSpec(
        GREP,
        "Search a tool output that was set aside for a regular expression (RE2 syntax). "
        "Returns the matching lines with their numbers.",
        {
            "type": "object",
            "properties": {
                "ref_id": _REF,
                "pattern": {"type": "string", "description": "Regular expression, RE2 syntax"},
                "ignore_case": {"type": "boolean", "description": "Default: false"},
                "context_lines": {
                    "type": "integer",
                    "description": "Lines around each match, 0 to 5 (default: 0)",
                },
            },
            "required": ["ref_id", "pattern"],
        },
    ),
)


def specs(prefix: str = "") -> tuple[ToolSpec, ...]:
    """The recall tools, their names led by ``prefix`` after a clash with the caller's own."""
    return tuple(ToolSpec(prefix + spec.name, spec.description, spec.parameters) for spec in _SPECS)
