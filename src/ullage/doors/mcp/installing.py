"""Put the proxy before the servers of a client, and take it away again.

A change is shown before it is made; the file as it was is kept beside it; what is written replaces
the file at once or not at all. `uninstall` gives the very bytes back if nothing else was changed in
between, and takes the proxy out of what is there otherwise.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ullage.core.errors import ConfigError
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
from ullage.doors.mcp.jsonc import NotJson

_BACKUP = ".before-ullage"


class Change(Struct, frozen=True):
    """What would be written to a client's file.

    Attributes:
        client: whose.
        path: the file.
        old_text: what is in it.
        new_text: what would be.
        servers: the servers whose command changes.
        keeps_backup: whether the file as it is now is kept beside it; otherwise the one that is
            there goes.
    """

    client: str
    path: Path
    old_text: str
    new_text: str
    servers: tuple[str, ...]
    keeps_backup: bool

    @property
    def diff(self) -> str:
        """The change, line by line."""
        lines = difflib.unified_diff(
            self.old_text.splitlines(),
            self.new_text.splitlines(),
            str(self.path),
            "",
            "",
            "",
            1,
            "",
        )
        return "\n".join(lines)


def called_as() -> tuple[str, ...]:
    """How a client is to call this program: by its whole path, for clients know few folders."""
    here = Path(sys.argv[0]).absolute()
    if here.name.lower().removesuffix(".exe") == "ullage" and os.access(
        here, os.X_OK
    ):
        return (str(here),)
    beside = shutil.which("ullage", path=str(Path(sys.executable).parent))
    return (beside,) if beside else (sys.executable, "-m", "ullage")


def file_of(client: Client) -> Path | None:
    """The client's file, if there is one."""
    return _first_of(client.files)


def permissions_of(client: Client) -> Path | None:
    """The client's file of permissions, if there is one."""
    return _first_of(client.permission_files)


def _first_of(files: Sequence[str]) -> Path | None:
    home = Path.home()
    if sys.platform == "darwin":
        config = home / "Library/Application Support"
    elif sys.platform == "win32":
        config = Path(os.environ.get("APPDATA", home / "AppData/Roaming"))
    else:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    roots = {"~": home, "CONFIG": config, "XDG": home / ".config"}
    if sys.platform not in ("darwin", "win32"):
        roots["XDG"] = config
    for file in files:
        root, _, rest = file.partition("/")
        if (roots[root] / rest).is_file():
            return roots[root] / rest
    return None


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
    text = _text(client, path)
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
    text = _text(client, path)
    words = {
        n: unwrapped(server_words)
        for n, server_words in servers_of(text, client).items()
        if is_ours(server_words)
    }
    if not words:
        return None
    change = _change(client, path, text, words, keeps_backup=False)
    backup = _backup_of(path)
    if backup.is_file():
        original = _text(client, backup)
        with suppress(ConfigError):
            if document_of(original, client) == document_of(
                change.new_text, client
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
    text = _text(client, path)
    return _permissions_change(
        client, path, text, _read(client, permit, text, servers), servers
    )


def unpermit_recall(
    client: Client, path: Path, servers: Collection[str]
) -> Change | None:
    """What takes our tools out of the permissions again. Arguments and errors as above."""
    text = _text(client, path)
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
            "Mend the file; nothing was changed.",
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


def _text(client: Client, path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            getattr(error, "strerror", None) or "it is not written in UTF-8"
        )
        raise ConfigError(
            f"{client.name}'s file", reason, "Nothing was changed."
        ) from None


def apply(change: Change) -> None:
    """Make a change, at once or not at all.

    Raises:
        ConfigError: the file is not as it was when the change was worked out, or it cannot be
            written.
    """
    path = change.path.resolve()  # a link stays a link
    try:
        if path.read_bytes() != change.old_text.encode():
            raise ConfigError(
                f"{change.client}'s file",
                "it was changed in the meantime",
                "Run this again.",
            )
        if change.keeps_backup:
            _replace(_backup_of(change.path), change.old_text.encode(), path)
        _replace(path, change.new_text.encode(), path)
        if not change.keeps_backup and change.new_text.encode() == _kept(
            change.path
        ):
            _backup_of(change.path).unlink()
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise ConfigError(
            f"{change.client}'s file", reason, "Nothing was changed."
        ) from None


def _kept(path: Path) -> bytes | None:
    backup = _backup_of(path)
    return backup.read_bytes() if backup.is_file() else None


def _backup_of(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def _replace(path: Path, data: bytes, like: Path) -> None:
    """Write a file beside its place and move it there, with another's mode."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(like, name)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
