"""The session for an event loop. Apart, because asyncio is a third of what an import costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ullage.drivers import arun
from ullage.effects import Steps
from ullage.session import Coat
from ullage.stores import AsyncStore, open_store
from ullage.stores.threaded import Threaded

__all__ = ["AsyncSession"]


class AsyncSession(Coat):
    """`Session` for an event loop: the same settings, the same views, awaited.

    ``store`` may also be an `AsyncStore`; a sync store runs in a thread.
    """

    store: AsyncStore

    def _hold(self, store: Any) -> None:
        is_async = asyncio.iscoroutinefunction(getattr(store, "commit", None))
        self.store = store if is_async else Threaded(open_store(store))
        self._lock = asyncio.Lock()

    async def fit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.fit`."""
        async with self._lock:
            view: dict[str, Any] = await self._run(self._fit(request))
            return view

    async def settle(self, request: Mapping[str, Any]) -> None:
        """See `Session.settle`."""
        async with self._lock:
            self._turned(await self._run(self._turn(request)))

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

    async def close(self) -> None:
        """Close the store, and give back what is reserved of the budget."""
        self.budget.end(self._payer)
        await self.store.close()

    async def _run(self, steps: Steps[Any]) -> Any:
        return await arun(steps, self.store, self.settings.tenant)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()
