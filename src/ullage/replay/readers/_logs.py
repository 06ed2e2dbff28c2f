"""Where logs lie: files and folders of this machine, or objects under ``s3://bucket/folder``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

__all__ = ["LogFile", "is_address", "logs_under"]


class LogFile(Protocol):
    """One file that may hold runs."""

    @property
    def name(self) -> str:
        """Its name, without its folders."""

    @property
    def size_bytes(self) -> int:
        """How long it is, compressed if it is."""

    def open(self) -> BinaryIO:
        """Its bytes, from the first on.

        Raises:
            OSError: it cannot be read.
        """


class _OnDisk(Struct, frozen=True):
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def size_bytes(self) -> int:
        return self.path.stat().st_size

    def open(self) -> BinaryIO:
        return self.path.open("rb")


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

        return [*objects_under(str(path))]
    here = Path(path)
    if here.is_dir():
        return [_OnDisk(p) for p in sorted(here.rglob("*")) if p.is_file() and _shown(p, here)]
    return [_OnDisk(here)] if here.is_file() else []


def _shown(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts)
