"""The page of a report: words and a table. It fetches nothing, runs nothing, holds no content."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
<div class="scrolls" tabindex="0" role="region" aria-label="By line">
<table>
<thead><tr><th scope="col">summed by</th>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
{notes}
</main>
</html>
"""


def page_of(
    sentences: Sequence[str],
    rows: Sequence[Sequence[str]],
    headings: Sequence[str],
    notes: Sequence[str],
) -> str:
    """The page.

    Args:
        sentences: what it says first, a paragraph each.
        rows: the cells of each line, its name first.
        headings: of the cells but the first.
        notes: what the headings mean.
    """
    lines = (
        "<tr>"
        + _cell("th", row[0], ' scope="row"')
        + "".join(_cell("td", cell) for cell in row[1:])
        for row in rows
    )
    return _PAGE.format(
        sentences="\n".join(_cell("p", sentence) for sentence in sentences),
        headings="".join(
            _cell("th", heading, ' scope="col"') for heading in headings
        ),
        rows="\n".join(f"{line}</tr>" for line in lines),
        notes="\n".join(_cell("p", note) for note in notes),
    )


def _cell(tag: str, text: str, more: str = "") -> str:
    return f"<{tag}{more}>{escape(text)}</{tag}>"
