"""The session for an event loop. Apart, because asyncio is a third of what an import costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ullage.coat import Coat
from ullage.drivers import arun
from ullage.effects import Steps
from ullage.errors import ConfigError
from ullage.recall.found import ToolOutputRef
from ullage.stores import AsyncStore, directory_of, files_of, open_store
from ullage.stores.threaded import Threaded

__all__ = ["AsyncSession"]


class AsyncSession(Coat):
    """`Session` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `AsyncStore`; a sync store runs in a thread.
    """

    store: AsyncStore

    def _hold(self, store: Any) -> None:
        if asyncio.iscoroutinefunction(getattr(store, "commit", None)):
            self.store = store
            self._take_files()
        else:
            self.store = Threaded(self._with_files(open_store(store)))
        self._lock = asyncio.Lock()

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

    async def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.fit`."""
        async with self._lock:
            view: dict[str, Any] = await self._run(self._fit(request))
            return view

    async def settle(self, request: Mapping[str, Any]) -> None:
        """See `Session.settle`."""
        async with self._lock:
            self._turned(await self._run(self._turn(request)))

    async def compact(self, request: Mapping[str, Any]) -> bool:
        """See `Session.compact`."""
        async with self._lock:
            return self._compacted(await self._run(self._compact(request)))

    async def observe(self, reply: Any) -> None:
        """See `Session.observe`."""
        async with self._lock:
            steps = self._observe(reply)
            if steps is not None:
                self._observed(await self._run(steps))

    async def recall(self, call: Any) -> dict[str, Any]:
        """See `Session.recall`."""
        async with self._lock:
            result: dict[str, Any] = await self._run(self._recall(call))
            return result

    async def output_ref(self, wanted: str) -> ToolOutputRef:
        """See `Session.output_ref`."""
        async with self._lock:
            found: ToolOutputRef = await self._run(self._output_ref(wanted))
            return found

    async def close(self) -> None:
        """Close the store, and give back what is reserved of the budget."""
        self.budget.end(self._payer)
        await self.store.close()

    async def _run(self, steps: Steps[Any]) -> Any:
        return await arun(steps, self.store, self.settings.tenant, self._summaries)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()
