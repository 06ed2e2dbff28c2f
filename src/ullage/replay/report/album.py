"""The runs that a page draws: the largest ones, so that a page of a thousand runs stays light."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ullage.replay.budgets import Room
from ullage.replay.report import Picture
from ullage.replay.run import Replayed

__all__ = ["Album", "Drawn"]


class Drawn(Struct, frozen=True, kw_only=True):
    """A replay and its turns.

    Attributes:
        replayed: what came out.
        line: the line of the file its run begins at.
        story: the run's `Story`, packed.
        trace: the `Trace` of it, packed.
    """

    replayed: Replayed
    line: int
    story: bytes
    trace: bytes


class _Page(Struct):
    peak: int
    calls: int
    story: bytes
    traces: dict[tuple[str, Room], bytes]


class Album:
    """Keeps the pictures of the runs with the largest raw requests, and lets go of the others.

    Args:
        most: how many runs.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pages: dict[tuple[str, int], _Page] = {}

    def add(self, drawn: Drawn) -> None:
        """Take in a run under one policy and in one room, if it is among the largest so far."""
        replayed, key = drawn.replayed, (drawn.replayed.run, drawn.line)
        if key not in self._pages:
            peak, calls = replayed.raw_peak_tokens, replayed.calls
            self._pages[key] = _Page(peak, calls, drawn.story, {})
        self._pages[key].traces[replayed.policy, replayed.room] = drawn.trace
        if len(self._pages) > self._most:
            del self._pages[min(self._pages, key=lambda key: self._pages[key].peak)]

    def pictures(self, tries: Sequence[tuple[str, Room]]) -> list[Picture]:
        """The runs kept, largest first, each with its policies and rooms in this order."""
        pages = sorted(self._pages.items(), key=lambda item: -item[1].peak)
        return [
            Picture(
                name=name,
                calls=page.calls,
                peak=page.peak,
                story=page.story,
                traces=[page.traces[each] for each in tries if each in page.traces],
            )
            for (name, _), page in pages
        ]
