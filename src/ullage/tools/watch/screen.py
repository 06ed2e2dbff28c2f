"""What a store holds, on a terminal of 60 columns and more."""

from __future__ import annotations

import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ullage.session.picture.terminal import columns
from ullage.session.picture.values import short
from ullage.tools.watch.reading import LedgerEvent, StoreSnapshot

_COLOURS = {"observed": "bright_black", "cut": "red", "truncated": "yellow"}
_HEAD_LINES = 5


class Screen:
    """A store as it is now: what it holds, the newest prompts, and what happened last.

    Args:
        name: the file's.
        seen: what it holds; None: there is no file yet.
    """

    def __init__(self, name: str, seen: StoreSnapshot | None) -> None:
        self.name = name
        self.seen = seen

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        seen = self.seen
        if seen is None:
            yield Text(
                f"{self.name}: waiting for a session to begin · Ctrl-C ends this"
            )
            return
        yield Text.assemble(
            (self.name, "bold"),
            f" · {_counted(seen.conversations, 'conversation')}",
        )
        size = f"{seen.size_bytes / 1_000_000:,.1f} MB"
        yield Text(f"{_counted(seen.outputs, 'output')} set aside, {size}")
        if prompts := seen.prompts:
            drawn = columns(
                prompts, max(prompts), max(options.max_width - 20, 10)
            )
            yield Text.assemble(
                "prompts ", (drawn, "blue"), f" {short(prompts[-1])} tokens"
            )
        yield Text()
        room = options.height or console.height
        yield _table(seen.events[-max(room - _HEAD_LINES, 1) :])


def _table(events: tuple[LedgerEvent, ...]) -> Table:
    """A line each, the newest last; what is too long for the terminal ends in an ellipsis."""
    table = Table.grid(padding=(0, 2), expand=True)
    for justify in ("left", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for event in events:
        clock = time.strftime("%H:%M:%S", time.localtime(event.at_s))
        sizes = short(event.tokens_after)
        if event.tokens_before:
            sizes = f"{short(event.tokens_before)} → {sizes}"
        kind = Text(event.kind, style=_COLOURS.get(event.kind, "green"))
        table.add_row(clock, kind, sizes, Text(event.text))
    return table


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"
