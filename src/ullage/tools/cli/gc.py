"""``ullage gc``: let go of what was set aside long ago, or is too much."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from ullage.core.errors import StoreError
from ullage.stores import Bounds, Collected, SpillStore, SqliteStore, Store
from ullage.tools.cli._options import (
    json_option,
    open_kept,
    print_json,
    store_option,
)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class _Amount(click.ParamType):  # type: ignore[type-arg]
    """A number and a unit, such as ``30d`` or ``1GB``."""

    def __init__(
        self, name: str, pattern: str, units: dict[str, int], example: str
    ) -> None:
        self.name = name
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._units = units
        self._example = example

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        match = self._pattern.fullmatch(str(value).strip())
        if match is None:
            self.fail(
                f"{value!r} is no {self.name}: write it like {self._example}.",
                param,
                ctx,
            )
        return int(float(match[1]) * self._units[match[2].lower()])


_DURATION = _Amount(
    "time", r"(\d+(?:\.\d+)?)\s*([smhdw])", _SECONDS, "12h or 30d"
)
_SIZE = _Amount(
    "size", r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", _BYTES, "500MB or 1GB"
)


@click.command("gc", short_help="Let go of what was not used for long.")
@click.option(
    "--older-than",
    "older_than_s",
    type=_DURATION,
    help="Unused for so long: 30d.",
)
@click.option(
    "--max-size",
    "max_bytes",
    type=_SIZE,
    help="The most outputs may take: 1GB.",
)
@click.option(
    "--even-needed",
    is_flag=True,
    help="For --max-size, also what a view still names.",
)
@click.option(
    "--every", "every_s", type=_DURATION, help="Do nothing if done since: 12h."
)
@click.option("--tenant", help="Whose outputs. Default: everybody's.")
@click.option(
    "--spill",
    metavar="FOLDER",
    help="The folder of spill files beside the store.",
)
@click.option(
    "--dry-run", is_flag=True, help="Say what would go, and keep it."
)
@store_option
@json_option
def command(
    older_than_s: int | None,
    max_bytes: int | None,
    even_needed: bool,
    every_s: int | None,
    tenant: str | None,
    spill: str | None,
    dry_run: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Let go of outputs and ledgers that were not used for long, or are too much.

    What a conversation still in use needs stays, unless --even-needed says otherwise: then its
    notices name refs that open only from the history at hand.
    """
    if older_than_s is None and max_bytes is None:
        raise click.UsageError(
            "give --older-than, --max-size or both: without, nothing goes."
        )
    bounds = Bounds(
        older_than_s, max_bytes, even_needed, every_s or 0, dry_run=dry_run
    )
    with closing(open_kept(address)) as store:
        room = store if spill is None else SpillStore(store, spill)
        result = room.collect(tenant, bounds)
        while result is not None and result.cursor is not None:
            step = room.collect(tenant, bounds, result.cursor)
            result = step and result.then(step)
        if (
            result is not None
            and not dry_run
            and (result.removed or result.records)
        ):
            _shrink(store)
    _print(result, dry_run=dry_run, as_json=as_json)


def _shrink(store: Store) -> None:
    """Make a file smaller too; while another process reads it, its room is only used again."""
    if not isinstance(store, SqliteStore):
        return
    try:
        store.shrink()
    except StoreError as error:
        click.echo(f"the file did not get smaller: {error}", err=True)


def _print(result: Collected | None, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        fields = ("removed", "records", "left_bytes")
        print_json(
            result and {field: getattr(result, field) for field in fields}
        )
        return
    if result is None:
        click.echo("cleaned up not long ago: nothing done")
        return
    for output in result.removed:
        used = datetime.fromtimestamp(output.used_s, UTC).strftime("%Y-%m-%d")
        note = "  needed by a view" if output.needed else ""
        click.echo(
            f"{output.ref}  {output.size_bytes:>13,} bytes  last used {used}{note}"
        )
    freed = sum(output.size_bytes for output in result.removed)
    went = "would go" if dry_run else "went"
    click.echo(
        f"{len(result.removed):,} outputs of {freed:,} bytes and {result.records:,} ledger records "
        f"{went}; outputs of {result.left_bytes:,} bytes stay"
    )
