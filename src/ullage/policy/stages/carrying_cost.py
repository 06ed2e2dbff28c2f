"""Carrying cost: when does a batch pay, whatever the window?

This is the ski-rental problem. What is old is paid for again at every call: that is its rent. A
batch ends it, and has what is behind the first edit written to the cache again: that is its price.
The rent is added up call by call, and when the sum comes to so many times the price, the batch is
made (`frontier`, "What works" 4). Both are in characters, for only their proportion counts, and
functions of what is shown now, so that a cold start comes to the same.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from ullage.core.history.chars import SHOWN_CHARS, chars_of, leaves
from ullage.core.history.measures import Measure
from ullage.core.history.window import Window
from ullage.core.values.messages import BlockFrame, Reasoning

LEFT_SHARE = 0.20
"""About this share of a text is left of it in a batch,"""
_LEFT_CHARS = 150
"""and the notice."""


def pays(
    window: Window,
    *,
    times: float,
    tail_chars: int,
    least_calls: int = 0,
    start: int = 0,
) -> str | None:
    """Why a batch is due: the rent of what is old has come to ``times`` its price; else None.

    Never where a batch was made: the same request again is shown as it was.

    Args:
        window: the window at the boundary at hand.
        times: how often the price. With reads at a tenth of the price of input 11.5 is the
            cheapest, 30 to 70 keep more of what is needed (`frontier`, "in price-free terms").
        tail_chars: characters of the newest messages, which no batch would touch.
        least_calls: how many calls apart batches are at least. What lies between is in view
            whole, so a longer distance keeps more of what is needed, and breaks the cache less.
        start: the first message that a batch may touch.
    """
    # the same request again is shown as it was, so a batch made here stands
    if window.applied.get(window.transcript.decision_key(window.size)):
        return None
    start = max(
        start, new_from(window), window.settled_to(window.size, _NOTHING)
    )
    requests = window.transcript.boundaries(start, window.size)
    if len(requests) < least_calls:
        return None
    # sums of characters: up to each message from the start on
    shown = [0, *accumulate(window.tally(SHOWN_CHARS).each[start:])]
    winnable = [0, *accumulate(window.tally(_WINNABLE).each[start:])]
    rent = 0
    freed = 0
    sent = 0
    # each request sent all before it; what was old then could have been left out of it
    for length in requests:
        sent = length - start
        tail_start = shown[sent] - tail_chars
        before_tail = bisect_right(shown, tail_start, 1, sent + 1) - 1
        freed = winnable[before_tail]
        rent += freed
    rewritten = shown[sent] - freed
    if freed <= 0 or rent < times * rewritten:
        return None
    return (
        f"a batch pays: it takes out {freed:,} characters and rewrites {rewritten:,}; "
        f"the last {len(requests)} requests carried {rent:,} old ones"
    )


def new_from(window: Window) -> int:
    """The first message that no batch has looked at; each is looked at once.

    What a batch left as it was would be an edit far back another time, for little.
    """
    summaries = window.open_summaries
    recorded = summaries[-1].stop if summaries else 0
    pruned = window.tally(_PRUNED)
    if not pruned.sum:
        return recorded
    stop = len(pruned.each)
    while not pruned.each[stop - 1]:
        stop -= 1
    return max(recorded, stop)


def winnable_chars(window: Window, start: int, stop: int) -> int:
    """About how many characters a batch wins in a range of messages."""
    winnable = window.tally(_WINNABLE).each
    return sum(winnable[start:stop])


def shown_chars(window: Window, start: int, stop: int) -> int:
    """Characters of a range of messages as they are shown."""
    shown = window.tally(SHOWN_CHARS).each
    return sum(shown[start:stop])


def _winnable_chars(window: Window, index: int) -> int:
    """About how many characters a batch wins in a message: none of what users and systems say."""
    transcript = window.transcript
    is_model = transcript.messages[index].role == "assistant"
    is_dropped = index in window.reasoning_dropped
    edits = window.shown(index)
    total = 0
    for number, item, leaf in leaves(window, index):
        if isinstance(leaf, BlockFrame):
            continue
        chars = chars_of(edits.get((number, item)), leaf)
        if isinstance(leaf, Reasoning):
            total += 0 if is_dropped else chars
        elif is_model or transcript.may_shorten(index, number):
            total += max(int(chars * (1 - LEFT_SHARE)) - _LEFT_CHARS, 0)
    return total


def _pruned(window: Window, index: int) -> int:
    """1 for a message in which a batch left a placeholder, else 0."""
    edits = window.shown(index).values()
    return int(any(edit.kind == "pruned" for edit in edits))


def _nothing_to_win(window: Window, index: int) -> bool:
    """Whether a batch would win nothing in a message, now and ever."""
    if index < window.read_from or window.hidden(index):
        return True
    return window.tally(_WINNABLE).each[index] == 0


_PRUNED = Measure[int]("ullage.pruned", _pruned)
_WINNABLE = Measure("ullage.winnable_chars", _winnable_chars)
_NOTHING = Measure[bool]("ullage.nothing_to_win", _nothing_to_win)
