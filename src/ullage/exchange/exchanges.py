"""What all exchanges of one door share: the sessions, and the count of what came of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ullage.exchange.exchange import Exchange
from ullage.exchange.values import Counts, Report, Upstream
from ullage.session.sessions import AsyncSessions, Sessions

__all__ = ["Exchanges", "conversation"]

_KEY: ContextVar[str | None] = ContextVar("ullage_conversation", default=None)


@contextmanager
def conversation(key: str) -> Iterator[None]:
    """Name the conversation of every request made inside, in this thread or task.

    Without it conversations are told apart by their histories, which is right but for one thing:
    what one of them set aside opens in another of the same tenant, for whoever knows its ref.
    What is made inside has a tenant of its own, the key.

    Args:
        key: what its host keeps it under.
    """
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)


class Exchanges:
    """The exchanges of one door.

    Args:
        sessions: the sessions of its conversations: `Sessions` where the steps are run with
            `acting`, `AsyncSessions` where they are run with `aacting`.
        tell: is called with the `Report` of each exchange when it is over.

    Attributes:
        sessions: the same.
        counts: what came of all exchanges so far.
    """

    def __init__(
        self, sessions: Sessions | AsyncSessions, tell: Callable[[Report], None] | None = None
    ) -> None:
        self.sessions = sessions
        self.counts = Counts()
        self._tell, self._lock = tell, threading.Lock()

    def of(
        self,
        method: str,
        path: str,
        body: bytes,
        upstream: Upstream,
        *,
        tenant: str = "",
        is_asked: bool = True,
    ) -> Exchange:
        """The exchange of one request.

        Args:
            method: the HTTP method.
            path: the path of its URL with the query, quoted.
            body: the body, decoded where it came compressed.
            upstream: sends it.
            tenant: whose content this is; a ref opens only what the same tenant put there.
            is_asked: whether it is to be fitted; if not, it is passed on, and counted as such.
        """
        raise NotImplementedError

    def over(self, report: Report) -> None:
        """Count an exchange that is over, and tell of it."""
        with self._lock:
            self.counts = self.counts.plus(report)
        if self._tell is not None:
            self._tell(report)
