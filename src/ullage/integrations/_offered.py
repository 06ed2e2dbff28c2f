"""The recall tools under the names that an adapter offers them by: ours give way to the user's.

Most frameworks have to know a tool before a request is made. So an adapter gives them each of ours
under several names, and shows the model one of them: the name of `ullage.recall_tools`, or, where
the user has a tool of that name, the first that nobody has. The session reads in the request which
it is, and its notices say so (`ullage.Session`, ``recall="host"``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ullage import ToolSpec
from ullage.doors.host import field

PREFIXES = ("", "ullage_", "ullage2_")
"""What may stand before our names, the first that makes them free is taken."""


class OfferedTool(NamedTuple):
    """A recall tool under one of its names.

    Attributes:
        spec: the tool as the model is shown it.
        asked: its name in a call of `ullage.Session.answer`, whatever the model is shown.
        prefix: what stands before that name: one of `PREFIXES`.
    """

    spec: ToolSpec
    asked: str
    prefix: str


def offered_tools(specs: Sequence[ToolSpec]) -> tuple[OfferedTool, ...]:
    """Each tool under all of its names, those without a prefix first.

    Args:
        specs: the tools of a policy; see `ullage.recall_tools`.
    """
    offered = [OfferedTool(spec, spec.name, "") for spec in specs]
    for prefix in PREFIXES[1:]:
        for spec in specs:
            offered.append(
                OfferedTool(spec.renamed(prefix), spec.name, prefix)
            )
    return tuple(offered)


def free_tools(
    offered_tools: Sequence[OfferedTool], names: Collection[str]
) -> list[OfferedTool]:
    """Ours under the first prefix that leaves none of them a name of the user's.

    Args:
        offered_tools: ours, under all of their names.
        names: of the user's own tools.

    Returns:
        The tools; none where the user has a name of ours under each prefix.
    """
    for prefix in PREFIXES:
        tools = [tool for tool in offered_tools if tool.prefix == prefix]
        if tools and not any(tool.spec.name in names for tool in tools):
            return tools
    return []


def shown_tools(
    offered_tools: Sequence[OfferedTool],
    tools: Sequence[Any],
    names: Collection[str] = (),
) -> list[tuple[Any, OfferedTool | None]]:
    """The tools that a model is shown: all of the user's, and each of ours under one name.

    Args:
        offered_tools: ours, under all of their names.
        tools: those that the framework would show, the user's and ours.
        names: of the user's that are not among them.

    Returns:
        Each tool with what it is of ours; None where it is the user's.
    """
    pairs = [(tool, _ours(offered_tools, tool)) for tool in tools]
    names_of_user = {*names}
    for tool, offered in pairs:
        if offered is None:
            names_of_user.add(_text(tool, "name"))
    listed = [offered for _, offered in pairs if offered is not None]
    shown = free_tools(listed, names_of_user)
    return [
        (tool, offered)
        for tool, offered in pairs
        if offered is None or offered in shown
    ]


def _ours(
    offered_tools: Sequence[OfferedTool], tool: Any
) -> OfferedTool | None:
    """What a tool, or its definition, is of ours: known by its name and its description.

    A framework may add to a description, such as the form of what a tool returns.
    """
    name = _text(tool, "name")
    description = _text(tool, "description")
    for offered in offered_tools:
        spec = offered.spec
        if spec.name == name and description.startswith(spec.description):
            return offered
    return None


def _text(tool: Any, name: str) -> str:
    """A text of a tool, or of its definition; nothing where it has none."""
    value = field(field(tool, "function") or tool, name)
    return value if isinstance(value, str) else ""
