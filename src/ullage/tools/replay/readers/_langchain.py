"""LangChain's messages, in the three forms in which programs keep them.

    function              a message
    ``model_dump``        {"type": "ai", "content": …, "tool_calls": […]}
    ``messages_to_dict``  {"type": "ai", "data": {"content": …}}
    ``dumpd``             {"lc": 1, "id": [… "AIMessage"], "kwargs": {"content": …}}

The first is also read with the name of the class as the type.
"""

from __future__ import annotations

from typing import Any

from ullage.tools.replay.readers._log import fields_of

_ROLES = {
    **dict.fromkeys(("SystemMessage", "system"), "system"),
    **dict.fromkeys(("HumanMessage", "human"), "user"),
    **dict.fromkeys(("AIMessage", "AIMessageChunk", "ai"), "assistant"),
    **dict.fromkeys(("ToolMessage", "tool"), "tool"),
}


def are_messages(values: Any) -> bool:
    """Whether it is a list of LangChain's messages and nothing else."""
    return (
        isinstance(values, list)
        and bool(values)
        and all(_type_of(value) in _ROLES for value in values)
    )


def plain(message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The role of a message and its fields, in whatever form it was kept."""
    role = _ROLES[_type_of(message)]
    for key in ("data", "kwargs"):
        if isinstance(message.get(key), dict):
            return role, message[key]
    return role, message


def _type_of(value: Any) -> str:
    message = fields_of(value)
    path = message.get("id")
    if "lc" in message and isinstance(path, list) and path:
        return str(path[-1])
    return str(message.get("type"))
