"""Where in a recorded history the agent sent a request."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from ullage.replay.readers import Run

__all__ = ["answer_of", "boundaries", "is_models"]

_REQUESTS = ("request", "exchanges")
"""Recordings whose whole history was one request."""


def boundaries(run: Run) -> list[int]:
    """The lengths at which the recorded agent sent a request: before each reply.

    A request whose reply is not in the history was sent too.
    """
    speaks = [is_models(message) for message in run.messages]
    sent = [i for i in range(1, len(speaks)) if speaks[i] and not speaks[i - 1]]
    if speaks and not speaks[-1] and (len(speaks) in run.usage or run.source in _REQUESTS):
        sent.append(len(speaks))
    return sent


def is_models(message: Any) -> bool:
    """Whether the model wrote this message, or this item of a Responses history."""
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return not str(message.get("type", "")).endswith(("_output", "_response"))


def answer_of(run: Run, length: int) -> list[Any]:
    """The recorded reply to the request of this length; empty if it is not in the history."""
    return list(takewhile(is_models, run.messages[length:]))
