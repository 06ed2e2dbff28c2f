"""``ullage forget``: erase a tenant from a store, or a conversation from a chat service's file."""

from __future__ import annotations

import re
from contextlib import closing

import click

from ullage.documents.conversation import conversations_at
from ullage.stores import SpillStore, SqliteStore, forget
from ullage.tools.cli._options import (
    json_option,
    open_kept,
    print_json,
)

_LISTED = re.compile(r"c[0-9a-z]{8}")
"""The name of a conversation of a session, as `ullage ls` shows it."""


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
    with closing(open_kept(address)) as store:
        result = forget(
            store if spill is None else SpillStore(store, spill), tenant or ""
        )
        if isinstance(store, SqliteStore):
            store.shrink()
    outputs, records = len(result.removed), result.records
    message = f"{outputs:,} outputs and {records:,} ledger records are erased"
    _print(as_json, message, outputs=outputs, records=records)


def _print(as_json: bool, message: str, **counts: int) -> None:
    if as_json:
        print_json(counts)
    else:
        click.echo(message)
