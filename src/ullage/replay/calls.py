"""The calls of a recorded run: where the agent sent a request, to which model, on which wire."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from ullage.replay.readers import FormatName, Run
from ullage.session.session import Session
from ullage.stages.policy import Policy
from ullage.values.limits import Limits
from ullage.wires import FORMATS
from ullage.wires.convert import convert

_REQUESTS = ("request", "exchanges")
"""Recordings whose whole history was one request."""
_MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
"""The model of a run whose recording names none, by format."""


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


def model_of(run: Run) -> str:
    """The model of a run; one of its format where the recording names none."""
    return run.model or _MODELS[run.format]


def request_of(run: Run, messages: list[Any]) -> dict[str, Any]:
    """The request of the run with these messages."""
    return {**run.request, "model": model_of(run), FORMATS[run.format].key: messages}


def session_for(run: Run, policy: Policy, window_tokens: int) -> partial[Session]:
    """Makes sessions that keep this run in a window; recall is on if the policy offers it."""
    return partial(
        Session,
        model_of(run),
        policy=policy,
        limits=Limits(window_tokens=window_tokens),
        format=run.format,
        recall=policy.toolset.offered != "no",
    )


def on_wire(run: Run, format: FormatName) -> Run:
    """The run as it would have been on another provider's wire; itself if it is there.

    What the other wire cannot hold is described in a line of text in its place
    (`ullage.convert`). Counts and times of the recording belong to its messages and are
    left out, as is its model.

    Raises:
        FormatError: a message is not what its format says it is.
    """
    if run.format == format:
        return run
    wire, other = FORMATS[run.format], FORMATS[format]
    given = {**run.request, wire.key: run.messages}
    made = convert(given, format, format=run.format, model=_MODELS[format], lossy="describe")
    beside = {key: value for key, value in made.items() if key != other.key}
    messages = other.history(made)
    return replace(run, format=format, request=beside, messages=messages, usage={}, stamps={})
