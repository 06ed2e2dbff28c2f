"""Where the SQLite file is, from what a user writes."""

from __future__ import annotations

import os
from pathlib import Path

from ullage.errors import ConfigError

__all__ = ["absolute", "default_path"]


def default_path() -> Path:
    """``ullage.db`` where the platform keeps the data of users."""
    from platformdirs import user_data_dir  # 10 ms that no other path needs

    return Path(user_data_dir("ullage", appauthor=False)) / "ullage.db"


def absolute(path: str | os.PathLike[str]) -> Path:
    """The path, independent of the working folder."""
    given = os.fspath(path)
    if not given or "\0" in given or given == ":memory:":
        raise ConfigError("store", "this is no path of a file", 'Name a file, or use "memory"')
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError("store", "no home folder is known for ~", "Write it out") from error
