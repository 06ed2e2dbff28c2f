"""The page of a report: words and tables. It fetches nothing, runs nothing, holds no content."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ullage.tools.replay.report.live import style_of_figures

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ullage: what requests cost</title>
<style>
{style}
:root {{ color-scheme: light dark }}
section p {{ margin: 10px 0 0; max-width: 76ch }}
.scrolls {{ overflow-x: auto; margin-top: 12px }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ padding: 5px 10px; text-align: right; font-variant-numeric: tabular-nums }}
th:first-child {{ text-align: left; min-width: 9rem; overflow-wrap: anywhere }}
tr {{ border-bottom: 1px solid var(--line) }}
</style>
<header class="top">
<div>
<p class="brand" aria-hidden="true"><span class="barrel"></span>ullage</p>
<h1>What requests cost</h1>
<p class="lead">{days}</p>
</div>
</header>
<main>
<section aria-label="Sums">
<dl class="sums">
{figures}
</dl>
{sentences}
</section>
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


class Figure(NamedTuple):
    """A sum at the head of the page.

    Attributes:
        name: what it is.
        value: as it is shown.
        meaning: in a few words: of what it is, and how it is known.
    """

    name: str
    value: str
    meaning: str


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


def page_of(
    days: str,
    figures: Sequence[Figure],
    sentences: Sequence[str],
    tables: Sequence[PageTable],
) -> str:
    """The page.

    Args:
        days: what it is a page of.
        figures: the sums that it shows first.
        sentences: what it says of them, a paragraph each.
        tables: those that have no lines are left out.
    """
    return _PAGE.format(
        style=style_of_figures(),
        days=escape(days),
        figures="\n".join(_figure(figure) for figure in figures),
        sentences="\n".join(_cell("p", sentence) for sentence in sentences),
        tables="\n".join(_table(table) for table in tables if table.rows),
    )


def _figure(figure: Figure) -> str:
    name = _cell("dt", figure.name)
    meaning = _cell("small", figure.meaning)
    return f"<div>{name}<dd>{escape(figure.value)} {meaning}</dd></div>"


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
        notes="\n".join(
            _cell("p", note, ' class="hint"') for note in table.notes
        ),
    )


def _cell(tag: str, text: str, more: str = "") -> str:
    return f"<{tag}{more}>{escape(text)}</{tag}>"
