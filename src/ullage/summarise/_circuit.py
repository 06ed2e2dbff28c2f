"""When a summariser that fails is asked again: a value, counted in requests and in no time."""

from __future__ import annotations

from typing import NamedTuple

_TRIES = 2
"""So many requests may fail before any is left out: the second says what was wrong."""
_MOST = 64
"""No more requests than this are left out before the next is made."""


class Circuit(NamedTuple):
    """What a session knows of its summariser's failures.

    Attributes:
        failures: requests that failed, one after another.
        left_out: requests that are still to be left out, before one is made again.
    """

    failures: int = 0
    left_out: int = 0

    def after_failure(self) -> Circuit:
        """One more failed: from the second on, twice as many as before are left out."""
        failures = self.failures + 1
        more = failures - _TRIES
        return Circuit(failures, min(4 << more, _MOST) if more >= 0 else 0)

    def after_leaving_out(self) -> Circuit:
        """One was left out."""
        return self._replace(left_out=self.left_out - 1)
