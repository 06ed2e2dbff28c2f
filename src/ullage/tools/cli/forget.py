"""``ullage forget``: erase a tenant from a store, or a conversation from a chat service's file."""

from __future__ import annotations

import re
from contextlib import closing

import click

from ullage.documents.conversation import conversations_at
from ullage.stores import SpillStore, SqliteStore, forget
from ullage.tools.cli._options import (
    harmless,
    json_option,
    open_kept,
    print_json,
    tenants_of,
)

_LISTED = re.compile(r"c[0-9a-z]{8}")
"""The name of a conversation of a session, as `ullage ls` shows it."""
_MOST_SHOWN = 8


@click.command("forget", short_help="Erase a tenant or a conversation.")
@click.argument(
    "path", metavar="[STORE]", required=False, type=click.Path(dir_okay=False)
)
@click.option(
    "--store",
    "address",
    metavar="PATH",
    help="The same, or postgresql://…. It has to be named: what is erased is gone.",
)
@click.option(
    "--tenant",
    help="Everything that this tenant set aside, and its ledgers; '' is that of `ullage run`.",
)
@click.option(
    "--conversation",
    help="Every message and summary of it, in a ConversationStore.",
)
@click.option(
    "--spill",
    metavar="FOLDER",
    help="The folder of spill files beside the store.",
)
@json_option
def command(
    path: str | None,
    address: str | None,
    tenant: str | None,
    conversation: str | None,
    spill: str | None,
    as_json: bool,
) -> None:
    """Erase a tenant or a conversation from the SQLite file STORE, down to its bytes.

    Content that another tenant holds too stays theirs. Copies elsewhere (backups, the caller's own
    history) stay.
    """
    if (tenant is None) == (conversation is None):
        raise click.UsageError("give --tenant or --conversation, one of them.")
    address = path or address
    if address is None:
        raise click.UsageError("name the store: --store PATH.")
    if conversation is not None:
        if _LISTED.fullmatch(conversation):
            raise click.UsageError(
                f"{conversation} is a name that `ullage ls` shows. Conversations of a proxy or a"
                " session are erased with all else of their tenant: --tenant."
            )
        messages = conversations_at(address).forget(conversation)
        _print(as_json, f"{messages:,} messages are erased", messages=messages)
        return
    tenant = tenant or ""
    with closing(open_kept(address)) as store:
        result = forget(
            store if spill is None else SpillStore(store, spill), tenant
        )
        if isinstance(store, SqliteStore):
            store.shrink()
        known = tenants_of(store)
    outputs, records = len(result.removed), result.records
    if not outputs and not records and not as_json:
        _say_nothing_was_kept(tenant, known)
        return
    message = f"{outputs:,} outputs and {records:,} ledger records are erased"
    _print(as_json, message, outputs=outputs, records=records)


def _say_nothing_was_kept(tenant: str, known: list[str]) -> None:
    """Tell a tenant of whom nothing is kept any more from one whom the store never had.

    Raises:
        ClickException: the store never had the tenant; a name that was mistyped looks like that.
    """
    if tenant in known:
        click.echo("nothing of this tenant is kept any more, but receipts")
        return
    shown = ", ".join(map(harmless, known[:_MOST_SHOWN]))
    more = len(known) - _MOST_SHOWN
    if more > 0:
        shown = f"{shown} and {more:,} more"
    others = f" It has receipts of: {shown}." if shown else ""
    raise click.ClickException(
        f"the store keeps nothing of a tenant {tenant!r}.{others}"
    )


def _print(as_json: bool, message: str, **counts: int) -> None:
    if as_json:
        print_json(counts)
    else:
        click.echo(message)
