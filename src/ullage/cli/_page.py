"""Write the page of a replay or of a session. It holds the conversation, so it is private."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ullage import __version__
from ullage.errors import ConfigError
from ullage.replay.compare.floors import Floor
from ullage.replay.compare.table import Row
from ullage.replay.cost.prices import Profile
from ullage.replay.report import Picture, page_of

__all__ = ["command_of", "save", "write_page"]


def write_page(
    path: Path,
    rows: Sequence[Row],
    profiles: Sequence[Profile],
    floors: Sequence[Floor],
    pictures: Sequence[Picture],
    command: str,
) -> None:
    """Write the page of a replay.

    Raises:
        ConfigError: the file cannot be written.
    """
    totals = {(row.room, row.policy): row for row in rows}
    runs = max(row.runs for row in totals.values())
    notes = []
    if len(pictures) < runs:
        notes.append(
            f"{len(pictures):,} of {runs:,} runs are drawn turn by turn: those with the largest "
            "requests that were replayed now and not taken over from a file (--draw)."
        )
    page = page_of(
        "What would a policy have done?",
        f"{_many(runs, 'recorded run')} replayed call by call, without any model. "
        f"ullage {__version__}, {datetime.now(UTC):%d %B %Y}.",
        pictures=pictures,
        rows=rows,
        profiles=profiles,
        floors=floors,
        command=command,
        notes=notes,
    )
    save(path, page)


def command_of(name: str, paths: Iterable[Path], options: Mapping[str, object]) -> str:
    """A command as one types it: its paths, then its options, those not given left out."""
    words = [*name.split(), *map(str, paths)]
    for option, value in options.items():
        for each in value if isinstance(value, tuple) else (value,) if value else ():
            words += [option] if each is True else [option, str(each)]
    return shlex.join(words)


def save(path: Path, page: str) -> None:
    """Write a page for its owner alone to read.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(page.encode())
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ConfigError(
            "--html", f"the page cannot be written ({why})", "Give another path."
        ) from None


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
