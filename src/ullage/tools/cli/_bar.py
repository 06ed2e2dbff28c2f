"""The progress of a replay: one bar, which counts all of its work.

Where standard error is no terminal, a line every ten seconds stands for the bar.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Generic, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
R = TypeVar("R")
_LINE_EVERY_S = 10.0
"""So long a log or a pipe goes without a line."""
_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    TextColumn("{task.percentage:>3.0f} %"),
    TextColumn("{task.fields[count]}"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


class WorkBar(Generic[R, T]):
    """Every run is read once, and then replayed so many times; each counts by its bytes.

    The bar is full when the last replay is done, in whatever order they end.

    Args:
        size_bytes: of all files.
        tries: how often each run is replayed.
        console: where it is drawn; None: standard error.
        line_every_s: seconds between the lines where the console is no terminal.
    """

    def __init__(
        self,
        size_bytes: int,
        tries: int,
        console: Console | None = None,
        *,
        line_every_s: float = _LINE_EVERY_S,
    ) -> None:
        console = console or Console(stderr=True)
        self._console = console
        self._line_every_s = line_every_s
        self._is_over = threading.Event()
        self._bar = Progress(
            *_COLUMNS,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tries = tries
        self._task = self._bar.add_task(
            "reading", total=size_bytes * (1 + tries), count="0 runs"
        )
        self._bytes_of = dict[int, int]()

    def __enter__(self) -> WorkBar[R, T]:
        self._bar.start()
        if not self._console.is_terminal:
            threading.Thread(target=self._write_lines, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._bar.stop()

    def _write_lines(self) -> None:
        """Write how far the work is, now and then, until it is over."""
        while not self._is_over.wait(self._line_every_s):
            # not by the console, which ends the process where its pipe is closed
            with suppress(OSError, ValueError):
                self._console.file.write(f"{self.line()}\n")
                self._console.file.flush()

    def line(self) -> str:
        """How far the work is, in a line."""
        task = self._bar.tasks[0]
        count = task.fields["count"]
        elapsed_s = task.elapsed or 0.0
        return f"{task.description}: {task.percentage:.0f} %, {count}, {elapsed_s:.0f} s"

    @property
    def share(self) -> float:
        """How much of the work is done, from 0 to 1."""
        task = self._bar.tasks[0]
        return task.percentage / 100

    def reading(self, runs: Iterable[tuple[str, R, int]]) -> Iterator[R]:
        """Pass on the runs that are read.

        Args:
            runs: each with the name of its file, and how many bytes were read by then.
        """
        earlier_bytes = 0
        for count, (_, run, read_bytes) in enumerate(runs, 1):
            weight = self._bytes_of.get(read_bytes, 0)
            self._bytes_of[read_bytes] = weight + read_bytes - earlier_bytes
            earlier_bytes = read_bytes
            self._bar.update(
                self._task, completed=read_bytes, count=f"{count:,} runs"
            )
            yield run

    def replaying(
        self, outcomes: Iterable[tuple[str, T, int]]
    ) -> Iterator[tuple[str, T]]:
        """Pass on what came out, each with the name of its file.

        Args:
            outcomes: each with the name of its file, and how many bytes were read with its run.
        """
        self._bar.refresh()  # what was read, before it is told otherwise
        read_bytes = sum(self._bytes_of.values())
        self._bar.update(
            self._task,
            description="replaying",
            total=read_bytes * (1 + self._tries),
            completed=read_bytes,
            count="0 replays",
        )
        for count, (name, outcome, at) in enumerate(outcomes, 1):
            self._bar.update(
                self._task,
                advance=self._bytes_of.get(at, 0),
                count=f"{count:,} replays",
            )
            yield name, outcome
