"""A server as a child process, and the two pipes between it and the client.

The server starts first; what cuts is loaded while it does. Its stderr is ours, so that nothing it
writes there waits for us. Each direction has a thread; a pipe is read in blocks, never by line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from ullage.errors import ConfigError

if TYPE_CHECKING:
    from ullage.mcp.frames import Piece
    from ullage.mcp.relay import Relay
    from ullage.mcp.settings import Settings
    from ullage.stores import Blobs

__all__ = ["Pipe", "leave", "open_store", "pass_signals_on", "pump", "run", "started", "tell"]

_BLOCK_BYTES = 1 << 16
_PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def tell(line: str) -> None:
    """A line for whoever looks after the proxy, on standard error."""
    try:
        sys.stderr.write(f"ullage mcp: {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def run(command: Sequence[str], settings: Callable[[], Settings]) -> NoReturn:
    """Stand between the client on our own pipes and a server; leave as it leaves.

    Args:
        command: the server's program and its arguments.
        settings: gives the settings; called when the server has been started.

    Raises:
        ConfigError: the program cannot be started.
    """
    server = started(command)
    try:
        from ullage.mcp.relay import Relay

        chosen = settings()
        relay = Relay(chosen, open_store(chosen), tell)
        _forward(server, relay, chosen.most_frame_bytes)
    except BaseException:
        server.kill()
        raise
    leave(server.returncode)


def started(
    command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
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
            f"the server cannot be started ({error.strerror})",
            "Give a program and its arguments: ullage mcp -- npx some-server.",
        ) from None
    return server


def pass_signals_on(servers: Iterable[subprocess.Popen[bytes]]) -> None:
    """Have these processes get the signals that this one gets."""
    servers = tuple(servers)

    def pass_on(number: int, frame: object) -> None:
        for server in servers:
            if server.returncode is None:
                server.send_signal(number)

    for name in _PASSED_ON:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), pass_on)


def open_store(settings: Settings) -> Blobs:
    """Where what is cut is kept: for this session, or in a file for later ones too.

    Raises:
        ConfigError: the path cannot be meant.
        StoreError: the file cannot be opened.
    """
    if settings.store is None:
        from ullage.mcp.spool import Spool

        return Spool()
    from ullage.stores import BoundedStore, SqliteStore

    return BoundedStore(SqliteStore(settings.store or None))


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

    def pass_on(self, piece: Piece, is_inside: bool) -> None:
        """A part of an overlong frame; nobody else writes from its first part to its last."""
        if not is_inside:
            self._lock.acquire()
        self.write(piece.data)
        if piece.is_end:
            self._lock.release()


def _forward(server: subprocess.Popen[bytes], relay: Relay, most_bytes: int) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    to_client, to_server = Pipe(1), Pipe(server.stdin.fileno())
    pass_signals_on((server,))

    def from_client(frame: bytes) -> None:
        on, back = relay.from_client(frame)
        to_server.write(on)
        to_client.write(back)

    def ask() -> None:
        pump(0, from_client, to_server, most_bytes)
        server.stdin.close()  # type: ignore[union-attr]

    threading.Thread(target=ask, daemon=True).start()
    pump(
        server.stdout.fileno(),
        lambda f: to_client.write(relay.from_server(f)),
        to_client,
        most_bytes,
    )
    code = server.wait()
    why = _told(code)
    unanswered = list(relay.ended(why))
    for frame in unanswered:
        to_client.write(frame)
    if unanswered and to_client.is_open:
        calls = "1 call was" if len(unanswered) == 1 else f"{len(unanswered):,} calls were"
        tell(f"{why}; {calls} not answered")


def pump(
    file: int,
    take: Callable[[bytes], None],
    overlong: Pipe | None = None,
    most_bytes: int = 64 << 20,
) -> None:
    """Read a pipe to its end, frame by frame.

    Args:
        file: the pipe.
        take: takes each frame.
        overlong: where the parts of a frame go that is over ``most_bytes``; None: nowhere.
        most_bytes: the most of a frame that is held.
    """
    from ullage.mcp.frames import Splitter

    splitter, is_inside = Splitter(most_bytes), False

    def give(piece: Piece) -> None:
        nonlocal is_inside
        if piece.is_frame:
            take(piece.data)
            return
        if not is_inside:
            done = "dropped" if overlong is None else "passed on unread"
            tell(f"a frame of more than {most_bytes:,} bytes was {done}")
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
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL,) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
