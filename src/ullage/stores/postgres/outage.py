"""Whether a server is away, as the calls of one process find it.

The first call that waits its whole time for a server in vain finds it away. For `AWAY_S` seconds
after that nobody waits: calls fail at once. Then one call tries it, for `_TRIAL_S` seconds at most,
while the others still fail. The first answer ends the outage.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from weakref import WeakSet

from ullage.core.locks import Lock

_log = logging.getLogger("ullage.stores")

AWAY_S = 5.0
"""How long a server that cannot be reached is not asked; then it is tried again."""
_TRIAL_S = 1.0


class Outage:
    """What the calls over one pool of connections know of their server.

    Args:
        most: the most connections of the pool.
        now_s: a clock that never goes back, in seconds.

    Attributes:
        asking: the calls that have a connection.
    """

    def __init__(
        self, most: int, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.asking: WeakSet[object] = WeakSet()
        self._most = most
        self._now_s = now_s
        self._lock = Lock()
        self._is_away = False
        self._tried_again_s = 0.0
        self._answered_s = float("-inf")

    def patience_s(self, timeout_s: float) -> float:
        """How long a call may wait for the server, in seconds; 0: not at all.

        Args:
            timeout_s: how long it may while the server is there.
        """
        with self._lock:
            if not self._is_away:
                return timeout_s
            now_s = self._now_s()
            if now_s < self._tried_again_s:
                return 0.0
            self._tried_again_s = now_s + AWAY_S
            return min(timeout_s, _TRIAL_S)

    @property
    def is_full(self) -> bool:
        """Whether all connections are in use.

        A call that gets none then knows nothing of the server: those that have them will.
        """
        return len(self.asking) >= self._most

    def answer(self) -> None:
        """Note that the server answered a call."""
        with self._lock:
            self._answered_s = self._now_s()
            was_away = self._is_away
            self._is_away = False
        if was_away:
            _log.warning("the PostgreSQL server answers again")

    def fail(self, began_s: float) -> None:
        """Note that a call waited for the server in vain.

        A server that answered another call meanwhile is busy, not away.

        Args:
            began_s: when the call began, by the same clock.
        """
        with self._lock:
            if self._answered_s >= began_s:
                return
            was_away = self._is_away
            self._is_away = True
            self._tried_again_s = self._now_s() + AWAY_S
        if not was_away:
            _log.warning(
                "the PostgreSQL server cannot be reached; nothing is kept or found there until it"
                " answers, and it is tried again every %d s",
                AWAY_S,
            )
