"""``ullage gc``: let go of what was set aside long ago, or is too much."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from ullage.core.errors import StoreError
from ullage.stores import Bounds, Collected, SpillStore, SqliteStore, Store
from ullage.tools.cli._options import json_option, open_kept, print_json, store_option

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
        found = self._pattern.fullmatch(str(value).strip())
        if found is None:
            self.fail(
                f"{value!r} is no {self.name}: write it like {self._example}.",
                param,
                ctx,
            )
        return int(float(found[1]) * self._units[found[2].lower()])


_DURATION = _Amount("time", r"(\d+(?:\.\d+)?)\s*([smhdw])", _SECONDS, "12h or 30d")
_SIZE = _Amount("size", r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", _BYTES, "500MB or 1GB")


@click.command("gc", short_help="Let go of what was not used for long.")
@click.option(
    "--older-than", "older_than_s", type=_DURATION, help="Unused for so long: 30d."
)
@click.option(
    "--max-size", "max_bytes", type=_SIZE, help="The most outputs may take: 1GB."
)
@click.option(
    "--even-needed", is_flag=True, help="For --max-size, also what a view still names."
)
@click.option(
    "--every", "every_s", type=_DURATION, help="Do nothing if done since: 12h."
)
@click.option("--tenant", help="Whose outputs. Default: everybody's.")
@click.option(
    "--spill", metavar="FOLDER", help="The folder of spill files beside the store."
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and keep it.")
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
    store: str | None,
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
    bounds = Bounds(older_than_s, max_bytes, even_needed, every_s or 0, dry_run=dry_run)
    with closing(open_kept(store)) as kept:
        room = kept if spill is None else SpillStore(kept, spill)
        done = room.collect(tenant, bounds)
        while done is not None and done.cursor is not None:
            step = room.collect(tenant, bounds, done.cursor)
            done = step and done.then(step)
        if done is not None and not dry_run and (done.removed or done.records):
            _shrink(kept)
    _print(done, dry_run=dry_run, as_json=as_json)


def _shrink(kept: Store) -> None:
    """Make a file smaller too; while another process reads it, its room is only used again."""
    if not isinstance(kept, SqliteStore):
        return
    try:
        kept.shrink()
    except StoreError as error:
        click.echo(f"the file did not get smaller: {error}", err=True)


def _print(done: Collected | None, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        fields = ("removed", "records", "left_bytes")
        print_json(done and {field: getattr(done, field) for field in fields})
        return
    if done is None:
        click.echo("cleaned up not long ago: nothing done")
        return
    for gone in done.removed:
        used = datetime.fromtimestamp(gone.used_s, UTC).strftime("%Y-%m-%d")
        note = "  needed by a view" if gone.needed else ""
        click.echo(f"{gone.ref}  {gone.size_bytes:>13,} bytes  last used {used}{note}")
    freed = sum(gone.size_bytes for gone in done.removed)
    went = "would go" if dry_run else "went"
    click.echo(
        f"{len(done.removed):,} outputs of {freed:,} bytes and {done.records:,} ledger records "
        f"{went}; outputs of {done.left_bytes:,} bytes stay"
    )
