"""The calls of a recorded run: where a request was sent, to which model, and how much room it has.

A room is a window in tokens, the own window of the run's model, or a share of the run's largest
request. A share makes short runs and long ones alike, and sums up to one figure. A run counts at a
budget B only if its largest request is more than 1.25 B (`metrics` §0): else any policy may keep it
all. For shares below four fifths that is so for every run; larger ones are refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from ullage import Limits, Policy, Session
from ullage.doors.host import lookup
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS, wire_named


def boundaries(run: Run) -> list[int]:
    """The lengths at which the recorded agent sent a request: before each reply.

    A request whose reply is not in the history was sent too.
    """
    speaks = [is_models(message) for message in run.messages]
    lengths = [
        i for i in range(1, len(speaks)) if speaks[i] and not speaks[i - 1]
    ]
    if speaks and not speaks[-1] and run.sent_whole:
        lengths.append(len(speaks))
    return lengths


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
    return run.model or wire_named(run.format).example_model


def request_of(run: Run, messages: list[Any]) -> dict[str, Any]:
    """The request of the run with these messages."""
    wire = FORMATS[run.format]
    return {**run.request, wire.model_field: model_of(run), wire.key: messages}


def session_for(
    run: Run,
    policy: Policy,
    window_tokens: int,
    user_tools: Sequence[str] = (),
) -> partial[Session]:
    """Makes sessions that keep this run in a window; recall is on if the policy offers it.

    They write nothing to standard error: what a policy would say there of its batches is for who
    runs the agent, and a replay would say it of every call of every run.
    """
    if policy.diagnostic is not None:
        policy = replace(policy, diagnostic=None)
    return partial(
        Session,
        model_of(run),
        policy=policy,
        limits=Limits(window_tokens=window_tokens),
        format=run.format,
        recall=policy.toolset.offered != "no",
        user_tools=tuple(user_tools),
    )


OWN_WINDOW: Final = "own"
Room: TypeAlias = int | float | Literal["own"]
"""An int is a window in tokens, ``own`` that of the run's own model
(`ullage.core.tokens.catalog`); a float is the prompt's share of the largest raw request.
"""


def room_of(window_tokens: int, share: float | None, *, is_own: bool) -> Room:
    """The room that was asked for, from what is kept of a replay."""
    if is_own:
        return OWN_WINDOW
    return window_tokens if share is None else share


LEAST_PEAK = 1.25
"""A run counts if its largest request is more than so many budgets."""
MOST_SHARE = 1 / LEAST_PEAK
"""At this share and above no run counts."""


def label_of(room: Room) -> str:
    """A room as it is shown: ``64k``, ``own``, ``20%``."""
    if room == OWN_WINDOW:
        return OWN_WINDOW
    return f"{room // 1000}k" if isinstance(room, int) else f"{room * 100:g}%"


def window_of(run: Run, room: Room) -> int:
    """The window of a run, in tokens."""
    if isinstance(room, int):
        return room
    if room == OWN_WINDOW:
        return lookup(model_of(run)).window_tokens
    judge = Judge()
    lengths = boundaries(run)
    messages = run.messages[: lengths[-1]] if lengths else []
    peak = judge.text(head_of(run.request)) + judge.tokens(messages)
    return window_for(int(peak * room), asked_output_tokens(run))


def window_for(
    prompt_tokens: int, asked_output_tokens: int | None = None
) -> int:
    """The smallest window whose prompt may hold so many tokens (`ullage.core.values.limits`)."""
    least = max(prompt_tokens, 1)
    # Never more than half of a window is left for the answer.
    windows = range(1, 2 * least + 1)

    def room(window_tokens: int) -> int:
        return Limits(window_tokens=window_tokens).prompt_tokens(
            asked_output_tokens
        )

    return windows[bisect_left(windows, least, key=room)]


def asked_output_tokens(run: Run) -> int | None:
    """The answer that a run's requests leave room for; None where they do not say."""
    wire = FORMATS[run.format]
    return wire.head({**run.request, wire.key: []}).asked_output_tokens
