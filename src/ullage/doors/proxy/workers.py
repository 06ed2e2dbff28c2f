"""Several processes on one listening socket.

The parent binds, forks, and does nothing else: it starts again whoever died, and passes the end on.
The socket is inherited, so what waits in its queue waits for any of them, and nothing is lost with
a worker that is killed but what it was answering. What they decide they share in the store.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.server import serve
from ullage.doors.proxy.siblings import Siblings

_SOON_S = 1.0
_MOST_WAIT_S = 5.0
_ENDS = (signal.SIGTERM, signal.SIGINT)


def serve_with_workers(
    config: Config, listening: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve with as many processes as the configuration says, until SIGTERM or SIGINT.

    Args:
        config: the proxy's settings.
        listening: the socket.
        ready: called once every worker answers.

    Raises:
        ConfigError: there are to be several, and this system cannot fork.
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
        """Start the workers and look after them until the end."""
        for signal_number in _ENDS:
            signal.signal(signal_number, self._stop)
        with TemporaryDirectory(prefix="ullage-") as folder:
            self._folder = Path(folder)
            if all(map(self._start, range(1, self._config.workers + 1))):
                ready()
            else:
                self._stop()
            self._look_after()

    def _look_after(self) -> None:
        """Start anew whoever dies, until all have ended."""
        while self._workers:
            pid, _ = os.waitpid(-1, 0)
            number, began = self._workers.pop(pid, (0, 0.0))
            if number and not self._is_stopping:
                self._wait(began)
                self._start(number)

    def _wait(self, began: float) -> None:
        """Wait the longer, the more workers in a row died as soon as they had begun."""
        self._deaths = (
            self._deaths + 1 if time.monotonic() - began < _SOON_S else 0
        )
        if self._deaths:
            time.sleep(min(0.1 * 2**self._deaths, _MOST_WAIT_S))

    def _start(self, number: int) -> bool:
        """A new worker; whether it answers."""
        if self._is_stopping:
            return False
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
        answers = os.read(answer_pipe, 1)
        os.close(answer_pipe)
        return bool(answers)

    def _work(self, number: int, ready_pipe: int) -> int:
        """What a worker does; its exit status."""
        for signal_number in _ENDS:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        try:
            serve(
                self._config,
                self._listening,
                lambda: _tell(ready_pipe),
                siblings=Siblings(self._folder, number),
                leash=self._leash,
            )
        except BaseException:  # noqa: BLE001 - a fork must never go on as its parent
            import traceback

            traceback.print_exc()
            return 1
        return 0

    def _stop(self, *_: object) -> None:
        self._is_stopping = True
        for pid in self._workers:
            os.kill(pid, signal.SIGTERM)


def _tell(ready_pipe: int) -> None:
    os.write(ready_pipe, b"1")
    os.close(ready_pipe)
