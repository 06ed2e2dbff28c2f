"""Pictures in characters, for a terminal of 60 columns and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from rich.text import Text

from ullage.session.picture.values import KINDS, OneWindow, OverCalls, short

_COLUMNS = 40
_HEIGHTS = "▁▂▃▄▅▆▇█"
_COLOURS = ("magenta", "cyan", "green", "bright_black", "yellow")


def text(picture: OneWindow | OverCalls) -> Text:
    """A picture as lines, the last without an end."""
    lines = [Text(picture.title, style="bold"), Text(picture.summary)]
    lines += (
        _bars(picture) if isinstance(picture, OneWindow) else _rows(picture)
    )
    return Text("\n").join(lines)


def columns(sizes: Sequence[int], most: int, width: int = _COLUMNS) -> str:
    """Sizes as columns side by side; of more than fit, the largest of each stretch."""
    count = min(len(sizes), width)
    ends = (
        [at * len(sizes) // count for at in range(count + 1)] if count else []
    )
    tops = (max(sizes[start:stop]) for start, stop in pairwise(ends))
    top_level = len(_HEIGHTS) - 1
    return "".join(
        _HEIGHTS[min(top_level, round(top_level * top / max(most, 1)))]
        for top in tops
    )


def _rows(picture: OverCalls) -> list[Text]:
    """The history and what was sent, on one scale."""
    most = max(*picture.history, *picture.views, 0) if picture.views else 0
    rows = (
        ("history", picture.history, "bright_black"),
        ("sent", picture.views, "blue"),
    )
    return [
        Text.assemble(
            f"{name:<8}",
            (columns(sizes, most), colour),
            f" {short(sizes[-1])}",
        )
        for name, sizes, colour in rows
        if sizes
    ]


def _bars(picture: OneWindow) -> list[Text]:
    """The history and what is shown of it, on one scale, and what the colours say."""
    most = max(sum(picture.history.values()), sum(picture.view.values()), 1)
    lines = [
        _bar("history", picture.history, most),
        _bar("sent", picture.view, most),
    ]
    for kind, colour in zip(KINDS, _COLOURS, strict=True):
        if picture.history[kind] or picture.view[kind]:
            full = short(picture.history[kind])
            visible = short(picture.view[kind])
            sizes = (
                f"{full:>6} → {visible}" if full != visible else f"{full:>6}"
            )
            lines.append(
                Text.assemble(" " * 8, ("█", colour), f" {kind:<17}{sizes}")
            )
    return lines


def _bar(name: str, sizes: Mapping[str, int], most: int) -> Text:
    line = Text(f"{name:<8}")
    ends = [0, *accumulate(sizes[kind] for kind in KINDS)]
    for (start, stop), colour in zip(pairwise(ends), _COLOURS, strict=True):
        width = round(_COLUMNS * stop / most) - round(_COLUMNS * start / most)
        line.append("█" * width, style=colour)
    return line.append(f" {short(ends[-1])}")
