"""What the command line and the HTTP endpoint have in common: one turn of one agent.

The tools are those of an MCP server; one of them returns more than the model should see at
once. The session shows the beginning, and the model reads on with `get_continuation`, which
is answered here, without a round trip to the server.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ullage import Session
from ullage.doors.loop import Outcome, Tool, run_turn

__all__ = [
    "INSTRUCTIONS",
    "MEETING_SERVER",
    "POLICY",
    "agent_turn",
    "new_session",
]

POLICY = "continuation"
"""`tool-result-continuation.md`: 4,000 characters of a result are shown at first."""

MEETING_SERVER = (
    sys.executable,
    str(Path(__file__).with_name("meeting_server.py")),
)
"""The command that starts the MCP server."""

INSTRUCTIONS = (
    "You answer questions about meetings. If a tool result is shown in part, read on until "
    "you have what you need."
)


def new_session(model: str, store: str, tenant: str = "") -> Session:
    """The session of one conversation; what is set aside is kept in ``store``."""
    return Session(
        model, policy=POLICY, store=store, format="openai-chat", tenant=tenant
    )


def agent_turn(
    create: Callable[..., Any],
    session: Session,
    tools: Sequence[Tool],
    messages: list[Any],
    said: str,
) -> Outcome:
    """Answer what the user said; ``messages`` grows by all that it took.

    Args:
        create: ``openai.OpenAI().chat.completions.create``.
        session: the session of this conversation.
        tools: the tools of the MCP server.
        messages: the history so far, empty at the beginning.
        said: what the user says.
    """
    if not messages:
        messages.append({"role": "system", "content": INSTRUCTIONS})
    messages.append({"role": "user", "content": said})
    request = {"model": session.settings.model, "messages": messages}
    return run_turn(create, session, request, tools=tools)
