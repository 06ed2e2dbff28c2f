"""A table for a terminal: names to the left, figures to the right, and below it what they mean."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

__all__ = ["WIDTH", "percent", "table_with"]

WIDTH = 120
"""Characters that every table fits in; a longer name is folded."""


def table_with(
    title: str, names: Sequence[str], figures: Sequence[str], *, notes: Sequence[str] = ()
) -> Table:
    """A table without rows.

    Args:
        title: its title.
        names: the headings of the first columns.
        figures: those of the others. A heading may have two lines.
        notes: lines below it that say what the headings mean.
    """
    table = Table(
        title=f"\n{title}",
        title_justify="left",
        caption="\n".join(notes) or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for heading in names:
        table.add_column(heading, overflow="fold")
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def percent(share: float | None, unknown: str = "") -> str:
    """A share as a cell; ``unknown`` where there is none."""
    return unknown if share is None else f"{share:.0%}"
