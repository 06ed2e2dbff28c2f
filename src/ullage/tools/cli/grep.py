"""``ullage grep PATTERN``: search what was set aside."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from ullage.session.drivers import run
from ullage.session.recall.grep import GrepResult, search
from ullage.session.recall.pattern import PatternError
from ullage.session.recall.source import OutputReader
from ullage.stores import every_ref
from ullage.tools.cli._options import (
    count_option,
    open_kept,
    print_json,
    print_kept,
    store_options,
    tenant_in,
)


@click.command("grep", short_help="Search what was set aside.")
@click.argument("pattern")
@click.argument("refs", nargs=-1)
@click.option(
    "-i", "--ignore-case", is_flag=True, help="Take either case for the same."
)
@count_option(
    "-C", "--context", least=0, default=0, help="Lines around each match."
)
@count_option(
    "--most", least=1, default=50, help="Matching lines to print of each."
)
@store_options
def command(
    pattern: str,
    refs: tuple[str, ...],
    ignore_case: bool,
    context: int,
    most: int,
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Search everything kept, or what is kept under REFS, for PATTERN (RE2 syntax).

    The status is 1 if nothing matches.
    """
    matches: dict[str, GrepResult] = {}
    with closing(open_kept(address)) as store:
        tenant = tenant_in(store, tenant)
        for ref in refs or every_ref(store, tenant):
            steps = search(
                OutputReader(store.stat(tenant, ref)),
                pattern,
                ignore_case=ignore_case,
                context_lines=context,
                max_matches=most,
                max_chars=1_000_000,
            )
            try:
                hits = run(steps, store, tenant)
            except PatternError as error:
                raise click.ClickException(str(error)) from None
            if hits.total:
                matches[ref] = hits
    if as_json:
        print_json(matches)
    for ref, hits in () if as_json else matches.items():
        for line in hits.lines:
            print_kept(f"{ref}:{line.number}:{line.text}\n")
    sys.exit(0 if matches else 1)
