"""Seams: where a range of messages may begin and end, so that one message may take its place.

A view is one history to its provider: no reply in two, no call without its result, no turn
without the reasoning that it has to begin with, and no summary within another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ullage.core.history.window import Window


class Ground(NamedTuple):
    """Where a range may begin and end.

    Attributes:
        window: the window at the boundary at hand.
        first: the first message that may be in it.
        last: one past the last.
        others: the ranges of other summaries, of which it may cut none in two.
        editable: the first message behind the frozen reasoning of the open turn, or 0.
        speaks: whether a message is shown in its place.
        is_guard: whether there would be no view without the range
        (`ullage.core.turn.checks.check`).
    """

    window: Window
    first: int
    last: int
    others: Sequence[tuple[int, int]]
    editable: int
    speaks: bool
    is_guard: bool

    def fits(self, start: int, stop: int) -> bool:
        """Whether a range may stand as it is."""
        if not self.first <= start < stop <= self.last or self._cut(start, stop):
            return False
        if not self._begins(start) or not self._ends(stop):
            return False
        # behind a result the text would become part of the turn that this belongs to
        is_behind = start > 0 and bool(
            self.window.transcript.messages[start - 1].results
        )
        return not (is_behind and stop == self.window.size and self._hides_open_turn())

    def _begins(self, start: int) -> bool:
        transcript = self.window.transcript
        return (
            transcript.may_split(start)
            and transcript.find(transcript.chain[start]) == start
        )

    def _ends(self, stop: int) -> bool:
        window, transcript = self.window, self.window.transcript
        after = stop
        # what was thought last in a reply may stay alone
        while after < window.size and transcript.messages[after].only_thought:
            if transcript.starts_turn(after):
                break
            after += 1
        if stop < self.editable or not transcript.closed(stop):
            return False
        if transcript.find(transcript.chain[stop]) != stop:
            return False
        if after == window.size:
            return self.is_guard or not self._hides_open_turn()
        message = transcript.messages[after]
        if message.role == "assistant" and not transcript.starts_turn(after):
            return False
        return not self.speaks or window.may_go_on(after)

    def _hides_open_turn(self) -> bool:
        """Whether a range to the end would hide the thinking that the open turn begins with.

        The reply to it may be there already, and need not have begun with thinking (A14). Where
        there would be no view otherwise, the guard goes on from it in the next turn. What the
        system says behind a result begins no turn.
        """
        window = self.window
        if not self.speaks or not window.thinks_first:
            return False
        messages, newest = window.transcript.messages, window.size - 1
        while newest > 0 and messages[newest].role == "system":
            newest -= 1
        return bool(messages[newest].results)

    def _cut(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges that it would cut in two."""
        beside = (
            other for other in self.others if other[0] < stop and start < other[1]
        )
        return [
            other for other in beside if not (start <= other[0] and other[1] <= stop)
        ]

    def widened(self, start: int, stop: int) -> tuple[int, int]:
        """The next seams outward; where there are none, it does not fit."""
        while not self.fits(start, stop):
            before = start, stop
            for other in self._cut(start, stop):
                start, stop = min(start, other[0]), max(stop, other[1])
            while start > self.first and not self._begins(start):
                start -= 1
            while stop < self.last and not self._ends(stop):
                stop += 1
            if (start, stop) == before:
                break
        return start, stop

    def narrowed(self, start: int, stop: int) -> tuple[int, int]:
        """The next seams inward; where there are none, it does not fit."""
        while start < stop and not self.fits(start, stop):
            before = start, stop
            for other in self._cut(start, stop):
                if other[0] <= start:
                    start = other[1]
                else:
                    stop = other[0]
            while start < stop and not self._begins(start):
                start += 1
            while start < stop and not self._ends(stop):
                stop -= 1
            if (start, stop) == before:
                break
        return start, stop
