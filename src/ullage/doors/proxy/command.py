"""A command with a proxy of its own: ``ullage run -- claude``.

The proxy is a thread of this process, on a free port that only this machine reaches; the command
has the terminal. It ends with the command, whose exit code is ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.observers import Observers, observers_of
from ullage.doors.proxy.relayed import Relayed
from ullage.doors.proxy.run_keys import RunKeys
from ullage.doors.proxy.server import bound, running

_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Signals for this process that are meant for the command. An interrupt from the terminal reaches
both; it is the command's to act on."""


@contextlib.contextmanager
def behind_a_proxy(
    config: Config,
    *tell: Callable[[Relayed], None],
    run_keys: RunKeys | None = None,
) -> Iterator[tuple[str, Observers]]:
    """A proxy in a thread, as long as the block lasts.

    Args:
        config: the proxy's settings.
        tell: are called as well, in that thread, with each request that is over.
        run_keys: who may use it; None: whoever reaches it.

    Gives:
        its address, and who looks on.

    Raises:
        ConfigError: the address cannot be had.
    """
    listening = bound(config)
    host, port = listening.getsockname()[:2]
    observers = observers_of(config, *tell)
    thread = _Thread(config, listening, observers, run_keys)
    thread.start()
    try:
        thread.wait()
        yield (
            f"http://{f'[{host}]' if ':' in host else host}:{port}",
            observers,
        )
    finally:
        thread.stop()


class _Thread(threading.Thread):
    """The event loop of a proxy."""

    def __init__(
        self,
        config: Config,
        listening: socket.socket,
        observers: Observers,
        run_keys: RunKeys | None,
    ) -> None:
        super().__init__(name="ullage-proxy", daemon=True)
        self._run_keys = run_keys
        self._config = config
        self._listening = listening
        self._observers = observers
        self._began = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error
        finally:
            self._began.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        async with running(
            self._config,
            self._listening,
            self._observers,
            run_keys=self._run_keys,
        ):
            self._began.set()
            await self._over.wait()

    def wait(self) -> None:
        """Wait until it answers."""
        self._began.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let what is under way come to its end."""
        if (
            self._loop is not None
            and self._over is not None
            and self.is_alive()
        ):
            self._loop.call_soon_threadsafe(self._over.set)
        self.join()


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in the terminal; its exit code, 128 and more if a signal ended it.

    Raises:
        ConfigError: there is no such program.
    """
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise ConfigError(
            "run", f"there is no program {command[0]!r}", "Is it on the PATH?"
        )
    with (
        _signals() as child,
        subprocess.Popen(
            [program, *command[1:]], env=dict(environment)
        ) as process,
    ):
        child.append(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Signals go to the command while the block lasts."""
    child: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: object) -> None:
        for process in child:
            process.send_signal(number)

    numbers = [
        getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)
    ]
    handlers = {
        signal_number: signal.signal(signal_number, pass_on)
        for signal_number in numbers
    }
    handlers[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield child
    finally:
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)
