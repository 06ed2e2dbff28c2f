"""The conversation for an event loop. Apart, because asyncio is a third of what an import costs.

fit ─▶ the view is over the softer threshold ─▶ a model is asked for the summary, in a task
fit ─▶ compaction is due: what is ready is written down, what is not is not waited for
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from ullage.ahead import Ahead, wanted
from ullage.aio import AsyncSession
from ullage.compaction import Filled
from ullage.conversation._core import ConversationCore
from ullage.conversation._plan import Plan
from ullage.drivers import arun
from ullage.edits import Span
from ullage.effects import Do, Steps
from ullage.errors import UllageError
from ullage.stores.conversations import CompactionPart

__all__ = ["AsyncConversation"]


class AsyncConversation(ConversationCore):
    """`Conversation` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `ullage.AsyncStore`, and the summariser may be async. The
    conversation's own store is used in a thread.

    With a summariser, a summary is begun beside the turns before it is needed (the policy's
    ``ahead``), and the `fit` that needs it writes it down. A `fit` does not wait for one that was
    begun, nor is a model asked again in its place: if it is late, was refused or cancelled, the
    deterministic summary stands. Where none was begun, the model is asked within that `fit`, as
    `Conversation` does, for no longer than the summariser's ``timeout_s``.
    """

    session: AsyncSession
    _session_of = AsyncSession
    _can_await = True

    def _begin(self) -> None:
        self._lock = asyncio.Lock()
        self._ahead = Ahead()
        self._was_begun = False

    @property
    def preparing(self) -> asyncio.Task[None] | None:
        """The summary under way beside the turns, to be awaited or cancelled, or None."""
        return self._ahead.under_way

    @property
    async def messages(self) -> list[Any]:
        """See `Conversation.messages`: ``await conversation.messages``.

        Raises:
            StoreError: the conversation cannot be read.
        """
        async with self._lock:
            messages: list[Any] = await self._run(self._messages())
            return messages

    async def append(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """See `Conversation.append`. Cancelled, it has happened whole or not at all."""
        async with self._lock:
            ids: tuple[str, ...] = await self._run(self._append(messages))
            return ids

    async def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Conversation.fit`."""
        async with self._lock:
            view: dict[str, Any] = await self._run(self._fit(request))
            self._look_ahead()
            return view

    async def close(self) -> None:
        """Close the session. A summary under way is given up."""
        await self._ahead.cancel()
        await self.session.close()

    async def _run(self, steps: Steps[Any]) -> Any:
        session = self.session
        tenant = session.settings.tenant
        return await arun(steps, session.store, tenant, self._summaries, self._ahead)

    @property
    def _is_asked_in_turn(self) -> bool:
        return not self._was_begun and self._ahead.under_way is None

    def _look_ahead(self) -> None:
        """Begin the next summary, if the view is over the softer threshold."""
        session = self.session
        if self._summaries is None or session.budget.is_used_up or not self._is_asked_in_turn:
            return
        window = session.window
        cut = wanted(session.settings.policy, window)
        if cut is None or not isinstance(cut.edit, Span) or window.span is not None:
            return  # where a span stands, less is loaded by now, or nothing is won
        boundary = self._stored(window.transcript.find(cut.edit.upto))
        if boundary is not None:
            self._was_begun = True
            steps = self._prepared(self._planned(boundary.id))
            session.events.append(self._ahead.begin(partial(self._run, steps)))

    def _prepared(self, planned: Do) -> Steps[Filled | None]:
        """A summary as it will be needed; None if the history could not be read."""
        try:
            plan: Plan = yield planned
        except UllageError:
            return None  # the turn that needs it meets the same, and tells of it
        return None if plan.cut is None else (yield from self._ask(plan.window, plan.cut))

    def _mark(self, boundary_id: str, summary: str, tokens: int) -> Steps[CompactionPart]:
        part = yield from super()._mark(boundary_id, summary, tokens)
        self._was_begun = False
        self._ahead.forget()
        return part

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()
