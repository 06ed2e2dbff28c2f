"""Where logs lie: files and folders of this machine, or objects under an address.

``s3://bucket/folder`` (``gs://``, ``az://``) is listed and read by obstore, the extra ``s3``;
it takes keys, region and endpoint from the environment as the vendor's own tools do. An object
is fetched whole into a file without a name before it is read, for a zip is read from its end.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from msgspec import Struct

from ullage.errors import ConfigError

__all__ = ["LogFile", "is_address", "logs_under"]

_CHUNK_BYTES = 8 * 1024 * 1024


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


class _Object(Struct, frozen=True):
    store: Any
    key: str
    size_bytes: int

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def open(self) -> BinaryIO:
        held = tempfile.TemporaryFile()  # noqa: SIM115 - its reader closes it
        try:
            for chunk in self.store.get(self.key).stream(min_chunk_size=_CHUNK_BYTES):
                held.write(chunk)
        except Exception as error:  # noqa: BLE001 - kinds of the vendors; they may name keys
            held.close()
            raise OSError(0, f"the object store says {type(error).__name__}") from None
        held.seek(0)
        return held


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether this is an address of objects, and no path."""
    return isinstance(path, str) and "://" in path


def logs_under(path: str | os.PathLike[str]) -> list[LogFile]:
    """The file itself, or every file below a folder or prefix, sorted; hidden ones are left out.

    Raises:
        ConfigError: an address cannot be listed.
    """
    if is_address(path):
        return list(_objects(str(path)))
    here = Path(path)
    if here.is_dir():
        return [_OnDisk(p) for p in sorted(here.rglob("*")) if p.is_file() and _shown(p, here)]
    return [_OnDisk(here)] if here.is_file() else []


def _shown(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts)


def _objects(address: str) -> list[_Object]:
    """The object of an address, or those below it."""
    refused = partial(ConfigError, "the address of the logs")
    scheme, _, rest = address.partition("://")
    bucket, _, prefix = rest.partition("/")
    try:
        from obstore.store import from_url
    except ImportError:
        why = "obstore is not installed"
        raise refused(f"{why}, which reads object stores", "pip install 'ullage[s3]'.") from None
    try:
        store: Any = from_url(f"{scheme}://{bucket}/")
        chunks = list(store.list(prefix or None))
        found = [(each["path"], each["size"]) for chunk in chunks for each in chunk]
        if not found and prefix and not prefix.endswith("/"):
            alone = store.head(prefix)
            return [_Object(store, alone["path"], alone["size"])]
    except FileNotFoundError:
        return []
    except Exception as error:  # noqa: BLE001 - kinds of the vendors; they may name keys
        why = f"the object store cannot be listed ({type(error).__name__})"
        raise refused(why, "Look at its name, the endpoint and the keys it is given.") from None
    depth = len(prefix.rstrip("/"))
    return [
        _Object(store, key, size)
        for key, size in sorted(found)
        if not any(part.startswith(".") for part in key[depth:].split("/"))
    ]
