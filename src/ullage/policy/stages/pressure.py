"""Pressure: when a batch is made, how much it should win, and what it must leave alone.

Each function here answers one question of `ullage.policy.stages.prune.prune`. Figures in tokens.
"""

from __future__ import annotations

from ullage.core.contract.bound import editable_from
from ullage.core.history.measures import Measure
from ullage.core.history.window import Window
from ullage.policy.stages import rough
from ullage.policy.stages.carrying_cost import pays

GUARD_SHARE = 0.94
"""The share of the limit at which the guard acts, by the upper bound of the view."""
EVERYTHING = 1 << 62
"""More than any window holds: go on to the last candidate."""


def over_share(window: Window, *, high: float, low: float) -> int | None:
    """Over ``high`` of the limit: what brings the view down to ``low`` of it.

    It is the upper bound that is over, as with the guard: a batch comes before it.
    """
    limit = window.limit_tokens
    high_tokens = int(limit * high)
    if window.within(high_tokens, surely=True):
        return None
    low_tokens = int(limit * low)
    return window.estimate - low_tokens


def over_or_pays(
    window: Window,
    *,
    high: float,
    times: float,
    tail_chars: int,
    least_calls: int,
) -> str | None:
    """Why a batch is due: the upper bound is over ``high`` of the limit, or it pays; else None.

    The other settings are those of `ullage.policy.stages.carrying_cost.pays`.
    """
    high_tokens = int(window.limit_tokens * high)
    if not window.within(high_tokens, surely=True):
        return f"the view was over {high:.0%} of its limit of {window.limit_tokens:,} tokens"
    return pays(
        window,
        times=times,
        tail_chars=tail_chars,
        least_calls=least_calls,
        start=editable_from(window),
    )


def over_reported(window: Window, *, budget_tokens: int) -> int | None:
    """Over a budget by what the provider reported for the last request: everything.

    Without a report (nobody called ``observe``) the estimate of the view counts.
    """
    if budget_tokens <= 0:
        return None
    is_over = not window.within(budget_tokens)
    if window.reported_tokens is not None:
        is_over = window.reported_tokens > budget_tokens
    return EVERYTHING if is_over else None


def rough_over(
    window: Window,
    *,
    share: float,
    reserve_tokens: int,
    least_tokens: int,
    minimum_tokens: int,
    held_tokens: int | None = None,
) -> int | None:
    """By the rough estimate over a share of the context, or into the reserve for the answer.

    Then ``minimum_tokens`` are wanted; under ``least_tokens`` there is never pressure. What the
    window holds is ``held_tokens``, where somebody knows better.
    """
    if held_tokens is None:
        held_tokens = rough.view_tokens(window)
    if held_tokens < least_tokens:
        return None
    context = window.context_tokens
    is_over = held_tokens > context * share
    is_in_reserve = held_tokens >= context - reserve_tokens
    return minimum_tokens if is_over or is_in_reserve else None


def outputs_over(window: Window, *, budget_tokens: int | None) -> int | None:
    """What all tool outputs together have over their budget.

    ``budget_tokens`` None: a quarter of the context, from 20,000 to 60,000.
    """
    if budget_tokens is None:
        quarter = window.context_tokens * 0.25
        bounded = min(max(quarter, 20_000), 60_000)
        budget_tokens = int(bounded)
    excess = window.total(output_tokens) - budget_tokens
    return excess if excess > 0 else None


def _output_tokens(window: Window, index: int) -> int:
    results = window.transcript.tool_results(index)
    return sum(window.leaf_tokens(spot) for spot in results)


output_tokens = Measure[int]("ullage.output_tokens", _output_tokens)
"""Tokens of the tool outputs in a message as they are shown, placeholders included.

What the user answered through a tool is none."""


def newest_share(
    window: Window,
    *,
    share: float,
    most_tokens: int = EVERYTHING,
) -> tuple[int, int]:
    """The newest share of the limit stays, but no more than so many tokens; whole turns of it.

    What a summary hides is passed over, so that the same request again is shown as it was.
    """
    least_tokens = min(window.limit_tokens * share, most_tokens)
    # back from the end until the share is full, then out to the start of a turn
    index = window.size
    tokens = 0
    while index > 0 and tokens < least_tokens:
        index -= 1
        if not window.hidden(index):
            tokens += window.message_tokens(index)
    turn_start = window.transcript.turn_start(min(index + 1, window.size))
    return turn_start, 0


def newest_rough(window: Window, *, tokens: int) -> tuple[int, int]:
    """The newest parts stay that together are no more than ``tokens`` by the rough estimate."""
    transcript = window.transcript
    total = 0
    for index in reversed(range(window.size)):
        parts = transcript.messages[index].parts
        edits = window.shown(index)
        for number in reversed(range(len(parts))):
            if transcript.reader(index, number) == "program":
                continue
            total += rough.part_tokens(parts[number], number, edits)
            if total > tokens:
                return index, number + 1
    return 0, 0


def newest_batch(window: Window) -> tuple[int, int]:
    """The newest results stay: those of one assistant message, in one message or several."""
    return _batch_before(window, window.size), 0


def newest_answered(window: Window) -> tuple[int, int]:
    """The newest results that the model has replied to stay, and all that came later.

    They were the newest of all when the reply came and said how long its prompt had been.
    """
    return _batch_before(window, window.turn_start), 0


def _batch_before(window: Window, stop: int) -> int:
    """Where the newest batch of results before ``stop`` begins; 0 if there is none."""
    messages = window.transcript.messages
    index = stop - 1
    while index >= 0 and not messages[index].results:
        index -= 1
    while index > 0 and messages[index - 1].results:
        index -= 1
    return max(index, 0)
