"""``ullage window``: the conversations of a store, and what stands in the window of one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ullage.core.history.hand import name_of
from ullage.core.history.outline import head_of
from ullage.core.turn.hand import described
from ullage.session.decisions.entries import ConversationEntry
from ullage.session.stored.conversation import (
    Leaf,
    StoredConversation,
    conversation,
    conversations,
)
from ullage.session.stored.why import author_of, why_of
from ullage.tools.cli import why
from ullage.tools.cli._listing import add_beginnings, listing
from ullage.tools.cli._options import (
    ago,
    harmless,
    is_store,
    one_store,
    open_kept,
    print_json,
    store_options,
    tenant_in,
    told_of_tenants,
)
from ullage.tools.hand.described import as_window, told_of_left
from ullage.tools.replay.tables import Figures

_NARROW = 80
"""In fewer columns a heading is shorter."""
_LEAST_NAME = 7
_NAME_PART = 4
"""A tool or a model has at most this part of the columns, a fourth."""
_STATE_PART = 4
"""How a text is shown has as much."""
_PIPE_WIDTH = 120
"""Columns where nobody looks at a terminal."""


@click.command(
    "window", short_help="Show what is in the window of a conversation."
)
@click.argument("name", required=False)
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Show every text; else runs of the same kind are one line.",
)
@click.option(
    "--why",
    "is_why",
    is_flag=True,
    help="Show what left the window, and why the prompt cache broke.",
)
@store_options
def command(
    name: str | None,
    is_all: bool,
    is_why: bool,
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """List the conversations of a store, newest first; with NAME, show one as it stands.

    NAME is the short name that the list shows, such as c7k2m9xqa, or "last" for the newest; a path
    is taken for the store. Each
    text has a short name, such as m12.2, which `ullage pin`, `drop` and `restore` take; each batch
    and decision has one too, which `ullage undo` takes. With --why and no NAME the newest is shown.
    """
    if name is not None and is_store(name):
        name, address = None, one_store(name, address)
    with closing(open_kept(address)) as store:
        tenant = tenant_in(store, tenant)
        if name is None and not is_why:
            listed = conversations(store, tenant)
            if as_json:
                print_json([_as_listed(item) for item in listed])
            else:
                _print_list(listed)
                for line in (
                    () if listed else told_of_tenants(store, "window", tenant)
                ):
                    click.echo(line)
            return
        stored = conversation(store, tenant, None if name == "last" else name)
    if stored.left_for:
        click.echo(told_of_left(stored), err=True)
    if is_why:
        record = why_of(stored)
        if as_json:
            print_json(why.as_json(record))
        else:
            why.show(record)
        return
    if as_json:
        print_json(as_window(stored))
        return
    _print_window(stored, is_all=is_all)


# ── the list ─────────────────────────────────────────────────────────────────────────────


def _as_listed(item: ConversationEntry) -> dict[str, Any]:
    outline = item.outline
    return {
        "name": outline.name,
        "used_s": item.used_s,
        "messages": outline.length,
        "tokens": outline.tokens,
        "limit_tokens": outline.limit_tokens,
        "model": outline.model,
        "title": outline.title,
    }


def _print_list(listed: list[ConversationEntry]) -> None:
    if not listed:
        click.echo("No conversation is outlined for this tenant.")
        return
    table = listing(("last used", "messages"))
    console = _console()
    for column in ("conversation", "last used", "messages", "tokens"):
        justify: Any = "right" if column in ("messages", "tokens") else "left"
        table.add_column(column, justify=justify, no_wrap=True)
    table.add_column(
        "model", overflow="fold", max_width=console.width // _NAME_PART
    )
    add_beginnings(table)
    now_s = time.time()
    for item in listed:
        outline = item.outline
        table.add_row(
            outline.name,
            ago(now_s - item.used_s),
            f"{outline.length:,}",
            f"{outline.tokens:,}",
            Text(harmless(outline.model)),
            Text(harmless(outline.title)),
        )
    console.print(table)


def _console() -> Console:
    """The terminal; a pipe has no width of its own."""
    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(highlight=False, width=_PIPE_WIDTH)


# ── one conversation ─────────────────────────────────────────────────────────────────────


def _print_window(stored: StoredConversation, *, is_all: bool) -> None:
    console, outline = _console(), stored.outline
    share = (
        f" ({outline.tokens / outline.limit_tokens:.0%})"
        if outline.limit_tokens
        else ""
    )
    limit = f" of {outline.limit_tokens:,}" if outline.limit_tokens else ""
    console.print(
        f"{outline.name}: {len(stored.messages):,} messages for {harmless(outline.model)}, "
        f"{outline.tokens:,}{limit} tokens{share}",
        markup=False,
    )
    console.print(_table(stored, console.width, is_all=is_all))
    for line in _decided(stored):
        console.print(line, markup=False)


def _table(stored: StoredConversation, width: int, *, is_all: bool) -> Figures:
    """The texts of a conversation; long names of tools are folded, and no figure is cut."""
    table = listing(("role",))
    is_narrow = width < _NARROW
    table.add_column("name", overflow="fold", min_width=_LEAST_NAME)
    table.add_column("role", no_wrap=True)
    table.add_column("what", overflow="fold", max_width=width // _NAME_PART)
    characters = "chars" if is_narrow else "characters"
    table.add_column(characters, justify="right", no_wrap=True)
    table.add_column("shown", overflow="fold", max_width=width // _STATE_PART)
    add_beginnings(table)
    for row in _rows(stored.leaves(), is_all=is_all):
        table.add_row(*(Text(cell) for cell in row))
    return table


def _rows(leaves: list[Leaf], *, is_all: bool) -> Iterator[tuple[str, ...]]:
    """The lines of the table; texts that left with one batch are one line, unless all are asked."""
    run: list[Leaf] = []
    for leaf in [*leaves, None]:
        is_gone = leaf is not None and _is_gone(leaf) and not is_all
        if run and not (
            is_gone and leaf is not None and leaf.batch == run[0].batch
        ):
            yield _row(run)
            run = []
        if leaf is None:
            return
        if is_gone:
            run.append(leaf)
        else:
            yield _row([leaf])


def _is_gone(leaf: Leaf) -> bool:
    return leaf.state == "set aside" and not leaf.is_copied


def _row(run: list[Leaf]) -> tuple[str, ...]:
    start, end = run[0], run[-1]
    name = start.name if start is end else f"{start.name} – {end.name}"
    description = (
        " ".join(filter(None, (start.kind, start.tool)))
        if start is end
        else "old messages"
    )
    state = start.state + (f" by {start.batch}" if start.batch else "")
    state += ", pinned" if any(leaf.is_pinned for leaf in run) else ""
    if start.is_copied:
        state += ", copied further down"
    text = harmless(start.head)
    return (
        name,
        start.role if start is end else "",
        harmless(description),
        f"{sum(leaf.chars for leaf in run):,}",
        state,
        text,
    )


def _decided(stored: StoredConversation) -> Iterator[str]:
    """The batches and the decisions, a line each."""
    batches = [
        entry
        for entry in stored.batches()
        if entry[1].edits and not entry[1].decision
    ]
    if batches:
        yield ""
        yield "Batches, the newest last:"
    for batch_id, batch, is_undone in batches:
        sizes = f"{batch.tokens_before:,} → {batch.tokens_after:,} tokens"
        undone = ", undone" if is_undone else ""
        edits = f"{len(batch.edits):,} edit{'s' * (len(batch.edits) != 1)}"
        yield f"  {name_of(batch_id)}  by {author_of(batch)}: {edits}, {sizes}{undone}"
    if stored.hand.decisions:
        yield ""
        yield "Decisions that stand, the newest last:"
    for one in stored.hand.decisions:
        decision = one.decision
        by = f" by {decision.author}" if decision.author else ""
        reason = f": {decision.reason}" if decision.reason else ""
        due = "" if one.carried_out else " (with the next request)"
        description = described(decision, stored.transcript)
        text = ""
        if decision.text:
            text = f' "{head_of(decision.text)}"'
        yield harmless(f"  {one.name}  {description}{text}{by}{reason}{due}")
