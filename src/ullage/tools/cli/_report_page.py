"""The page of a report: words and a table. It fetches nothing, runs nothing, holds no content."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ullage: what requests cost</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem }}
body {{ max-width: 64rem }}
.scrolls {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: .3rem .6rem; text-align: right; font-variant-numeric: tabular-nums }}
th:first-child, td:first-child {{ text-align: left; overflow-wrap: anywhere }}
tr {{ border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }}
</style>
<main>
<h1>What requests cost</h1>
{sentences}
{tables}
{notes}
</main>
</html>
"""

_TABLE = """<div class="scrolls" tabindex="0" role="region" aria-label="By {first}">
<table>
<thead><tr><th scope="col">{first}</th>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""


class PageTable(NamedTuple):
    """A table of the page.

    Attributes:
        first: the heading of its first column.
        headings: of the others.
        rows: the cells of each line, its name first.
    """

    first: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def page_of(
    sentences: Sequence[str], *tables: PageTable, notes: Sequence[str]
) -> str:
    """The page.

    Args:
        sentences: what it says first, a paragraph each.
        tables: those that have no lines are left out.
        notes: what the headings mean.
    """
    return _PAGE.format(
        sentences="\n".join(_cell("p", sentence) for sentence in sentences),
        tables="\n".join(_table(table) for table in tables if table.rows),
        notes="\n".join(_cell("p", note) for note in notes),
    )


def _table(table: PageTable) -> str:
    lines = (
        "<tr>"
        + _cell("th", row[0], ' scope="row"')
        + "".join(_cell("td", cell) for cell in row[1:])
        for row in table.rows
    )
    return _TABLE.format(
        first=escape(table.first),
        headings="".join(
            _cell("th", heading, ' scope="col"') for heading in table.headings
        ),
        rows="\n".join(f"{line}</tr>" for line in lines),
    )


def _cell(tag: str, text: str, more: str = "") -> str:
    return f"<{tag}{more}>{escape(text)}</{tag}>"
