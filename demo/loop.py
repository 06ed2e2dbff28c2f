"""The agent loop, as a user of ullage writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["Client", "Session", "Toolbox", "run"]

Json = Mapping[str, Any]


class Client(Protocol):
    """A provider: here the investigator, in life ``openai.OpenAI().chat.completions``."""

    def create(self, **request: Any) -> dict[str, Any]:
        """One reply to one request."""


class Toolbox(Protocol):
    """The agent's own tools."""

    def run(self, call: Json, /) -> dict[str, Any]:
        """The tool message that answers a call."""


class Session(Protocol):
    """What the loop uses of ``ullage.Session``."""

    def fit(self, request: Json, /) -> dict[str, Any]:
        """A request that fits the window."""

    def observe(self, reply: Any, /) -> object:
        """Take in the usage of a reply."""

    def owns(self, call: Json, /) -> bool:
        """Whether a call is for a recall tool."""

    def recall(self, call: Json, /) -> dict[str, Any]:
        """The tool message that answers a recall call."""


def run(
    client: Client,
    session: Session,
    tools: Toolbox,
    request: dict[str, Any],
    *,
    watch: Callable[
        [dict[str, Any], dict[str, Any]], None
    ] = lambda view, reply: None,
) -> dict[str, Any]:
    """Run an agent to its end; ``request["messages"]`` grows into the full history.

    Args:
        client: answers requests.
        session: keeps them inside the window.
        tools: run what the model asks for.
        request: model, messages, tools and ``max_tokens``.
        watch: sees each view that was sent and its reply.

    Returns:
        The last view that was sent.
    """
    messages = request["messages"]
    while True:
        view = session.fit(request)
        reply = client.create(**view)
        session.observe(reply)
        watch(view, reply)
        message = reply["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return view
        for call in message["tool_calls"]:
            result = (
                session.recall(call) if session.owns(call) else tools.run(call)
            )
            messages.append(result)
