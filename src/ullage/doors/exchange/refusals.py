"""The additions that upstreams refuse, for all threads and event loops of a process."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ullage.core.locks import Lock
from ullage.doors.exchange.additions import Addition, Refusals, RequestTarget


class KnownRefusals:
    """What the upstreams of one process refused; for any number of threads and event loops.

    Args:
        now_s: a clock that never goes back.

    Attributes:
        newest: the refusals, as a value.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.newest = Refusals()
        self._now_s = now_s
        self._lock = Lock()

    def of(self, target: RequestTarget, own_tools: int) -> frozenset[Addition]:
        """The additions that a request is sent without; see `Refusals.of`."""
        rows = self.newest
        return (
            rows.of(target, own_tools, self._now_s())
            if rows.rows
            else frozenset()
        )

    def learn(
        self,
        target: RequestTarget,
        addition: Addition,
        *,
        is_named: bool,
        own_tools: int,
    ) -> bool:
        """Remember a refusal. Returns whether requests are sent without the addition now."""
        with self._lock:
            self.newest = self.newest.with_refusal(
                target,
                addition,
                is_named=is_named,
                own_tools=own_tools,
                now_s=self._now_s(),
            )
            return self.newest.rows[target, addition].holds

    def forget(
        self,
        target: RequestTarget,
        additions: Collection[Addition],
        own_tools: int,
    ) -> None:
        """A request was taken with these additions: what was remembered of them is wrong."""
        if not self.newest.rows:
            return
        with self._lock:
            self.newest = self.newest.without(target, additions, own_tools)
