"""Seams: where a range of messages may begin and end, so that one message may take its place.

A view is one history to its provider: no reply in two, no call without its result, no turn
without the reasoning that it has to begin with, and no summary within another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse
from typing import NamedTuple

from ullage.core.history.window import Window


class Ground(NamedTuple):
    """Where a range may begin and end.

    Attributes:
        window: the window at the boundary at hand.
        first: the first message that may be in it.
        last: one past the last.
        summarised: the ranges of other summaries, of which it may cut none in two.
        editable: the first message behind the frozen reasoning of the open turn, or 0.
        speaks: whether a message is shown in its place.
        is_guard: whether there would be no view without the range
            (`ullage.core.turn.checks.check`).
    """

    window: Window
    first: int
    last: int
    summarised: Sequence[tuple[int, int]]
    editable: int
    speaks: bool
    is_guard: bool

    def fits(self, start: int, stop: int) -> bool:
        """Whether a range may stand as it is."""
        if not self.first <= start < stop <= self.last:
            return False
        if self._cut_in_two(start, stop):
            return False
        is_seam = self._begins(start) and self._ends(stop)
        return is_seam and not self._goes_on_behind_results(start, stop)

    def _begins(self, start: int) -> bool:
        """Whether a range may begin at a message."""
        transcript = self.window.transcript
        if not transcript.may_split(start):
            return False
        return transcript.find(transcript.chain[start]) == start

    def _ends(self, stop: int) -> bool:
        """Whether a range may end before a message."""
        window = self.window
        transcript = self.window.transcript
        if stop < self.editable or not transcript.closed(stop):
            return False
        if transcript.find(transcript.chain[stop]) != stop:
            return False
        following = self._behind_thoughts(stop)
        if following == window.size:
            return self.is_guard or not self._hides_open_turn()
        message = transcript.messages[following]
        if message.role == "assistant" and not transcript.starts_turn(
            following
        ):
            return False
        return not self.speaks or window.may_go_on(following)

    def _behind_thoughts(self, index: int) -> int:
        """The message behind what was thought last in a reply, which may stay alone."""
        transcript = self.window.transcript
        while (
            index < self.window.size
            and transcript.messages[index].only_thought
        ):
            if transcript.starts_turn(index):
                break
            index += 1
        return index

    def _hides_open_turn(self) -> bool:
        """Whether a range to the end would hide the thinking that the open turn begins with.

        The reply to it may be there already, and need not have begun with thinking (A14). Where
        there would be no view otherwise, the guard goes on from it in the next turn. What the
        system says behind a result begins no turn.
        """
        window = self.window
        if not self.speaks or not window.thinks_first:
            return False
        messages = window.transcript.messages
        newest = window.size - 1
        while newest > 0 and messages[newest].role == "system":
            newest -= 1
        return bool(messages[newest].results)

    def _goes_on_behind_results(self, start: int, stop: int) -> bool:
        """Whether the text would end a turn that has to begin with thinking: that of a result."""
        window = self.window
        if not self.speaks or not window.thinks_first or stop < window.size:
            return False
        visible = filterfalse(window.hidden, window.staying(start, stop))
        before = max(visible, default=start - 1)
        return before >= 0 and bool(window.transcript.messages[before].results)

    def _cut_in_two(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges that it would cut in two."""
        ranges: list[tuple[int, int]] = []
        for begin, end in self.summarised:
            is_beside = end <= start or stop <= begin
            is_within = start <= begin and end <= stop
            if not is_beside and not is_within:
                ranges.append((begin, end))
        return ranges

    def widened(self, start: int, stop: int) -> tuple[int, int]:
        """The next seams outward; where there are none, it does not fit."""
        while not self.fits(start, stop):
            tried = (start, stop)
            for begin, end in self._cut_in_two(start, stop):
                start = min(start, begin)
                stop = max(stop, end)
            while stop < self.last and not self._ends(stop):
                stop += 1
            while start > self.first and (
                not self._begins(start)
                or self._goes_on_behind_results(start, stop)
            ):
                start -= 1
            if (start, stop) == tried:
                break
        return start, stop

    def narrowed(self, start: int, stop: int) -> tuple[int, int]:
        """The next seams inward; where there are none, it does not fit."""
        while start < stop and not self.fits(start, stop):
            tried = (start, stop)
            for begin, end in self._cut_in_two(start, stop):
                if begin <= start:
                    start = end
                else:
                    stop = begin
            while start < stop and not self._begins(start):
                start += 1
            while start < stop and not self._ends(stop):
                stop -= 1
            if (start, stop) == tried:
                break
        return start, stop
