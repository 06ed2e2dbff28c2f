"""The conversation for an event loop. Apart, because asyncio is a third of what an import costs.

fit ─▶ the view is over the softer threshold ─▶ a model is asked for the summary, in a task
fit ─▶ compaction is due: what is ready is written down, what is not is not waited for
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ullage.core.contract.ranges import continues
from ullage.core.errors import UllageError
from ullage.core.history.window import Window
from ullage.core.turn.filling import Filled
from ullage.core.values.edits import ProposedEdit, ReplaceSpan
from ullage.core.values.effects import Do, Steps
from ullage.documents.conversation._core import ConversationCore
from ullage.documents.conversation._plan import CompactionDraft
from ullage.documents.conversation.store import CompactionPart, StoredMessage
from ullage.policy.stages.compact import compact, surely_over
from ullage.session.ahead import due, preparing_event
from ullage.session.aio import AsyncSession
from ullage.session.closing import AsyncClosing
from ullage.session.drivers import arun

T = TypeVar("T")

_BEFORE_GUARD = partial(
    compact,
    is_due=partial(surely_over, share=0.80),
    keeps_task=False,
    least_share=0.0,
)
"""The policy's threshold may be by a rough estimate, and the guard be first with a summary."""


class AsyncConversation(ConversationCore, AsyncClosing):
    """`Conversation` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `ullage.AsyncStore`, and the summariser may be async. The
    conversation's own store is used in a thread.

    With a summariser, a summary is begun beside the turns before it is needed, at the threshold of
    the policy's ``ahead`` or at 80 % of the limit, before the guard has to act; the `fit` that
    needs it writes it down. No `fit` waits for one that was begun, nor is a model asked again in
    its place: if it is late, refused or cancelled, the deterministic summary is used. Where none
    was begun, since the view grew too much at once, the model is asked within that `fit`, as in
    `Conversation`, for no longer than the summariser's ``timeout_s``.
    """

    session: AsyncSession
    _session_of = AsyncSession

    def _begin(self) -> None:
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[Filled | None] | None = None
        self._is_for_next = False

    @property
    def preparing(self) -> asyncio.Task[Filled | None] | None:
        """The summary under way beside the turns, to be awaited or cancelled, or None."""
        return None if self._task is None or self._task.done() else self._task

    @property
    async def messages(self) -> list[Any]:
        """See `Conversation.messages`: ``await conversation.messages``.

        Raises:
            StoreError: the conversation cannot be read.
        """
        async with self._lock:
            return await self._run(self._messages())

    async def append(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """See `Conversation.append`. Cancelled, it has happened whole or not at all."""
        async with self._lock:
            return await self._run(self._append(messages))

    async def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Conversation.fit`."""
        async with self._lock:
            view = await self._run(self._fit(request))
            self._look_ahead()
            return view

    async def close(self) -> None:
        """Close the session. A summary under way is given up."""
        if self.preparing is not None:
            self.preparing.cancel()
            await asyncio.wait((self.preparing,))
        await self.session.close()

    async def _run(self, steps: Steps[T]) -> T:
        session = self.session
        return await arun(
            steps, session.store, session.settings.tenant, self._summaries
        )

    @property
    def _was_begun(self) -> bool:
        return self._is_for_next or self.preparing is not None

    def _begun(self, window: Window, cut: ProposedEdit) -> Filled | None:
        """What came of the summary that was begun, if one was.

        Where it cannot be used, nobody is asked again: the deterministic summary is.
        """
        if not self._was_begun:
            return None
        task = self._task
        filled = (
            task.result()
            if task and task.done() and not task.cancelled()
            else None
        )
        edit = filled.cut.edit if filled else None
        if (
            filled is None
            or not isinstance(edit, ReplaceSpan)
            or not continues(window, edit)
        ):
            return Filled(cut, "what was begun beside the turns was not ready")
        return Filled(cut, filled.refused) if filled.refused else filled

    def _look_ahead(self) -> None:
        """Begin the next summary, if the view is over the softer threshold."""
        session = self.session
        if (
            self._summaries is None
            or session.budget.is_used_up
            or self._was_begun
        ):
            return
        boundary = self._boundary_ahead()
        if boundary is not None:
            self._is_for_next = True
            steps = self._prepared(self._planned(boundary.id))
            self._task = asyncio.create_task(
                self._run(steps), name="ullage-compaction"
            )
            session.emit(preparing_event())

    def _boundary_ahead(self) -> StoredMessage | None:
        """Where what is loaded is to begin, if a summary is to be begun now."""
        session = self.session
        for stage in (session.settings.policy.ahead, _BEFORE_GUARD):
            cut = due(stage, session.window)
            if cut is not None and isinstance(cut.edit, ReplaceSpan):
                return self._stored(
                    session.window.transcript.find(cut.edit.upto)
                )
        return None

    def _prepared(self, planned: Do) -> Steps[Filled | None]:
        """A summary as it will be needed; None if the history could not be read."""
        try:
            plan: CompactionDraft = yield planned
        except UllageError:
            return None  # the turn that needs it meets the same, and raises it
        return (
            None
            if plan.cut is None
            else (yield from self._ask(plan.window, plan.cut))
        )

    def _written(
        self, write: Callable[[], CompactionPart]
    ) -> Steps[CompactionPart]:
        part = yield from super()._written(write)
        self._is_for_next = False
        self._task = self.preparing
        return part
