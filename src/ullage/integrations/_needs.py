"""What an adapter says where its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the imports of a framework: one that is missing is told with what to install.

    Args:
        extra: of ours, which installs it.

    Raises:
        ModuleNotFoundError: as Python raises it, with the remedy.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "ullage":
            raise
        said = f"{missing.name} is not installed: pip install 'ullage[{extra}]'"
        raise ModuleNotFoundError(said, name=missing.name) from missing
