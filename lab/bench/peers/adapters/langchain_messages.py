"""Chat messages as LangChain's, and back; for the adapters of LangChain and deepagents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from speaks import Message, View, calls_of, text_of


def as_theirs(message: Message, index: int) -> BaseMessage:
    """A Chat message; its place in the history is the id."""
    text, id_ = text_of(message), str(index)
    if message["role"] == "assistant":
        calls = [
            {
                "id": call_id,
                "name": name,
                "args": args if isinstance(args, dict) else {"_": args},
            }
            for call_id, name, args in calls_of(message)
        ]
        return AIMessage(content=text, tool_calls=calls, id=id_)
    if message["role"] == "tool":
        return ToolMessage(
            content=text, tool_call_id=message["tool_call_id"], id=id_
        )
    if message["role"] in ("system", "developer"):
        return SystemMessage(content=text, id=id_)
    return HumanMessage(content=text, id=id_)


def as_view(
    history: Sequence[Message],
    theirs: Sequence[BaseMessage],
    made: Iterable[Any],
) -> View:
    """What the library made, as a view.

    Args:
        history: the Chat messages.
        theirs: the same as they were given to the library.
        made: what came back.
    """
    view: View = []
    for message in made:
        index = int(message.id)
        same = message.content == theirs[index].content
        view.append(
            index if same else {**history[index], "content": message.content}
        )
    return view
