"""Writes receipts in time where an event loop runs, so that no silence holds them back.

A timer runs only while something waits to be written. It holds no thread, and the store only while
it writes. A store that fails is tried again after `ullage.session.receipts.writer.EVERY_S` seconds.
It ends with its loop, with the store, and in the child of a fork, which begins a ledger of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from ullage.core.locks import Lock
from ullage.session.receipts.writer import (
    ReceiptLedger,
    is_awaited,
    ledger_of,
)
from ullage.stores import receipts_of
from ullage.stores.threaded import in_thread


class WriteTimer:
    """Has the receipts of one ledger written by an event loop.

    Args:
        ledger: in which they wait.
        loop: that writes them.
    """

    def __init__(
        self, ledger: ReceiptLedger, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._ledger = ledger
        self._loop = loop
        self._lock = Lock()
        self._is_awake = False
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def runs(self) -> bool:
        """Whether its loop runs."""
        return self._loop.is_running()

    def wake(self) -> None:
        """Look at what waits, from any thread."""
        with self._lock:
            if self._is_awake:
                return
            self._is_awake = True
        # the loop may have ended: the next one has a timer of its own
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wait)

    def _wait(self) -> None:
        """Sleep until what waits is due; where nothing waits, until somebody wakes it."""
        self._is_awake = False
        if self._handle is not None:
            self._handle.cancel()
        if self._task is not None and not self._task.done():
            return  # it looks again at its end
        due_in_s = self._ledger.due_in_s()
        if due_in_s is None or self._ledger.timer is not self:
            return
        self._is_awake = True
        if due_in_s > 0:
            self._handle = self._loop.call_later(due_in_s, self._wait)
        else:
            self._begin()

    def _begin(self) -> None:
        self._task = self._loop.create_task(
            self._write(), name="ullage-receipts"
        )

    async def _write(self) -> None:
        keeper = self._ledger.keeper
        try:
            if keeper is None:
                return  # another store at the same place may note something yet
            await _write(self._ledger, keeper)
        finally:
            self._is_awake = False
        # soon, not now: until it returns, this is a write under way
        self._loop.call_soon(self.wake)

    async def write(self) -> None:
        """Write what waits now, behind a write that is under way: the newest sums come last."""
        await self.finish()
        self._begin()
        await self.finish()

    async def finish(self) -> None:
        """Wait for the writes that are under way."""
        while self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    @property
    def is_here(self) -> bool:
        """Whether its loop is the one that runs here."""
        return self._loop is asyncio.get_running_loop()


def write_in_time(store: object) -> None:
    """Have the receipts noted for a store written in time by the running event loop.

    Args:
        store: any store, however it is wrapped.
    """
    keeper = receipts_of(store)
    if keeper is None:
        return
    ledger = ledger_of(keeper)
    timer = ledger.timer
    if isinstance(timer, WriteTimer) and timer.runs:
        return
    timer = WriteTimer(ledger, asyncio.get_running_loop())
    ledger.timer = timer
    timer.wake()


async def write_now(store: object) -> None:
    """Write what waits, for somebody who is about to read it.

    Args:
        store: any store, however it is wrapped.
    """
    keeper = receipts_of(store)
    if keeper is None:
        return
    ledger = ledger_of(keeper)
    timer = ledger.timer
    if isinstance(timer, WriteTimer) and timer.is_here:
        await timer.write()
    else:
        await _write(ledger, keeper)


async def aclose(store: object) -> None:
    """`ullage.session.receipts.writer.close` for an event loop. It ends the timer.

    Args:
        store: any store, however it is wrapped.
    """
    keeper = receipts_of(store)
    if keeper is None:
        return
    ledger = ledger_of(keeper)
    timer = ledger.timer
    ledger.timer = None
    if isinstance(timer, WriteTimer) and timer.is_here:
        await timer.finish()
    await _write(ledger, keeper, is_over=True)


async def _write(
    ledger: ReceiptLedger, keeper: Any, *, is_over: bool = False
) -> None:
    """Write what was noted, without holding up the loop."""
    if is_awaited(keeper):
        await ledger.awrite(keeper, is_over=is_over)
    else:
        await in_thread(ledger.write, keeper, is_over=is_over)
