"""Compactions that are begun before they are needed, beside the turns of an event loop.

    fit ─▶ the view is over the softer threshold ─▶ begin ─▶ a model is asked, in a task
    fit ─▶ it is ready: it becomes an edit of this history
    fit ─▶ it is not, and compaction is due: the session waits for it, and asks for nothing else

What is prepared is a value: a span named by the chain at its two ends, so that it can stand
in no history but its own. It is kept until a history shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ullage.history.window import Window
from ullage.stages.policy import Stage
from ullage.stages.pressure import is_frozen
from ullage.turn.filling import Filled, for_history
from ullage.values.edits import Cut, Skipped, Summary
from ullage.values.events import Event

__all__ = ["Ahead", "wanted"]

_KEPT = 4
"""So many are kept for histories that are not shown now: branches alternate."""


class Ahead:
    """What is prepared for one session.

    Attributes:
        task: what is under way, or was last.
    """

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._ready: tuple[Filled, ...] = ()

    @property
    def under_way(self) -> asyncio.Task[None] | None:
        """The task, unless it is done."""
        return None if self.task is None or self.task.done() else self.task

    def has_for(self, window: Window) -> bool:
        """Whether something is under way, or ready for this history."""
        return self.under_way is not None or for_history(window, self._ready) is not None

    def begin(self, fill: Callable[[], Awaitable[Filled | None]]) -> Event:
        """Have a model add to a cut, in a task.

        Args:
            fill: gives the cut with what was added to it; None if there is nothing to show.

        Returns:
            The event that tells of it.
        """
        self.task = asyncio.create_task(self._keep(fill), name="ullage-compaction")
        why = "the view was over the threshold at which a summary is begun"
        return Event(kind="preparing", where="beside the turn", why=why)

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
            if for_history(window, (filled,)) is not None
            or (isinstance(filled.cut.edit, Summary) and find(filled.cut.edit.upto) is None)
        )

    def forget(self) -> None:
        """Forget what is ready: the only history there is has gone beyond it."""
        self._ready = ()

    async def cancel(self) -> None:
        """Give up what is under way."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait((self.task,))

    async def _keep(self, fill: Callable[[], Awaitable[Filled | None]]) -> None:
        filled = await fill()
        if filled is not None:
            self._ready = (*self._ready, filled)[-_KEPT:]


def wanted(stage: Stage | None, window: Window) -> Cut | None:
    """The compaction that is to be begun now, if there is one and a model has to add to it.

    Args:
        stage: `ullage.Policy.ahead`.
        window: the window as it stands after a turn.
    """
    if stage is None or is_frozen(window):
        return None
    cuts = stage(window)
    if isinstance(cuts, Skipped) or not cuts or cuts[0].brief is None:
        return None
    return cuts[0]
