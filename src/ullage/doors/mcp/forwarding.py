"""Between a client on our own pipes and its servers: every frame to whom it is for.

The servers start first; what cuts is loaded while they do. The client has a thread, and so has each
server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.doors.mcp.stdio import (
    Pipe,
    Process,
    leave,
    pass_signals_on,
    pump,
    started,
    tell,
)

if TYPE_CHECKING:
    from ullage.doors.mcp.frames import FramePiece
    from ullage.doors.mcp.hub import Move
    from ullage.doors.mcp.relay import SessionRelay
    from ullage.doors.mcp.settings import McpSettings, ServerConfig
    from ullage.doors.mcp.spool import Spool
    from ullage.stores import Store

IN_FOLDER = "ullage.db"
"""The file in which a folder keeps what was cut in it."""


class Link(Protocol):
    """The connection to a server: a child process, or one behind a URL."""

    def send(self, frame: bytes) -> None:
        """Give it a frame."""

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """Give it a part of an overlong frame (`Pipe.pass_on`)."""

    def close(self) -> None:
        """Send no more frames."""

    def receive(
        self, take: Callable[[bytes], None], client: Pipe, most_bytes: int
    ) -> str:
        """Give each of its frames to ``take`` until it has ended; how that came."""

    def signal(self, number: int) -> None:
        """Pass a signal on to the server, or to what stands for it here."""

    @property
    def code(self) -> int:
        """Its exit code once it has ended, or minus the signal's number."""


def run(
    command: Sequence[str], settings: Callable[[], McpSettings]
) -> NoReturn:
    """Stand between the client on our own pipes and a server; leave as it leaves.

    Args:
        command: the server's program and its arguments.
        settings: gives the settings; called when the server has been started.

    Raises:
        ConfigError: the program cannot be started.
    """
    server = Process(started(command))
    try:
        chosen = settings()
        code = forward({"": server}, chosen)
    except BaseException:
        server.kill()
        raise
    leave(code)


def forward(links: Mapping[str, Link], settings: McpSettings) -> int:
    """Pass frames between the client and its servers until they have ended.

    Args:
        links: the servers by name; one alone may be without a name.
        settings: how results are cut, and where they are kept.

    Returns:
        The code of the first that did not end well, or 0.
    """
    from ullage.doors.mcp.relay import SessionRelay

    pass_signals_on(links.values())
    if find_spec("jsonschema_rs") is None:
        tell(
            f"structured results under some schemas go whole: {install_remedy('mcp')}"
        )
    store = open_store(settings)
    _Forwarding(
        links, SessionRelay(settings, store, tell), settings.most_frame_bytes
    ).run()
    store.close()
    return next((link.code for link in links.values() if link.code), 0)


class _Forwarding:
    """The client on our own pipes, and its servers."""

    def __init__(
        self, links: Mapping[str, Link], relay: SessionRelay, most_bytes: int
    ) -> None:
        self._links = links
        self._relay = relay
        self._most_bytes = most_bytes
        self._client = Pipe(1)
        self._only = next(iter(links.values())) if len(links) == 1 else None
        self._routing = (
            _Joined(links) if self._only is None else _Direct(self._only)
        )
        self._reasons: list[str] = []

    def run(self) -> None:
        threading.Thread(target=self._ask, daemon=True).start()
        main_server, *other_servers = self._links
        threads = [
            threading.Thread(target=self._hear, args=(name,))
            for name in other_servers
        ]
        for thread in threads:
            thread.start()
        self._hear(main_server)
        for thread in threads:
            thread.join()
        self._tell_unanswered("; ".join(self._reasons))

    def _ask(self) -> None:
        """The client's thread."""
        overlong = (
            None if self._only is None else _Unread(self._only, self._relay)
        )
        pump(0, self._from_client, overlong, self._most_bytes)
        for link in self._links.values():
            link.close()

    def _hear(self, name: str) -> None:
        """A server's thread."""
        link = self._links[name]
        take = partial(self._from_server, name)
        reason = link.receive(take, self._client, self._most_bytes)
        self._deliver(self._routing.ended(name, reason))
        self._reasons.append(f"{name}: {reason}" if name else reason)

    def _from_client(self, frame: bytes) -> None:
        on, back = self._relay.from_client(frame)
        self._client.write(back)
        if on:
            self._deliver(self._routing.from_client(on))

    def _from_server(self, name: str, frame: bytes) -> None:
        self._deliver(self._routing.from_server(name, frame))

    def _deliver(self, moves: Iterable[tuple[Link | None, bytes]]) -> None:
        for link, frame in moves:
            if link is None:
                self._client.write(self._relay.from_server(frame))
            else:
                link.send(frame)

    def _tell_unanswered(self, reason: str) -> None:
        unanswered = list(self._relay.ended(reason))
        for frame in unanswered:
            self._client.write(frame)
        if unanswered and self._client.is_open:
            calls = f"{len(unanswered):,} calls were"
            if len(unanswered) == 1:
                calls = "1 call was"
            tell(f"{reason}; {calls} not answered")


class _Unread:
    """Where the parts of an overlong frame go: to the only server, and the relay is told."""

    def __init__(self, link: Link, relay: SessionRelay) -> None:
        self._link = link
        self._relay = relay

    def pass_on(self, piece: FramePiece, is_inside: bool) -> None:
        """`ullage.doors.mcp.stdio.Overlong.pass_on`."""
        self._relay.ask_unread()
        self._link.pass_on(piece, is_inside)


class _Direct:
    """One server: every frame is its own."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def from_client(self, frame: bytes) -> Iterable[tuple[Link | None, bytes]]:
        return ((self._link, frame),)

    def from_server(
        self, name: str, frame: bytes
    ) -> Iterable[tuple[Link | None, bytes]]:
        return ((None, frame),)

    def ended(
        self, name: str, reason: str
    ) -> Iterable[tuple[Link | None, bytes]]:
        return ()


class _Joined:
    """Several servers, as one."""

    def __init__(self, links: Mapping[str, Link]) -> None:
        from ullage.doors.mcp.hub import Hub

        self._links = links
        self._hub = Hub(list(links), tell)

    def from_client(self, frame: bytes) -> Iterable[tuple[Link | None, bytes]]:
        return self._to(self._hub.from_client(frame))

    def from_server(
        self, name: str, frame: bytes
    ) -> Iterable[tuple[Link | None, bytes]]:
        return self._to(self._hub.from_server(name, frame))

    def ended(
        self, name: str, reason: str
    ) -> Iterable[tuple[Link | None, bytes]]:
        tell(f"{name}: {reason}")
        return self._to(self._hub.ended(name, reason))

    def _to(
        self, moves: Iterable[Move]
    ) -> Iterable[tuple[Link | None, bytes]]:
        return [
            (None if name is None else self._links[name], frame)
            for name, frame in moves
        ]


def run_several(settings: McpSettings) -> NoReturn:
    """Stand between the client and the servers of the settings, as one.

    Raises:
        ConfigError: there are none, or one cannot be started.
    """
    links: dict[str, Link] = {}
    if not settings.servers:
        raise ConfigError(
            "command",
            "there is no server",
            "Give one behind --, or several in a file for --config.",
        )
    try:
        for name, server in settings.servers.items():
            links[name] = link_of(server)
        code = forward(links, settings)
    except BaseException:
        for link in links.values():
            if isinstance(link, Process):
                link.kill()
        raise
    leave(code)


def link_of(server: ServerConfig) -> Link:
    """A server of the settings, started.

    Raises:
        ConfigError: it cannot be.
    """
    if server.url:
        from ullage.doors.mcp.remote import Remote

        return Remote(server.url, server.headers)
    return Process(
        started([server.command, *server.args], server.env, server.cwd)
    )


def open_store(settings: McpSettings) -> Spool | Store:
    """Where what is cut is kept: for this session, or in a file for later ones too.

    Raises:
        ConfigError: the path cannot be meant.
        StoreError: the file cannot be opened.
    """
    if settings.store is None:
        from ullage.doors.mcp.spool import Spool

        return Spool()
    from ullage.stores import BoundedStore, SqliteStore

    return BoundedStore(SqliteStore(store_at(settings.store) or None))


def store_at(path: str) -> str:
    """The store's file at a path: ``IN_FOLDER`` in it, if it is a folder."""
    return (
        str(Path(path) / IN_FOLDER) if path and Path(path).is_dir() else path
    )
