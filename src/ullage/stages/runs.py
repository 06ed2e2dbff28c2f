"""Runs of messages whose place one message may take: where they may begin and end."""

from __future__ import annotations

from ullage.history.window import Window
from ullage.values.edits import Span

__all__ = ["begin", "condensable", "continues", "cut_before", "new_from", "newest_compaction"]


def begin(window: Window, *, keeps_task: bool = True) -> int:
    """The first message that may be condensed.

    It stands behind the first user message, and behind the newest compaction of the provider:
    that holds what was before it, and nobody but the provider can read it.

    Args:
        window: the window at the boundary at hand.
        keeps_task: whether the first user message stays where it is.
    """
    transcript = window.transcript
    messages = transcript.messages
    first = -1
    if keeps_task:
        first = next((i for i in range(window.size) if messages[i].role == "user"), -1)
    start = 1 + newest_compaction(window, first + 1, first)
    while start < window.size and not transcript.seam(start):
        start += 1
    return start


def newest_compaction(window: Window, start: int, default: int) -> int:
    """The newest compaction of the provider at or after ``start``; ``default`` if none."""
    newest = window.transcript.compaction(start, window.size)
    return default if newest is None else newest


def condensable(window: Window, start: int, stop: int) -> list[int]:
    """The shown messages of a run whose place an account may take."""
    old = window.span or (start, start)
    first, last = max(start, old[0]), min(max(old[1], start), stop)
    shown = [*range(start, min(first, stop)), *range(max(last, start), stop)]
    standing = set(window.transcript.standing(start, stop))
    return [index for index in shown if index not in standing]


def new_from(window: Window, start: int) -> int:
    """The first message of a run that begins at ``start`` for which nothing stood yet."""
    return start if window.open_span is None else window.open_span[1]


def cut_before(window: Window, index: int, floor: int) -> int:
    """The last place up to ``index`` at which a history may begin anew; ``floor`` if none."""
    places = range(min(index, window.size - 1), floor, -1)
    return next(filter(window.may_cut, places), floor)


def continues(window: Window, span: Span) -> bool:
    """Whether a span is of this history, and goes on from where the one that stands ends."""
    transcript = window.transcript
    start, stop = transcript.find(span.after), transcript.find(span.upto)
    if start is None or stop is None or stop >= window.size or not window.may_cut(stop):
        return False
    stands = window.open_span
    if stands is None:
        return start >= window.read_from
    return stands[0] == start and stands[1] < stop
