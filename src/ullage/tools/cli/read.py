"""``ullage read REF``: open what was set aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import click

from ullage.doors.host import Words
from ullage.session.drivers import run
from ullage.session.recall.read import lines as numbered
from ullage.session.recall.source import OutputReader
from ullage.tools.cli._options import (
    count_option,
    open_kept,
    print_json,
    print_kept,
    store_options,
    tenant_in,
)


@click.command("read", short_help="Print what was set aside, by its ref.")
@click.argument("ref")
@click.option(
    "--lines", is_flag=True, help="Number the lines, and print a page of them."
)
@count_option(
    "--offset", least=0, default=0, help="With --lines: lines to skip."
)
@count_option(
    "--limit", least=1, default=200, help="With --lines: lines to print."
)
@store_options
def command(
    ref: str,
    lines: bool,
    offset: int,
    limit: int,
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Print the original kept under REF: byte for byte; on a terminal without control codes."""
    with closing(open_kept(address)) as store:
        tenant = tenant_in(store, tenant)
        shape = store.stat(tenant, ref)
        chunks: Iterator[str] = (
            store.chunk(tenant, ref, n) for n in range(len(shape.chunks))
        )
        if lines:
            steps = numbered(
                OutputReader(shape), offset, limit, Words(recall=False)
            )
            chunks = iter((run(steps, store, tenant), "\n"))
        if as_json:
            text = "".join(chunks)
            print_json(
                {
                    "ref": ref,
                    "kind": shape.kind,
                    "characters": shape.chars,
                    "text": text,
                }
            )
            return
        for chunk in chunks:
            print_kept(chunk)
