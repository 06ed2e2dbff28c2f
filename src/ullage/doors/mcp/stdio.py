"""A server as a child process, and pipes that frames go through.

A server's stderr is ours, so that nothing it writes there waits for us. A pipe is read in blocks,
never by line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from ullage.core.errors import ConfigError

if TYPE_CHECKING:
    from ullage.doors.mcp.frames import FramePiece

_BLOCK_BYTES = 1 << 16
_PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def tell(line: str) -> None:
    """A line for whoever looks after the proxy, on standard error."""
    try:
        sys.stderr.write(f"ullage mcp: {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def started(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """The process of a server, which gets the signals that we get.

    Raises:
        ConfigError: the program cannot be started.
    """
    environment = None if not env else {**os.environ, **env}
    try:
        server = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=cwd,
        )
    except OSError as error:
        raise ConfigError(
            "command",
            f"{Path(command[0]).name!r} cannot be started ({error.strerror})",
            "Give a program and its arguments: ullage mcp -- npx some-server.",
        ) from None
    return server


class Signalled(Protocol):
    """A server that may be sent a signal."""

    def signal(self, number: int) -> None:
        """This signal has come."""


def pass_signals_on(servers: Iterable[Signalled]) -> None:
    """Have these servers get the signals that this process gets. Call it before any thread starts.

    A thread waits for them: a handler would run once the main thread has read a frame.
    """
    servers = tuple(servers)
    numbers = {
        getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)
    }

    def pass_on(number: int, frame: object = None) -> None:
        for server in servers:
            server.signal(number)

    def wait() -> None:
        while True:
            pass_on(signal.sigwait(numbers))

    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        threading.Thread(target=wait, daemon=True).start()
    else:  # Windows
        for number in numbers:
            signal.signal(number, pass_on)


class Overlong(Protocol):
    """Where the parts of an overlong frame go."""

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """A part; nobody else writes from the first part to the last."""


class Pipe:
    """A pipe that several threads write frames to, one at a time.

    Attributes:
        is_open: whether somebody still reads at the other end.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = threading.RLock()
        self.is_open = True

    def write(self, data: bytes) -> None:
        """A whole frame. What nobody reads any more is dropped."""
        if not data or not self.is_open:
            return
        with self._lock:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._file, view) :]
            except OSError:
                self.is_open = False

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """A part of an overlong frame; nobody else writes from its first part to its last."""
        if not is_inside:
            self._lock.acquire()
        self.write(piece.data)
        if piece.is_end:
            self._lock.release()


class Process:
    """A server that is a child process of ours. The contract is
    `ullage.doors.mcp.forwarding.Link`.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        self.process = process
        self._stdin = process.stdin
        self._pipe = Pipe(process.stdin.fileno())

    def send(self, frame: bytes) -> None:
        """`ullage.doors.mcp.forwarding.Link.send`."""
        self._pipe.write(frame)

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """`ullage.doors.mcp.forwarding.Link.pass_on`."""
        self._pipe.pass_on(piece, is_inside)

    def close(self) -> None:
        """`ullage.doors.mcp.forwarding.Link.close`."""
        self._stdin.close()

    def receive(
        self, take: Callable[[bytes], None], client: Pipe, most_bytes: int
    ) -> str:
        """`ullage.doors.mcp.forwarding.Link.receive`."""
        assert self.process.stdout is not None
        pump(self.process.stdout.fileno(), take, client, most_bytes)
        return _told(self.process.wait())

    def signal(self, number: int) -> None:
        """`ullage.doors.mcp.forwarding.Link.signal`."""
        if self.process.returncode is None:
            self.process.send_signal(number)

    @property
    def code(self) -> int:
        """`ullage.doors.mcp.forwarding.Link.code`."""
        return self.process.returncode

    def kill(self) -> None:
        """End it by force."""
        self.process.kill()
        self.process.wait()


def pump(
    file: int,
    take: Callable[[bytes], None],
    overlong: Overlong | None = None,
    most_bytes: int = 64 << 20,
) -> None:
    """Read a pipe to its end, frame by frame.

    Args:
        file: the pipe.
        take: takes each frame.
        overlong: where the parts of a frame go that is over ``most_bytes``; None: nowhere.
        most_bytes: the most of a frame that is held.
    """
    from ullage.doors.mcp.frames import FrameSplitter

    splitter = FrameSplitter(most_bytes)
    is_inside = False

    def give(piece: FramePiece) -> None:
        nonlocal is_inside
        if piece.is_frame:
            take(piece.data)
            return
        if not is_inside:
            action = "dropped" if overlong is None else "passed on unread"
            tell(f"a frame of more than {most_bytes:,} bytes was {action}")
        if overlong is not None:
            overlong.pass_on(piece, is_inside)
        is_inside = not piece.is_end

    while data := _read(file):
        for piece in splitter.feed(data):
            give(piece)
    for piece in splitter.end():
        give(piece)


def _read(file: int) -> bytes:
    try:
        return os.read(file, _BLOCK_BYTES)
    except OSError:  # the other end was torn off
        return b""


def _told(code: int) -> str:
    if code >= 0:
        return f"the server ended with exit code {code}"
    try:
        return f"the server was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the server was ended by signal {-code}"


def leave(code: int) -> NoReturn:
    """End as a server ended: with its exit code, or by its signal."""
    sys.stderr.flush()
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
