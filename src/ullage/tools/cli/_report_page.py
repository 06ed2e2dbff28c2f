"""The page of a report: words and tables. It fetches nothing, runs nothing, holds no content."""

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
body {{ max-width: 80rem }}
.scrolls {{ overflow-x: auto }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: .3rem .6rem; text-align: right; font-variant-numeric: tabular-nums }}
th:first-child {{ text-align: left; min-width: 9rem; overflow-wrap: anywhere }}
tr {{ border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }}
</style>
<main>
<h1>What requests cost</h1>
{sentences}
{tables}
</main>
</html>
"""

_TABLE = """<section>
<h2>{title}</h2>
<div class="scrolls" tabindex="0" role="region" aria-label="{title}">
<table>
<thead><tr>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
{notes}
</section>"""


class PageTable(NamedTuple):
    """A table of the page.

    Attributes:
        title: what it shows.
        headings: of its columns.
        rows: the cells of each line, its name first.
        notes: what the headings mean.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def page_of(sentences: Sequence[str], *tables: PageTable) -> str:
    """The page.

    Args:
        sentences: what it says first, a paragraph each.
        tables: those that have no lines are left out.
    """
    return _PAGE.format(
        sentences="\n".join(_cell("p", sentence) for sentence in sentences),
        tables="\n".join(_table(table) for table in tables if table.rows),
    )


def _table(table: PageTable) -> str:
    lines = (
        "<tr>"
        + _cell("th", row[0], ' scope="row"')
        + "".join(_cell("td", cell) for cell in row[1:])
        for row in table.rows
    )
    return _TABLE.format(
        title=escape(table.title),
        headings="".join(
            _cell("th", heading, ' scope="col"') for heading in table.headings
        ),
        rows="\n".join(f"{line}</tr>" for line in lines),
        notes="\n".join(_cell("p", note) for note in table.notes),
    )


def _cell(tag: str, text: str, more: str = "") -> str:
    return f"<{tag}{more}>{escape(text)}</{tag}>"
