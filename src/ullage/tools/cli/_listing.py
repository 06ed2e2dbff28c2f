"""Tables whose rows end with how a text begins, in the room that is left."""

from __future__ import annotations

from collections.abc import Sequence

from ullage.tools.replay.tables import Figures


def listing(optional: Sequence[str]) -> Figures:
    """A table as wide as the terminal.

    Args:
        optional: the headings of columns that a narrow terminal does without, the first of them
            first.
    """
    table = Figures(
        box=None, pad_edge=False, expand=True, caption_justify="left"
    )
    table.optional = optional
    return table


def add_beginnings(table: Figures) -> None:
    """Add the last column. What has no room in it is cut."""
    heading = "begins"
    table.add_column(
        heading,
        no_wrap=True,
        ratio=1,
        min_width=len(heading),
        overflow="ellipsis",
    )
