"""Record: what is old leaves the view, for a record of what was asked, done and found.

In each batch every stretch between two things the user said becomes one message: each call in its
words, what the model said, and of results the lines that tell most (`ullage.stages.steps`). Records
stand one behind the other and are never written again, so the cache holds all but the newest; what
the user said stays where it stands, word for word.

What no record can stand for stays as it is: what only a provider can read, and a stretch so short
that nothing would be won.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TypeAlias

from ullage.history import canon
from ullage.history.transcript import Location
from ullage.history.window import Window
from ullage.stages.account import index_of
from ullage.stages.placeholders import digests_of
from ullage.stages.pressure import HELD, editable_from, newest_share, over_or_pays
from ullage.stages.prune import Protected
from ullage.stages.ranges import begin, newly_hidden
from ullage.stages.rent import new_from, shown_chars, winnable_chars
from ullage.stages.steps import ROOM, Room, digestible, steps
from ullage.values.edits import Cut, Skipped, Summary
from ullage.values.effects import Output
from ullage.values.messages import Message, Opaque, ToolResult

__all__ = ["LINES", "Digests", "record"]

IsDue: TypeAlias = Callable[[Window], str | None]
"""Why a batch is due now, with its numbers, or None."""
Digests: TypeAlias = Callable[[Window, Set[Location]], Mapping[Location, str]]
"""What follows the ref of each result."""
_Stretch: TypeAlias = tuple[int, int]
"""The first message of a stretch, and one past its last."""
_LEAST_CHARS = 300
"""A record that wins no more is not worth its header."""
_CHARS_PER_TOKEN = 4
LINES = partial(digests_of, price=6, most_chars=8_000, most_share=0.25)
"""The lines of a result that tell most, of all results of a batch a quarter at most."""


def record(
    window: Window,
    /,
    *,
    is_due: IsDue = partial(over_or_pays, high=0.90, times=15, tail_chars=16_000, least_calls=45),
    protected: Protected = partial(newest_share, share=0.12, most_tokens=4_000),
    room: Room = ROOM,
    digests: Digests = LINES,
    least_share: float = 0.20,
    least_tokens: int = 10_000,
) -> Sequence[Cut] | Skipped:
    """Records of everything old that no batch looked at yet, or none.

    Args:
        window: the window at the boundary at hand.
        is_due: why there is to be a batch now; None ends it there.
        protected: where what must stay begins.
        room: what stands word for word in a record.
        digests: what is kept of longer results.
        least_share: do nothing unless about this share of the limit can be won,
        least_tokens: or so many tokens, if that is less.
    """
    if (why := is_due(window)) is None:
        return ()
    first, stop = max(begin(window), new_from(window)), protected(window)[0]
    least = min(window.limit_tokens * least_share, least_tokens) * _CHARS_PER_TOKEN
    movable = max(first, editable_from(window))
    if winnable_chars(window, movable, stop) < least:
        return Skipped(HELD) if winnable_chars(window, first, stop) >= least else ()
    stretches = list(_stretches(window, movable, stop))
    spots = {spot for each in stretches for spot in digestible(window, *each, room)}
    kept = digests(window, spots)
    cuts = (
        _cut(window, start, end, "\n".join(steps(window, start, end, kept, room)), why)
        for start, end in stretches
    )
    return [cut for cut in cuts if cut is not None]


def _stretches(window: Window, first: int, stop: int) -> Iterator[_Stretch]:
    """The stretches that a record may stand for: between messages that stay, at seams."""
    transcript, start = window.transcript, first
    stays = [at for at in range(first, stop) if _stays(transcript.messages[at])]
    for end in (*stays, stop):
        after = end + 1
        while start < end and not transcript.may_split(start):
            start += 1
        while start < end and not (transcript.may_split(end) and window.may_go_on(end)):
            end -= 1
        if start < end:
            yield start, end
        start = after


def _stays(message: Message) -> bool:
    """Whether a message stays: what the user or the system says, and what only a provider reads."""
    contents = (part for result in message.results for part in result.content)
    if message.stands or any(isinstance(part, Opaque) for part in (*message.parts, *contents)):
        return True
    return message.role == "user" and not any(isinstance(p, ToolResult) for p in message.parts)


def _cut(window: Window, start: int, stop: int, text: str, why: str) -> Cut | None:
    """The record of a stretch in its place, or None if that wins too little."""
    index = index_of(window.transcript, start, stop, window.words)
    ref, chain = canon.ref_of(index), window.transcript.chain
    shown = f"{window.words.record(ref, start + 1, stop)}\n{text}"
    if shown_chars(window, start, stop) - len(shown) < _LEAST_CHARS:
        return None
    edit = Summary(chain[start], chain[stop], shown, ref, why, kind="pruned")
    return Cut(edit, (*newly_hidden(window, start, stop), Output(ref, index)))
