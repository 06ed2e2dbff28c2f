"""Rent or buy: when does a batch pay, whatever the window?

What is old is paid for again at every call: that is its rent. A batch ends it, and has what
is behind the first edit written to the cache anew: that is its price. The rent is added up call
by call, and when the sum comes to so many times the price, the batch is made (`frontier`, "What
works" 4). Both are in characters, for only their proportion counts, and functions of what is
shown now, so that a cold start comes to the same.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from ullage.core.history.chars import SHOWN_CHARS, chars_of, leaves
from ullage.core.history.measures import Measure
from ullage.core.history.window import Window
from ullage.core.values.messages import BlockFrame, Reasoning

LEFT_SHARE, _LEFT_CHARS = 0.20, 150
"""About what is left of a text in a batch: a share of it, and the notice."""


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
    if window.applied.get(window.transcript.decision_key(window.size)):
        return None
    first = max(start, new_from(window), window.settled_to(window.size, _NOTHING))
    lengths = window.transcript.boundaries(first, window.size)
    if len(lengths) < least_calls:
        return None
    shown = [0, *accumulate(window.tally(SHOWN_CHARS).each[first:])]
    winnable = [0, *accumulate(window.tally(_WINNABLE).each[first:])]
    rent = freed = seen = 0
    for length in lengths:
        seen = length - first
        tail = (
            bisect_right(shown, shown[seen] - tail_chars, 1, seen + 1) - 1
        )  # begins there
        freed = winnable[tail]
        rent += freed
    rewritten = shown[seen] - freed
    if freed <= 0 or rent < times * rewritten:
        return None
    return (
        f"a batch pays: it takes out {freed:,} characters and rewrites {rewritten:,}; "
        f"the last {len(lengths)} requests carried {rent:,} old ones"
    )


def new_from(window: Window) -> int:
    """The first message that no batch has looked at; each is looked at once.

    What a batch left as it was would be an edit far back another time, for little.
    """
    newest = max([placed.stop for placed in window.open_summaries[-1:]], default=0)
    pruned = window.tally(_PRUNED)
    if not pruned.sum:
        return newest
    return max(
        newest, next(at for at in range(len(pruned.each), 0, -1) if pruned.each[at - 1])
    )


def winnable_chars(window: Window, start: int, stop: int) -> int:
    """About how many characters a batch wins in a range of messages."""
    return sum(window.tally(_WINNABLE).each[start:stop])


def shown_chars(window: Window, start: int, stop: int) -> int:
    """Characters of a range of messages as they are shown."""
    return sum(window.tally(SHOWN_CHARS).each[start:stop])


def _winnable_chars(window: Window, index: int) -> int:
    """About how many characters a batch wins in a message: none of what users and systems say."""
    transcript, dropped = window.transcript, index in window.reasoning_dropped
    message, won, shown = transcript.messages[index], 0, window.shown(index)
    for number, item, leaf in leaves(window, index):
        chars = chars_of(shown.get((number, item)), leaf)
        if isinstance(leaf, Reasoning):
            won += 0 if dropped else chars
        elif isinstance(leaf, BlockFrame):
            continue
        elif message.role == "assistant" or transcript.may_shorten(index, number):
            won += max(int(chars * (1 - LEFT_SHARE)) - _LEFT_CHARS, 0)
    return won


_PRUNED = Measure[int](
    "ullage.pruned",
    lambda window, at: int(
        any(edit.kind == "pruned" for edit in window.shown(at).values())
    ),
)
_WINNABLE = Measure("ullage.winnable_chars", _winnable_chars)
_NOTHING = Measure[bool](
    "ullage.nothing_to_win",
    lambda window, at: (
        at < window.read_from
        or window.hidden(at)
        or window.tally(_WINNABLE).each[at] == 0
    ),
)
"""Whether a batch would win nothing in a message, now and ever."""
