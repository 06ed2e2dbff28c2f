"""Locks that an interrupt leaves as it found them.

Python 3.14 looks for signals between taking a lock and entering the block that gives it back: of
53,000 interrupts of a loop that takes a lock, 33,000 left it taken for good; in 3.11 and 3.13 none.
There a lock is taken in a function of its own, which gives it back when it is interrupted; nothing
is looked for between the end of that function and the block. It can be taken again by its thread.
"""

from __future__ import annotations

import sys

__all__ = ["Lock", "RLock"]

if sys.version_info < (3, 14):
    from threading import Lock, RLock
else:
    from _thread import RLock as _RLock

    class RLock(_RLock):
        """A lock that its thread may take again."""

        def __enter__(self) -> bool:
            held = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                if self._recursion_count() > held:
                    self.release()
                raise

    Lock = RLock
