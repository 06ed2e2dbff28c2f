"""Tables for a terminal: they fit, nothing is cut off, and what the headings mean stands below."""

import io

from rich.console import Console

from ullage.replay.columns import WIDTH, table_with

LONG = "a-file-of-recorded-runs-" * 5


def printed(table):
    console = Console(width=WIDTH, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_a_long_name_is_folded_and_every_figure_stays_whole():
    figures = [f"{number:,}" for number in range(10**6, 10**6 + 8)]
    table = table_with("sums", ("runs of",), [f"peak\n{number}" for number in range(8)])
    table.add_row(LONG, *figures)
    text = printed(table)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" not in text
    assert all(figure in text for figure in figures)
    assert LONG in "".join(line[:WIDTH].split("  ")[0].strip() for line in text.splitlines())


def test_what_the_headings_mean_stands_below():
    table = table_with("sums", ("runs of",), ("peak", "gates"), told=("peak: the largest", "gates"))
    table.add_row("one", "12,345", "kept, and one more")
    lines = [line.strip() for line in printed(table).splitlines() if line.strip()]
    assert lines[0] == "sums"
    assert lines[-2:] == ["peak: the largest", "gates"]
