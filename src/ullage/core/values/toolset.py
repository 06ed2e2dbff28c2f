"""The recall toolset: which tools a model is given to read on with, and what they say.

A toolset is data. The default has one tool, the documents three; a policy may bring one of its
own, with other tools, other page sizes and other words. The bytes of a toolset's tools are
constant within a session: they stand at the head of every request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

CONTINUATION = "get_continuation"
READ = "tool_output_cache"
GREP = "tool_output_cache_grep"
RECALL_TOOLS = frozenset((CONTINUATION, READ, GREP))


class ToolSpec(Struct, frozen=True, eq=False):
    """A tool, before a format gives it its wire form.

    Attributes:
        name: its name.
        description: what the model reads about it.
        parameters: the JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    def renamed(self, prefix: str) -> ToolSpec:
        """The tool under another name, which says how notices may have named it before.

        Args:
            prefix: what stands before its name.
        """
        description = (
            f"{self.description}. Earlier notices name it {self.name}"
        )
        return ToolSpec(prefix + self.name, description, self.parameters)


class Toolset(Struct, frozen=True, eq=False, kw_only=True):
    """The tools that are offered, their page sizes, and their words.

    Attributes:
        tools: some of the recall tools, in the order in which they are offered.
        offered: whether they are offered unasked: to a history that begins with the session,
            or to any (the document injects them).
        page_chars: the most characters of a page of text.
        page_lines: the lines of a page where the call names no limit.
        matches: the most matching lines a search shows.
        searches: whether `CONTINUATION` also finds lines, by ``words`` or by a ``pattern``: beneath
            a ref, and without one in all that left the view.
        first_offset: where `CONTINUATION` begins where the call names no offset.
        next_page: the last line of a page that is not the last. Fields: ``start``, ``stop``
            and ``total`` in characters, ``asked`` (what the call named), ``prefix`` (of the
            tools' names), ``read_on``.
        unknown: what an unknown ref or call id is answered with, or None for our own words.
            Field: ``asked``, as it stands within a JSON string.
    """

    tools: tuple[ToolSpec, ...]
    offered: Literal["no", "from the start", "always"] = "from the start"
    page_chars: int = 8_000
    page_lines: int = 200
    matches: int = 50
    searches: bool = False
    first_offset: int = 0
    next_page: str = (
        "[characters {start:,} to {stop:,} of {total:,}. Read on: {read_on}]"
    )
    unknown: str | None = None

    @property
    def former(self) -> tuple[ToolSpec, ...]:
        """Tools of these names as earlier versions defined them.

        A caller who keeps the tools of a view may send such a definition still.
        """
        return tuple(spec for spec in _FORMER if spec.name in self.names)

    @property
    def names(self) -> frozenset[str]:
        """The names of its tools."""
        return _names_of(tuple(self.tools))


@lru_cache(maxsize=64)
def _names_of(tools: tuple[ToolSpec, ...]) -> frozenset[str]:
    """The names of some tools; asked for each call and each result of a conversation."""
    return frozenset(tool.name for tool in tools)


def _property(kind: str, description: str) -> dict[str, str]:
    return {"type": kind, "description": description}


def _tool(
    name: str, description: str, *required: str, **properties: dict[str, str]
) -> ToolSpec:
    needs = {"required": list(required)} if required else {}
    return ToolSpec(
        name,
        description,
        {"type": "object", "properties": properties, **needs},
    )


_SHORT = {
    "tool_call_id": {"type": "string"},
    "offset": {"type": "integer"},
    "pattern": {"type": "string"},
}
_FORMER = (
    _tool(CONTINUATION, "Read on in a tool output, or search it", **_SHORT),
)

_REF = _property("string", "The ref from the notice")

OURS = Toolset(
    tools=(
        _tool(
            CONTINUATION,
            "Read on in a tool output that was shown in part or set aside. Returns the next "
            "8,000 characters, and says where to read on.",
            "tool_call_id",
            tool_call_id=_property(
                "string", "The ref from the notice, or the id of the tool call"
            ),
            offset=_property(
                "integer", "Character offset to read from (default: 0)"
            ),
        ),
        _tool(
            READ,
            "Read a tool output that was set aside, by line. Lines are numbered from 1.",
            "ref_id",
            ref_id=_REF,
            offset=_property("integer", "Lines to skip (default: 0)"),
            limit=_property("integer", "Lines to return (default: 200)"),
        ),
        _tool(
            GREP,
            "Search a tool output that was set aside for a regular expression (RE2 syntax). "
            "Returns the matching lines with their numbers.",
            "ref_id",
            "pattern",
            ref_id=_REF,
            pattern=_property("string", "Regular expression, RE2 syntax"),
            ignore_case=_property("boolean", "Default: false"),
            context_lines=_property(
                "integer", "Lines around each match, 0 to 5 (default: 0)"
            ),
        ),
    )
)
"""The three tools of the documents."""

SHORT = Toolset(
    tools=(
        _tool(
            CONTINUATION, "Find cut text", **_SHORT, words={"type": "string"}
        ),
    ),
    searches=True,
)
"""The one tool of the default policy: at most 220 characters on Anthropic's wire, for it stands at
the head of every request. Notices show how it is called, and its answers say what was missing."""
