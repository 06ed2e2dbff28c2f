"""Units done by processes of this machine.

Each worker is an executor of one process with one unit at a time: when a process dies, it is
known which unit it had, and no other suffers. (An executor of several cannot tell, and gives up
everything that is under way.)
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from ullage.tools.replay.engines._engine import (
    TRIES,
    Engine,
    LocalEngine,
    WorkerDied,
)

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


@contextmanager
def processes(workers: int | None) -> Iterator[Engine]:
    """So many worker processes; with one, this process.

    An interrupt ends them at once, and so does the end of this process, whatever ended it.
    """
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield LocalEngine()
        return
    siblings = set(multiprocessing.active_children())
    engine = _Processes(workers)
    try:
        yield engine
    except BaseException:
        engine.close(wait=False)
        for worker in set(multiprocessing.active_children()) - siblings:
            worker.terminate()
        raise
    engine.close(wait=True)


class _Processes:
    """See `Engine`."""

    def __init__(self, workers: int) -> None:
        self._workers = [_new_worker() for _ in range(workers)]

    def map(
        self, function: Callable[[U], R], units: Iterable[tuple[T, U]]
    ) -> Iterator[tuple[T, R | WorkerDied]]:
        """See `Engine.map`."""
        fresh = ((tag, unit, 1) for tag, unit in units)
        again = deque[tuple[T, U, int]]()
        idle = deque(range(len(self._workers)))
        running: dict[Future[R], tuple[int, tuple[T, U, int]]] = {}
        while True:
            while (
                idle
                and (task := again.popleft() if again else next(fresh, None))
                is not None
            ):
                worker = idle.popleft()
                running[self._submit(worker, function, task[1])] = worker, task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                worker, (tag, unit, tries) = running.pop(future)
                idle.append(worker)
                if not isinstance(future.exception(), BrokenProcessPool):
                    yield tag, future.result()
                elif tries < TRIES:
                    again.append((tag, unit, tries + 1))
                else:
                    yield tag, WorkerDied(tries)

    def close(self, *, wait: bool) -> None:
        """Start nothing more; wait for what is under way, or do not."""
        for worker in self._workers:
            worker.shutdown(wait=wait, cancel_futures=True)

    def _submit(
        self, worker: int, function: Callable[[U], R], unit: U
    ) -> Future[R]:
        """Give a unit to a worker, or to its successor if it is dead."""
        try:
            return self._workers[worker].submit(function, unit)
        except BrokenProcessPool:
            self._workers[worker].shutdown(wait=False)
            self._workers[worker] = _new_worker()
            return self._workers[worker].submit(function, unit)


def _new_worker() -> ProcessPoolExecutor:
    """A worker; its process starts with its first unit."""
    context: Any = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_begin)


def _begin() -> None:
    """A worker is ended by the process it works for, and with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
