"""How much room a run is replayed in: a window in tokens, or a share of its largest request.

A share makes short runs and long ones alike, and sums up to one figure. A run counts at a budget
B only if its largest request is more than 1.25 B (`metrics` §0): else any policy may keep it
all. For shares below four fifths that is so for every run; larger ones are refused.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

from ullage.replay.calls import boundaries
from ullage.replay.cost.prefix import head_of
from ullage.replay.gates import Judge
from ullage.replay.readers import Run
from ullage.values.limits import Limits
from ullage.wires import FORMATS

Room: TypeAlias = int | float
"""An int is a window in tokens; a float is the prompt's share of the largest raw request."""

LEAST_PEAK = 1.25
"""A run counts if its largest request is more than so many budgets."""
MOST_SHARE = 1 / LEAST_PEAK
"""At this share and above no run counts."""


def label_of(room: Room) -> str:
    """A room as it is shown: ``64k``, ``20%``."""
    return f"{room // 1000}k" if isinstance(room, int) else f"{room * 100:g}%"


def window_of(run: Run, room: Room) -> int:
    """The window of a run, in tokens."""
    if isinstance(room, int):
        return room
    judge, lengths = Judge(), boundaries(run)
    messages = run.messages[: lengths[-1]] if lengths else []
    peak = judge.text(head_of(run.request)) + judge.tokens(messages)
    return window_for(int(peak * room), asked_output_tokens(run))


def window_for(prompt_tokens: int, asked_output_tokens: int | None = None) -> int:
    """The smallest window whose prompt may hold so many tokens (`ullage.values.limits`)."""
    least = max(prompt_tokens, 1)
    windows = range(1, 2 * least + 1)  # never more than half of a window is for the answer

    def room(window_tokens: int) -> int:
        return Limits(window_tokens=window_tokens).prompt_tokens(asked_output_tokens)

    return windows[bisect_left(windows, least, key=room)]


def asked_output_tokens(run: Run) -> int | None:
    """The answer that a run's requests leave room for; None where they do not say."""
    wire = FORMATS[run.format]
    return wire.head({**run.request, wire.key: []}).asked_output_tokens
