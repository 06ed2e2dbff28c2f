"""``ullage fit FILE``: make one request fit."""

from __future__ import annotations

import json
from typing import BinaryIO

import click

from ullage import Limits, Session
from ullage.core.errors import FormatError
from ullage.documents import NAMES
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    TokenCount,
    format_option,
    print_json,
    read_whole,
    store_options,
    user_tools_option,
)


@click.command("fit", short_help="Make a request fit its model's window.")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--model", default="", help="The model, if the request does not name it."
)
@click.option(
    "--policy", type=NamedChoice(NAMES), default="default", show_default=True
)
@click.option(
    "--window",
    type=TokenCount(),
    help="The context window: 64000, 64k or 1M. Default: the model's.",
)
@format_option
@click.option(
    "--recall/--no-recall",
    default=None,
    help="Offer the recall tools. Default: auto.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair a history the provider would refuse.",
)
@user_tools_option
@store_options
def command(
    file: BinaryIO,
    model: str,
    policy: str,
    window: int | None,
    wire: str | None,
    recall: bool | None,
    repair: bool,
    user_tools: tuple[str, ...],
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Print the request in FILE (or on standard input, -) so that it fits.

    What is set aside is kept in the store; `ullage read` opens it. Where no recall tools are
    offered the default policy cuts near the limit alone. With --json the request comes with
    everything that happened to it.
    """
    try:
        # Unlike msgspec, the standard library takes lone surrogates.
        request = json.loads(read_whole(file))
    except (ValueError, RecursionError) as error:
        raise FormatError(
            "the file", f"not JSON ({error})", "Give one request."
        ) from None
    session = Session(
        model,
        policy=policy,
        limits=Limits(window_tokens=window) if window is not None else None,
        format=wire,
        store=address or "sqlite",
        tenant=tenant,
        recall="auto" if recall is None else recall,
        repair=repair,
        user_tools=user_tools,
    )
    with session:
        fitted = session.fit(request)
        tokens, limit = session.window.estimate, session.window.limit_tokens
    if as_json:
        print_json(
            {
                "request": fitted,
                "tokens": tokens,
                "limit": limit,
                "events": session.events,
            }
        )
        return
    print_json(fitted)
    click.echo(
        f"{tokens:,} of {limit:,} tokens; {len(session.events):,} events",
        err=True,
    )
    for event in session.events:
        click.echo(f"{event.kind:>10}  {event.where}: {event.why}", err=True)
