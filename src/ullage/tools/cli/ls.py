"""``ullage ls``: the conversations of a store, and what each saved."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, NamedTuple

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ullage.core.errors import StoreError
from ullage.session.decisions.entries import ConversationEntry
from ullage.session.stored.conversation import (
    conversation_of,
    conversations,
)
from ullage.stores import Store
from ullage.tools.cli._listing import add_beginnings, listing
from ullage.tools.cli._options import (
    ago,
    count_option,
    harmless,
    one_store,
    open_kept,
    print_json,
    store_argument,
    store_options,
    tenant_in,
    told_of_tenants,
)
from ullage.tools.replay.outlined import Savings, from_outline, savings_of
from ullage.tools.replay.tables import Figures

_RIGHT = ("requests", "tokens", "saved")
_NAMES = ("client", "model")
_COLUMNS = ("conversation", "last used", *_NAMES, *_RIGHT)
_NAME_CHARS = 20
_LEAST_NAME_CHARS = 12
_WIDE = 100
"""In fewer columns a client and a model have the least room."""


class _Row(NamedTuple):
    """A conversation, and what it came to; None where its outline is not whole."""

    entry: ConversationEntry
    savings: Savings | None


@click.command("ls", short_help="List the conversations of a store.")
@count_option(
    "-n", "--limit", least=1, default=20, help="List at most so many."
)
@store_argument
@store_options
def command(
    limit: int,
    place: str | None,
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """List the conversations of a store, newest first, with what each sent and saved.

    Tokens are those of all its prompts, as the provider reported them; what was saved is reckoned.
    """
    with closing(open_kept(one_store(place, address))) as store:
        tenant = tenant_in(store, tenant)
        entries = conversations(store, tenant)
        rows = [_row(store, tenant, entry) for entry in entries[:limit]]
        others = [] if rows else told_of_tenants(store, "ls", tenant)
    if as_json:
        print_json(list(map(_as_json, rows)))
        return
    if not rows:
        click.echo(
            "No conversation is kept for this tenant. A proxy keeps those of each credential "
            "under a name of its own, unless it is started with --tenant ''. A framework's adapter "
            "keeps those of each thread or session under a name of its own."
        )
        for line in others:
            click.echo(line)
        return
    console = Console(highlight=False)
    console.print(_table(rows, console.width))
    if len(entries) > limit:
        click.echo(
            f"{len(entries) - limit:,} older ones are not listed: --limit {len(entries)}"
        )


def _row(store: Store, tenant: str, entry: ConversationEntry) -> _Row:
    try:
        stored = conversation_of(store, tenant, entry.outline)
    except StoreError:  # one that is damaged does not hide the others
        return _Row(entry, None)
    trace = from_outline(stored).trace
    return _Row(entry, savings_of(stored, trace))


def _as_json(row: _Row) -> dict[str, Any]:
    outline, savings = row.entry.outline, row.savings
    return {
        "name": outline.name,
        "used_s": row.entry.used_s,
        "client": outline.agent,
        "model": outline.model,
        "client_session": outline.client_session,
        "title": outline.title,
        "requests": savings and savings.requests,
        "sent_tokens": savings and savings.sent_tokens,
        "raw_tokens": savings and savings.raw_tokens,
    }


def _table(rows: list[_Row], width: int) -> Figures:
    now_s = time.time()
    cells = [_cells(row, now_s) for row in rows]
    table = listing(("client", "requests", "last used"))
    most_name = _NAME_CHARS if width >= _WIDE else _LEAST_NAME_CHARS
    for index, column in enumerate(_COLUMNS):
        justify: Any = "right" if column in _RIGHT else "left"
        is_name = column in _NAMES
        widest = max(len(column), *(cell_len(row[index]) for row in cells))
        table.add_column(
            column,
            justify=justify,
            no_wrap=True,
            overflow="ellipsis",
            # a figure that is cut short is another figure
            min_width=len(column) if is_name else widest,
            max_width=most_name if is_name else None,
        )
    add_beginnings(table)
    for row, texts in zip(rows, cells, strict=True):
        title = harmless(row.entry.outline.title)
        table.add_row(*map(Text, texts), Text(title))
    return table


def _cells(row: _Row, now_s: float) -> tuple[str, ...]:
    """What stands in a row, in the order of the columns, without how it begins."""
    outline, savings = row.entry.outline, row.savings
    figures = ("–", "–", "–")
    if savings is not None:
        figures = (
            f"{savings.requests:,}",
            f"{savings.sent_tokens:,}",
            f"{savings.saved_share:.0%}",
        )
    return (
        outline.name,
        ago(now_s - row.entry.used_s),
        harmless(outline.agent) or "–",
        harmless(outline.model),
        *figures,
    )
