"""A session's summariser: asked once for each input, within its time, and paid for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ullage.spend.budget import Budget
from ullage.spend.calls import Spent
from ullage.summarise._summariser import Summariser
from ullage.values.effects import Reply, Summarise

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

__all__ = ["Summaries"]

_REMEMBERED = 8


class Summaries:
    """Calls a summariser, and never raises: what goes wrong is in the reply.

    A request that takes too long is given up. It runs in a thread of its own, which does not
    keep the process alive; what it costs is counted when it does come back.

    Args:
        summariser: the model.
        budget: what its calls are charged to. Nothing is asked once that is spent.
        agent: the name its calls are listed under.
    """

    def __init__(self, summariser: Summariser, budget: Budget, agent: str) -> None:
        self.summariser = summariser
        self._budget = budget
        self._agent = agent
        self._lock = threading.Lock()
        self._pending = Spent()
        self._answered: dict[Summarise, Reply] = {}
        self._turn: asyncio.Lock | None = None

    def ask(self, asked: Summarise) -> Reply:
        """The reply to a request, or what there is in its place."""
        known = self._known(asked)
        if known is not None:
            return known
        try:
            return self._started(asked).result(self.summariser.timeout_s)
        except TimeoutError:
            return self._late(asked)

    async def aask(self, asked: Summarise) -> Reply:
        """`ask` for an event loop, one request after another. Cancelled, it cancels the request.

        So whoever asks for what is under way gets its answer, and it is not paid for twice.
        """
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            known = self._known(asked)
            if known is not None:
                return known
            try:
                async with asyncio.timeout(self.summariser.timeout_s):
                    if self.summariser.is_async:
                        return await self._awaited(asked)
                    return await asyncio.wrap_future(self._started(asked))
            except TimeoutError:
                return self._late(asked)

    def take(self) -> Spent:
        """What the calls since the last time came to."""
        with self._lock:
            spent, self._pending = self._pending, Spent()
            return spent

    def _known(self, asked: Summarise) -> Reply | None:
        known = self._answered.get(asked)
        if known is not None:
            if known.problem:
                del self._answered[asked]  # whoever asks for a third time gets another try
            return known
        if self._budget.is_used_up:
            return Reply(problem="the budget is spent", final=True)
        return None

    def _late(self, asked: Summarise) -> Reply:
        why = f"there was no reply within {self.summariser.timeout_s:g} seconds"
        return self._remembered(asked, Reply(problem=why, final=True))

    def _started(self, asked: Summarise) -> Future[Reply]:
        """The request under way in a thread of its own."""
        from concurrent.futures import Future  # it imports logging

        done: Future[Reply] = Future()

        def work() -> None:
            reply = self._read(asked, lambda: self._send(asked))
            if not done.cancelled():
                done.set_result(reply)

        threading.Thread(target=work, name="ullage-summary", daemon=True).start()
        return done

    async def _awaited(self, asked: Summarise) -> Reply:
        try:
            came = await self._send(asked)
        except Exception as error:  # noqa: BLE001
            return self._failed(asked, error)
        return self._read(asked, lambda: came)

    def _send(self, asked: Summarise) -> Any:
        summariser = self.summariser
        return summariser.send(asked, summariser.model_for(asked.model, asked.caller))

    def _read(self, asked: Summarise, came: Callable[[], Any]) -> Reply:
        """The reply in what came back, charged and remembered."""
        try:
            reply = self.summariser.read(came())
        except Exception as error:  # noqa: BLE001
            return self._failed(asked, error)
        with self._lock:
            self._charge(asked, reply)
        return self._remembered(asked, reply)

    def _failed(self, asked: Summarise, error: Exception) -> Reply:
        why = f"the summariser raised {type(error).__name__}"
        return self._remembered(asked, Reply(problem=why))

    def _remembered(self, asked: Summarise, reply: Reply) -> Reply:
        """A reply, given again to whoever asks the same."""
        with self._lock:
            self._answered[asked] = reply
            while len(self._answered) > _REMEMBERED:
                del self._answered[next(iter(self._answered))]
        return reply

    def _charge(self, asked: Summarise, reply: Reply) -> None:
        if reply.usage.total_tokens:
            model = reply.model or self.summariser.model_for(asked.model, asked.caller)
            call = self._budget.charge(reply.usage, model, agent=self._agent)
            self._pending += call.spent
