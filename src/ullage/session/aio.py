"""The session for an event loop. Apart, because asyncio is a third of what an import costs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from ullage.errors import ConfigError
from ullage.recall.dispatch import Answer
from ullage.recall.found import ToolOutputRef
from ullage.session.ahead import Begun, begun, due, proposing, still_of_use
from ullage.session.core import SessionCore
from ullage.session.drivers import arun
from ullage.session.view import AsyncView, Sent
from ullage.stages.policy import Policy
from ullage.stores import AsyncStore, directory_of, files_of, open_store
from ullage.stores.threaded import Threaded
from ullage.tokens.models import is_ready, make_ready
from ullage.turn.filling import Filled, fill
from ullage.values.effects import Record, Steps

__all__ = ["AsyncSession"]

_LIGHT_MESSAGES = 32
"""A history of no more messages is gone on with on the event loop itself: a thread costs more."""


def _messages(request: Any) -> int:
    """How many messages the longest list of a request has."""
    values = request.values() if isinstance(request, Mapping) else ()
    return max((len(value) for value in values if isinstance(value, list)), default=0)


T = TypeVar("T")


class AsyncSession(SessionCore):
    """`Session` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `AsyncStore`; a sync store runs in a thread.

    With a summariser, a compaction is begun beside the turns before it is needed, and the first
    `fit` after it is ready shows it. `preparing` is the task of it.
    """

    store: AsyncStore
    _begun: tuple[Begun, ...] = ()

    def _hold(self, store: Any) -> None:
        if asyncio.iscoroutinefunction(getattr(store, "commit", None)):
            self.store = store
            self._take_files()
        else:
            self.store = Threaded(self._with_files(open_store(store)))
        self._lock = asyncio.Lock()

    @property
    def preparing(self) -> asyncio.Task[Filled] | None:
        """The compaction under way beside the turns, to be awaited or cancelled, or None."""
        tasks = (each.task for each in self._begun if not each.task.done())
        return next(tasks, None)

    def _take_files(self) -> None:
        """Take an asynchronous store as it is; where a policy wants files, it has to have them."""
        wanted, spilled = self.settings.policy.spill_directory, files_of(self.store)
        if wanted is not None and spilled is not None:
            self._place_files(spilled.folder.as_posix())
            return
        if directory_of(wanted, self.store) is not None:
            raise ConfigError(
                "spill_directory",
                "an asynchronous store keeps no files",
                "Give a SpillStore in ullage.stores.threaded.Threaded, or the store underneath.",
            )
        self._place_files(None)

    async def fit(self, request: Mapping[str, Any]) -> AsyncView:
        """See `Session.fit`."""
        async with self._lock:
            made: tuple[dict[str, Any], Sent] = await self._run_turn(self._fit(request), request)
            view = AsyncView(*made, session=self)
            self._handed_out(view)
            self._look_ahead()
            return view

    async def settle(self, request: Mapping[str, Any]) -> None:
        """See `Session.settle`."""
        async with self._lock:
            await self._run_turn(self._settle(request), request)
            self._look_ahead()

    async def compact(self, request: Mapping[str, Any]) -> bool:
        """See `Session.compact`."""
        async with self._lock:
            made: bool = await self._run_turn(self._compact(request), request)
            self._look_ahead()
            return made

    async def observe(self, reply: Any) -> None:
        """See `Session.observe`."""
        await self._observe_on(self._newest, reply)

    async def _observe_on(self, sent: Sent, reply: Any) -> None:
        async with self._lock:
            await self._run(self._observe(sent, reply))

    @overload
    async def call(self, create: Callable[..., Awaitable[T]], /, **request: Any) -> T: ...
    @overload
    async def call(self, create: Callable[..., T], /, **request: Any) -> T: ...
    async def call(self, create: Callable[..., Any], /, **request: Any) -> Any:
        """See `Session.call`. A client's stream manager is given back to be entered."""
        from ullage.session.call import acall

        return await acall(self, create, request)

    async def recall(
        self, call: Any, *, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `Session.recall`."""
        await self._open_first(request)
        return await self._recall_on(self._newest, call)

    async def _recall_on(self, sent: Sent, call: Any) -> dict[str, Any]:
        async with self._lock:
            result: dict[str, Any] = await self._run(self._recall(sent, call))
            return result

    async def open(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        call_id: str = "",
        *,
        request: Mapping[str, Any] | None = None,
    ) -> Answer:
        """See `Session.open`."""
        await self._open_first(request)
        async with self._lock:
            given: Answer = await self._run(self._open(name, arguments, call_id))
            return given

    async def _open_first(self, request: Mapping[str, Any] | None) -> None:
        if request is not None and self._kept.newest is None:
            await self.settle(request)

    async def take(self, records: Iterable[Record]) -> None:
        """See `Session.take`."""
        async with self._lock:
            self._take(records)

    async def output_ref(self, wanted: str) -> ToolOutputRef:
        """See `Session.output_ref`."""
        async with self._lock:
            found: ToolOutputRef = await self._run(self._output_ref(wanted))
            return found

    async def close(self) -> None:
        """Close the store, and give back what is reserved of the budget.

        A compaction under way is given up.
        """
        if self.preparing is not None:
            self.preparing.cancel()
            await asyncio.wait((self.preparing,))
        self.budget.end(self._account)
        await self.store.close()

    async def _run(self, steps: Steps[Any], *, is_heavy: bool = False) -> Any:
        model, tenant = self.settings.model, self.settings.tenant
        if not is_ready(model):
            await asyncio.to_thread(make_ready, model)
        return await arun(steps, self.store, tenant, self._summaries, is_heavy=is_heavy)

    async def _run_turn(self, steps: Steps[Any], request: Mapping[str, Any]) -> Any:
        """A turn; one that may take longer than the loop can wait is worked out in a thread."""
        is_heavy = self._newest_size == 0 or _messages(request) > _LIGHT_MESSAGES
        return await self._run(steps, is_heavy=is_heavy)

    @property
    def _newest_size(self) -> int:
        newest = self._kept.newest
        return 0 if newest is None else newest.size

    def _look_ahead(self) -> None:
        """Begin the next compaction, if the view is over the softer threshold."""
        window = self.window
        if self._summaries is None or self.budget.is_used_up:
            return
        self._begun = still_of_use(self._begun, window)
        if self.preparing is not None or any(each.continues(window) for each in self._begun):
            return
        cut = due(self.settings.policy.ahead, window)
        if cut is not None:
            steps = fill(cut, self._asking(window.meter.model), window.meter.text)
            task = asyncio.create_task(self._run(steps), name="ullage-compaction")
            self._begun = (*self._begun, Begun(cut, task))
            self.emit(begun())

    def _policy_now(self) -> Policy:
        return proposing(self.settings.policy, self._begun)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()
