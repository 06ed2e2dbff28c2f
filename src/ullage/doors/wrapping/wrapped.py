"""The state of a wrapped client: its sessions, its store, counts and reports."""

from __future__ import annotations

import inspect
import time
from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ullage import AsyncSessions, Sessions
from ullage.core.locks import Lock
from ullage.doors.exchange import ExchangeCounts, ExchangeReport, Exchanges
from ullage.doors.exchange.refusals import KnownRefusals
from ullage.stores import open_store

if TYPE_CHECKING:
    import asyncio

_NEWEST = 256


class Wrapped:
    """What a wrapped client shares with all copies of it.

    Args:
        store: what is set aside goes here; see `ullage.Session`.
        tenant: whose content it is.
        settings: those of each session.
        recalls: whether the recall tools are offered.
        marks_cache: whether requests get cache markers.
        is_async: whether the client is for an event loop.

    Attributes:
        store: the store.
        tenant: as given.
        counts: how many requests there were, and their outcomes
        (`ullage.doors.exchange.ExchangeCounts`).
        reports: the outcome of the newest 256, each a `ullage.doors.exchange.ExchangeReport`.
    """

    def __init__(
        self,
        store: Any,
        tenant: str,
        settings: dict[str, Any],
        *,
        recalls: bool,
        is_async: bool,
        marks_cache: bool = False,
    ) -> None:
        is_awaited = inspect.iscoroutinefunction(
            getattr(store, "commit", None)
        )
        self.store = store if is_awaited else open_store(store)
        self.tenant = tenant
        self.counts = ExchangeCounts()
        self.reports: deque[ExchangeReport] = deque(maxlen=_NEWEST)
        self._offers: dict[str, Any] = {
            "recalls": recalls,
            "marks_cache": marks_cache,
            "refusals": KnownRefusals(time.monotonic),
        }
        self._settings = settings
        self._lock = Lock()
        self._blocking: Exchanges | None = None
        self._awaited: WeakKeyDictionary[asyncio.AbstractEventLoop, Exchanges]
        self._awaited = WeakKeyDictionary()
        # what cannot be meant is refused now
        self._made(AsyncSessions if is_async else Sessions)

    @property
    def sessions(self) -> tuple[Sessions | AsyncSessions, ...]:
        """The sessions of the conversations that were used last, by `ExchangeReport.conversation`.

        One collection for the threads, and one for each event loop.
        """
        with self._lock:
            doors = [
                *([self._blocking] if self._blocking else []),
                *self._awaited.values(),
            ]
        return tuple(door.sessions for door in doors)

    def exchanges(self, is_async: bool) -> Exchanges:
        """The exchanges of this thread, or of the event loop that runs in it."""
        if not is_async:
            with self._lock:
                if self._blocking is None:
                    self._blocking = self._made(Sessions)
                return self._blocking
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            exchanges = self._awaited.get(loop)
            if exchanges is None:
                exchanges = self._awaited[loop] = self._made(AsyncSessions)
            return exchanges

    def _made(self, kind: type[Sessions] | type[AsyncSessions]) -> Exchanges:
        return Exchanges(
            kind(store=self.store, **self._settings),
            self._took,
            **self._offers,
        )

    def _took(self, report: ExchangeReport) -> None:
        with self._lock:
            self.counts = self.counts.plus(report)
            self.reports.append(report)

    def close(self) -> None:
        """Let go of the conversations, and close the store."""
        with self._lock:
            blocking = self._blocking
            self._blocking = None
        if blocking is not None:
            blocking.sessions.close()
        elif not inspect.iscoroutinefunction(self.store.close):
            self.store.close()

    async def aclose(self) -> None:
        """`close` for an event loop."""
        with self._lock:
            awaited: list[Any] = [
                exchanges.sessions for exchanges in self._awaited.values()
            ]
            self._awaited.clear()
        for sessions in awaited:
            await sessions.close()
        if not awaited:
            closed = self.store.close()
            if inspect.isawaitable(closed):
                await closed
