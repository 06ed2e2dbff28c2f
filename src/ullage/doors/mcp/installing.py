"""Put the proxy before the servers of a client, and take it away again.

A change is shown before it is made; the file as it was is kept beside it; what is written replaces
the file at once or not at all. `uninstall` gives the very bytes back if nothing else was changed in
between, and takes the proxy out of what is there otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ullage.core.errors import ConfigError
from ullage.doors.files.changing import (
    Change,
    backup_of,
    called_as,
    candidates,
    text_of,
)
from ullage.doors.files.jsonc import NotJson
from ullage.doors.mcp.allowing import allow, disallow, permit, unpermit
from ullage.doors.mcp.clients import (
    Client,
    changed,
    document_of,
    is_ours,
    servers_of,
    unwrapped,
    wrapped,
)


def file_of(client: Client) -> Path | None:
    """The client's file, if there is one."""
    return _first_of(client.files)


def permissions_of(client: Client) -> Path | None:
    """The client's file of permissions, if there is one."""
    return _first_of(client.permission_files)


def _first_of(files: Sequence[str]) -> Path | None:
    paths = candidates(files)
    return next((path for path in paths if path.is_file()), None)


def install(
    client: Client,
    path: Path,
    proxy_command: Sequence[str],
    only: Collection[str] = (),
) -> Change | None:
    """What puts the proxy before a client's servers; None if there is none to put it before.

    Args:
        client: the client.
        path: its file.
        proxy_command: how the proxy is called, with its options.
        only: the names of the servers; all of them if there are none.

    Raises:
        ConfigError: the file cannot be read, or has no server of a name that was given.
    """
    text = text_of(client.name, path)
    servers = servers_of(text, client)
    if missing := sorted({*only} - {*servers}):
        raise ConfigError(
            "server",
            f"{client.name} starts none called {', '.join(missing)}",
            f"It starts {', '.join(servers) or 'none'}.",
        )
    words = {
        name: wrapped(server_words, proxy_command)
        for name, server_words in servers.items()
        if not is_ours(server_words) and (not only or name in only)
    }
    is_first = not any(map(is_ours, servers.values()))
    return (
        _change(client, path, text, words, keeps_backup=is_first)
        if words
        else None
    )


def uninstall(client: Client, path: Path) -> Change | None:
    """The change that takes the proxy away from a client's servers; None if it is before none.

    Raises:
        ConfigError: the file cannot be read.
    """
    text = text_of(client.name, path)
    words = {
        n: unwrapped(server_words)
        for n, server_words in servers_of(text, client).items()
        if is_ours(server_words)
    }
    if not words:
        return None
    change = _change(client, path, text, words, keeps_backup=False)
    backup = backup_of(path)
    if backup.is_file():
        original = text_of(client.name, backup)
        with suppress(ConfigError):
            if document_of(original, client) == document_of(
                change.new_text or "", client
            ):
                return Change(
                    client.name,
                    path,
                    text,
                    original,
                    change.servers,
                    keeps_backup=False,
                )
    return change


def _change(
    client: Client,
    path: Path,
    text: str,
    words: Mapping[str, tuple[str, ...]],
    keeps_backup: bool,
) -> Change:
    new_text = changed(text, client, words)
    behind_us = [
        name for name, server_words in words.items() if is_ours(server_words)
    ]
    new_text = allow(new_text, client, behind_us)
    new_text = disallow(
        new_text, client, [name for name in words if name not in behind_us]
    )
    if servers_of(new_text, client) != {**servers_of(text, client), **words}:
        raise ConfigError(
            f"{client.name}'s file",
            "it is written in a way that cannot be changed safely",
            f"Put {' '.join(called_as())} mcp -- before the command by hand.",
        )
    return Change(
        client.name, path, text, new_text, tuple(words), keeps_backup
    )


def permit_recall(
    client: Client, path: Path, servers: Collection[str]
) -> Change | None:
    """What permits our tools where tools of these servers are permitted by name.

    Args:
        client: the client.
        path: its file of permissions.
        servers: the names of the servers that stand behind the proxy.

    Returns:
        None if nothing has to be permitted.

    Raises:
        ConfigError: the file cannot be read.
    """
    text = text_of(client.name, path)
    return _permissions_change(
        client, path, text, _read(client, permit, text, servers), servers
    )


def unpermit_recall(
    client: Client, path: Path, servers: Collection[str]
) -> Change | None:
    """What takes our tools out of the permissions again. Arguments and errors as above."""
    text = text_of(client.name, path)
    return _permissions_change(
        client, path, text, _read(client, unpermit, text, servers), servers
    )


def _read(
    client: Client,
    change: Callable[[str, Collection[str]], str],
    text: str,
    servers: Collection[str],
) -> str:
    try:
        return change(text, servers)
    except NotJson as error:
        raise ConfigError(
            f"{client.name}'s permissions",
            str(error),
            "Fix the file; nothing was changed.",
        ) from None


def _permissions_change(
    client: Client,
    path: Path,
    text: str,
    new_text: str,
    servers: Collection[str],
) -> Change | None:
    if new_text == text:
        return None
    return Change(
        client.name, path, text, new_text, tuple(servers), keeps_backup=False
    )
