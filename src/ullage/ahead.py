"""Compactions that are begun before they are needed, beside the turns of an event loop.

    fit ─▶ the view is over the softer threshold ─▶ begin ─▶ a model is asked, in a task
    fit ─▶ it is ready: it becomes an edit of this history
    fit ─▶ it is not, and compaction is due: wait for it, and ask for nothing else

What is prepared is a value: a span named by the chain at its two ends, so that it can stand
in no history but its own. It is kept until a history shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ullage.compaction import Asking, Filled, fill
from ullage.edits import Cut, Span
from ullage.stages.runs import continues
from ullage.summarise import Summaries
from ullage.window import Window

__all__ = ["Ahead"]

_KEPT = 4
"""So many are kept for histories that are not shown now: branches alternate."""


class Ahead:
    """What is prepared for one session.

    Args:
        summaries: who is asked.

    Attributes:
        task: what is under way, or was last.
    """

    def __init__(self, summaries: Summaries) -> None:
        self.task: asyncio.Task[None] | None = None
        self._summaries = summaries
        self._ready: tuple[Filled, ...] = ()

    def has_for(self, window: Window) -> bool:
        """Whether something is under way, or ready for this history."""
        if self.task is not None and not self.task.done():
            return True
        return any(_is_for(window, filled) for filled in self._ready)

    def begin(self, cut: Cut, asking: Asking, count: Callable[[str], int]) -> None:
        """Have a model add to a cut, in a task."""
        self.task = asyncio.create_task(self._fill(cut, asking, count), name="ullage-compaction")

    async def prepared(self, *, wait: bool) -> Sequence[Filled]:
        """What is ready; with ``wait``, what is under way as well."""
        task = self.task
        if task is not None and wait:
            await asyncio.wait((task,))
        if task is not None and task.done() and not task.cancelled():
            task.result()  # it never fails, unless we are wrong
        return self._ready

    def shown(self, window: Window) -> None:
        """Forget what this history shows by now, or has gone beyond."""
        find = window.transcript.find
        self._ready = tuple(
            filled
            for filled in self._ready
            if _is_for(window, filled)
            or (isinstance(filled.cut.edit, Span) and find(filled.cut.edit.upto) is None)
        )

    async def cancel(self) -> None:
        """Give up what is under way."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait((self.task,))

    async def _fill(self, cut: Cut, asking: Asking, count: Callable[[str], int]) -> None:
        steps = fill(cut, asking, count)
        try:
            asked = next(steps)
            while True:
                asked = steps.send(await self._summaries.aask(asked))
        except StopIteration as stop:
            self._ready = (*self._ready, stop.value)[-_KEPT:]


def _is_for(window: Window, filled: Filled) -> bool:
    return isinstance(filled.cut.edit, Span) and continues(window, filled.cut.edit)
