"""The recall tools as data, for a host that offers them itself.

    for spec in ullage.recall_tools():
        framework.add(spec.name, spec.description, spec.parameters, run=session.open)

A framework that resolves calls against the tools of its agent has to know them before a request
is made. Give the session ``recall="host"`` then: nothing is added to a request, and notices
name these tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ullage.core.history import canon
from ullage.core.values.messages import WHOLE, ToolCall
from ullage.core.values.toolset import ToolSpec

if TYPE_CHECKING:
    from ullage.core.contract.policy import Policy


def recall_tools(policy: str | Policy = "default") -> tuple[ToolSpec, ...]:
    """The tools that a policy's notices speak of: name, description, schema, in their order.

    Args:
        policy: a policy, or the name of one.

    Raises:
        ConfigError: there is no such policy.
    """
    from ullage.policy.stages.named import preset  # `call_of` needs none

    chosen = preset(policy) if isinstance(policy, str) else policy
    return chosen.toolset.tools


def call_of(
    name: str, arguments: Mapping[str, Any] | str, call_id: str = ""
) -> ToolCall:
    """A call of one of them, as a framework hands it over: the answer says what is no JSON."""
    if isinstance(arguments, str):
        return ToolCall(call_id, name, arguments, WHOLE)
    try:
        text = canon.canonical_json(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        text = "null"
    return ToolCall(call_id, name, text, WHOLE)
