"""A change of another program's file: shown first, made at once or not at all.

The file as it was is kept beside it, under its own name and a suffix. What is written replaces the
file in one step. A link stays a link, and the mode stays.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ullage.core.errors import ConfigError

BACKUP = ".before-ullage"


class Change(Struct, frozen=True):
    """What would be written to a client's file.

    Attributes:
        client: the name of the client.
        path: the file.
        old_text: what is in it; None: there is no such file.
        new_text: what would be; None: the file would be deleted.
        servers: the servers whose command changes.
        keeps_backup: whether the file as it is now is kept beside it; otherwise a backup that
            says the same as the new text is deleted.
        suffix: of the backup's name.
    """

    client: str
    path: Path
    old_text: str | None
    new_text: str | None
    servers: tuple[str, ...] = ()
    keeps_backup: bool = False
    suffix: str = BACKUP

    @property
    def diff(self) -> str:
        """The change, line by line, without the lines around it: there may be a key in them."""
        lines = difflib.unified_diff(
            (self.old_text or "").splitlines(),
            (self.new_text or "").splitlines(),
            str(self.path),
            "",
            "",
            "",
            0,
            "",
        )
        return "\n".join(lines)

    @property
    def backup(self) -> Path:
        """Where the file as it was is kept."""
        return backup_of(self.path, self.suffix)


def backup_of(path: Path, suffix: str = BACKUP) -> Path:
    """The place of a file's backup: beside it."""
    return path.with_name(path.name + suffix)


def called_as() -> tuple[str, ...]:
    """How a client is to call this program: by its whole path, for clients know few folders."""
    here = Path(sys.argv[0]).absolute()
    if here.name.lower().removesuffix(".exe") == "ullage" and os.access(
        here, os.X_OK
    ):
        return (str(here),)
    beside = shutil.which("ullage", path=str(Path(sys.executable).parent))
    return (beside,) if beside else (sys.executable, "-m", "ullage")


def candidates(files: Sequence[str]) -> list[Path]:
    """The paths of files, by the platform.

    Args:
        files: each begins with ``~`` (the user's home), ``CONFIG`` (where the platform keeps
            programs' settings) or ``XDG`` (``~/.config`` on any platform).
    """
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
    parted = [file.partition("/") for file in files]
    return [roots[root] / rest for root, _, rest in parted]


def text_of(client: str, path: Path) -> str:
    """The text of a client's file, line ends and all.

    Raises:
        ConfigError: it cannot be read, or is not written in UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            getattr(error, "strerror", None) or "it is not written in UTF-8"
        )
        raise ConfigError(
            f"{client}'s file", reason, "Nothing was changed."
        ) from None


def apply(change: Change) -> None:
    """Make a change, at once or not at all.

    Raises:
        ConfigError: the file is not as it was when the change was worked out, or it cannot be
            written.
    """
    try:
        _apply(change, change.path.resolve())  # a link stays a link
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise ConfigError(
            f"{change.client}'s file", reason, "Nothing was changed."
        ) from None


def _apply(change: Change, path: Path) -> None:
    if _data_of(path) != _encoded(change.old_text):
        raise ConfigError(
            f"{change.client}'s file",
            "it was changed in the meantime",
            "Run this again.",
        )
    for folder in (path.parent, change.path.parent):
        folder.mkdir(parents=True, exist_ok=True)
    if change.keeps_backup:
        _replace(change.backup, _encoded(change.old_text) or b"", path)
    if change.new_text is None:
        path.unlink()
    else:
        _replace(path, change.new_text.encode(), path)
    if not change.keeps_backup and (
        (_encoded(change.new_text) or b"") == _data_of(change.backup)
    ):
        change.backup.unlink()


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _data_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _replace(path: Path, data: bytes, like: Path) -> None:
    """Write a file beside its place and move it there, with the mode of another."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if like.is_file():
            shutil.copymode(like, name)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
