"""The recall tools under the names that an adapter offers them by: ours give way to the user's.

A framework has to know a tool before a request is made. So an adapter gives it each of ours under
two names, and shows the model one of them: the name of `ullage.recall_tools`; the other where the
user has a tool of that name. The session reads in the request which it is, and its notices say
so (`ullage.Session`, ``recall="host"``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ullage import ToolSpec
from ullage.doors.host import field

PREFIX = "ullage_"
"""What stands before our names where the user has a tool of one of them."""


class OfferedTool(NamedTuple):
    """A recall tool under one of its two names.

    Attributes:
        spec: the tool as the model is shown it.
        asked: its name in a call of `ullage.Session.answer`, whatever the model is shown.
        prefix: what stands before that name: `PREFIX` or nothing.
    """

    spec: ToolSpec
    asked: str
    prefix: str


def offered_tools(specs: Sequence[ToolSpec]) -> tuple[OfferedTool, ...]:
    """Each tool under both of its names, those without `PREFIX` first.

    Args:
        specs: the tools of a policy; see `ullage.recall_tools`.
    """
    plain = (OfferedTool(spec, spec.name, "") for spec in specs)
    others = (
        OfferedTool(spec.renamed(PREFIX), spec.name, PREFIX) for spec in specs
    )
    return (*plain, *others)


def prefix_beside(specs: Sequence[ToolSpec], names: Collection[str]) -> str:
    """What stands before our names in a request: nothing, unless the user has a tool of one.

    Args:
        specs: the tools of a policy.
        names: of the user's own tools.
    """
    clashes = any(spec.name in names for spec in specs)
    return PREFIX if clashes else ""


def shown_tools(
    offered_tools: Sequence[OfferedTool],
    tools: Sequence[Any],
) -> list[tuple[Any, OfferedTool | None]]:
    """The tools that a model is shown: all of the user's, and each of ours under one name.

    Args:
        offered_tools: ours, under both names.
        tools: those that the framework would show, the user's and ours.

    Returns:
        Each tool with what it is of ours; None where it is the user's.
    """
    ours: dict[tuple[str, str], OfferedTool] = {}
    for offered in offered_tools:
        ours[offered.spec.name, offered.spec.description] = offered
    pairs = []
    names_of_user = set()
    for tool in tools:
        identity = _identity(tool)
        pairs.append((tool, ours.get(identity)))
        if identity not in ours:
            names_of_user.add(identity[0])
    specs = [offered.spec for offered in offered_tools if not offered.prefix]
    prefix = prefix_beside(specs, names_of_user)
    return [
        (tool, offered)
        for tool, offered in pairs
        if offered is None or offered.prefix == prefix
    ]


def _identity(tool: Any) -> tuple[str, str]:
    """The name and the description of a tool, or of its definition, by which ours are known."""
    body = field(tool, "function") or tool
    return str(field(body, "name")), str(field(body, "description"))
