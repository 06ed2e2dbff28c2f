"""Pressure: when a batch is made, how much it should win, and what it must leave alone.

Each function here answers one question of `ullage.stages.prune.prune`. Figures in tokens.
"""

from __future__ import annotations

from ullage.messages import ToolResult
from ullage.window import Window

__all__ = ["newest_batch", "newest_share", "over_reported", "over_share"]

EVERYTHING = 1 << 62
"""More than any window holds: go on to the last candidate."""


def over_share(window: Window, *, high: float, low: float) -> int | None:
    """Over ``high`` of the limit: what brings the view down to ``low`` of it."""
    limit = window.limit_tokens
    if window.within(int(limit * high)):
        return None
    return window.estimate - int(limit * low)


def over_reported(window: Window, *, budget_tokens: int) -> int | None:
    """Over a budget by what the provider reported for the last request: everything.

    Without a report (nobody called ``observe``) the estimate of the view stands in for it.
    """
    if budget_tokens <= 0:
        return None
    if window.reported_tokens is not None:
        return EVERYTHING if window.reported_tokens > budget_tokens else None
    return None if window.within(budget_tokens) else EVERYTHING


def newest_share(window: Window, *, share: float) -> tuple[int, int]:
    """The newest share of the limit stays, widened to whole turns."""
    return window.tail(int(window.limit_tokens * share)), 0


def newest_batch(window: Window) -> tuple[int, int]:
    """The newest results stay: those of one assistant message, in one message or several."""
    messages = window.transcript.messages
    index = window.size - 1
    while index >= 0 and not _has_results(messages[index].parts):
        index -= 1
    while index > 0 and _has_results(messages[index - 1].parts):
        index -= 1
    return max(index, 0), 0


def _has_results(parts: tuple[object, ...]) -> bool:
    return any(isinstance(part, ToolResult) for part in parts)
