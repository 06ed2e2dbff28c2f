"""Where logs lie: files and folders of this machine, or objects under ``s3://bucket/folder``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

__all__ = ["LogFile", "is_address", "logs_under"]


class LogFile(Struct, frozen=True):
    """One file that may hold runs.

    Attributes:
        name: its name, without its folders.
        size_bytes: how long it is, compressed if it is.
        open: its bytes, from the first on; raises OSError where it cannot be read.
    """

    name: str
    size_bytes: int
    open: Callable[[], BinaryIO]


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether this is an address of objects, and no path."""
    return isinstance(path, str) and "://" in path


def logs_under(path: str | os.PathLike[str]) -> list[LogFile]:
    """The file itself, or every file below a folder or prefix, sorted; hidden ones are left out.

    Raises:
        ConfigError: an address cannot be listed.
    """
    if is_address(path):
        from ullage.replay.readers._objects import objects_under

        return objects_under(str(path))
    here = Path(path)
    if here.is_dir():
        return [_on_disk(p) for p in sorted(here.rglob("*")) if p.is_file() and _shown(p, here)]
    return [_on_disk(here)] if here.is_file() else []


def _on_disk(path: Path) -> LogFile:
    return LogFile(path.name, path.stat().st_size, lambda: path.open("rb"))


def _shown(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts)
