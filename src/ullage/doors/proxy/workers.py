"""Several processes on one listening socket.

The parent binds, forks, and does nothing else: it starts again whoever died, and passes the end on.
The socket is inherited, so what waits in its queue waits for any of them, and nothing is lost with
a worker that is killed but what it was answering. What they decide they share in the store.

A worker that cannot start tells its parent why. At the start of the proxy that is its end; later
the log has a line of it, and the worker is tried again.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ullage.core.errors import ConfigError, UllageError
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.quiet import described
from ullage.doors.proxy.server import serve
from ullage.doors.proxy.siblings import Siblings

_SOON_S = 1.0
_MOST_WAIT_S = 5.0
_ENDS = (signal.SIGTERM, signal.SIGINT)
_READY = b"ready"
_PART_BYTES = 65_536


def serve_with_workers(
    config: Config, listening: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve with as many processes as the configuration says, until SIGTERM or SIGINT.

    Args:
        config: the proxy's settings.
        listening: the socket.
        ready: called once every worker answers.

    Raises:
        ConfigError: there are to be several, and this system cannot fork; or a worker cannot
            start.
        StoreError: the store cannot be opened.
    """
    if config.workers == 1:
        serve(config, listening, ready)
        return
    if not hasattr(os, "fork"):
        raise ConfigError(
            "workers", "this system cannot fork", "Use one worker."
        )
    _Parent(config, listening).run(ready)


class _Parent:
    """The process that the workers are children of.

    Its end of the leash is open as long as it lives; workers stop when it is not.
    """

    def __init__(self, config: Config, listening: socket.socket) -> None:
        self._config = config
        self._listening = listening
        self._workers: dict[int, tuple[int, float]] = {}
        self._deaths = 0
        self._is_stopping = False
        self._leash, self._held = os.pipe()

    def run(self, ready: Callable[[], None]) -> None:
        """Start the workers and look after them until the end.

        Raises:
            UllageError: one of them cannot start; the others have ended.
        """
        for signal_number in _ENDS:
            signal.signal(signal_number, self._stop)
        with TemporaryDirectory(prefix="ullage-") as folder:
            self._folder = Path(folder)
            error = self._start_all()
            if error is None and not self._is_stopping:
                ready()
            else:
                self._stop()
            self._look_after()
        if error is not None:
            raise error

    def _start_all(self) -> UllageError | None:
        """Start the workers; what keeps the first of them that cannot start, or None."""
        for number in range(1, self._config.workers + 1):
            error = self._start(number)
            if error is not None:
                return error
        return None

    def _look_after(self) -> None:
        """Start anew whoever dies, until all have ended."""
        while self._workers:
            pid, status = os.waitpid(-1, 0)
            number, began = self._workers.pop(pid, (0, 0.0))
            if number and not self._is_stopping:
                ended = _ending(status)
                _log(f"worker {number} {ended}; it is started again")
                self._wait(began)
                error = self._start(number)
                if error is not None:
                    _log(f"worker {number} cannot start: {error}")

    def _wait(self, began: float) -> None:
        """Wait the longer, the more workers in a row died as soon as they had begun."""
        self._deaths = (
            self._deaths + 1 if time.monotonic() - began < _SOON_S else 0
        )
        if self._deaths:
            time.sleep(min(0.1 * 2**self._deaths, _MOST_WAIT_S))

    def _start(self, number: int) -> UllageError | None:
        """Start a worker, and wait until it answers; what keeps it from that, or None."""
        if self._is_stopping:
            return None
        answer_pipe, ready_pipe = os.pipe()
        # no end may reach a child as its parent's
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        pid = os.fork()
        if pid == 0:
            os.close(answer_pipe)
            os.close(self._held)
            os._exit(self._work(number, ready_pipe))
        self._workers[pid] = number, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        os.close(ready_pipe)
        answer = _read_all(answer_pipe)
        os.close(answer_pipe)
        if answer == _READY or self._is_stopping:
            return None
        return _error_in(answer, number)

    def _work(self, number: int, ready_pipe: int) -> int:
        """Do what a worker does; its exit status."""
        for signal_number in _ENDS:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        answers = False

        def ready() -> None:
            nonlocal answers
            answers = True
            _tell(ready_pipe, _READY)

        try:
            serve(
                self._config,
                self._listening,
                ready,
                siblings=Siblings(self._folder, number),
                leash=self._leash,
            )
        except UllageError as error:
            if answers:
                _log(f"worker {number} failed: {error}")
            else:
                _tell(ready_pipe, pickle.dumps(error))
            return 1
        except BaseException as error:  # noqa: BLE001 - a fork must never go on as its parent
            _log(f"worker {number} failed: {described(error)}")
            return 1
        return 0

    def _stop(self, *_: object) -> None:
        self._is_stopping = True
        # or who connects would wait in its queue for workers that have left
        self._listening.close()
        for pid in self._workers:
            os.kill(pid, signal.SIGTERM)


def _tell(ready_pipe: int, answer: bytes) -> None:
    """Tell the parent that a worker answers, or what keeps it from that."""
    os.write(ready_pipe, answer)
    os.close(ready_pipe)


def _read_all(pipe: int) -> bytes:
    """What comes through a pipe until its other end is closed."""
    answer = b""
    while part := os.read(pipe, _PART_BYTES):
        answer += part
    return answer


def _error_in(answer: bytes, number: int) -> UllageError:
    """What a worker said that keeps it from its start; where it said nothing, that."""
    with suppress(Exception):  # it was killed while it said it
        error = pickle.loads(answer)
        if isinstance(error, UllageError):
            return error
    return ConfigError(
        "workers",
        f"worker {number} ended before it answered",
        "See the line of it in the log; with `--workers 1` the proxy says more.",
    )


def _ending(status: int) -> str:
    """How a worker ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    return f"was ended by signal {-code}" if code < 0 else f"ended with {code}"


def _log(text: str) -> None:
    """Write a line to standard error, unless whoever reads it has stopped: nobody may wait here."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stderr.fileno()
        _, writable, _ = select.select((), (descriptor,), (), 0)
        if writable:
            os.write(descriptor, f"ullage: {text}\n".encode())
