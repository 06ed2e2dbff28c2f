"""``ullage run -- COMMAND``: a command behind a proxy of its own."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ullage.core.errors import UllageError
from ullage.core.values.receipts import ReceiptTotals
from ullage.doors.proxy.agents import MARK, arguments_for, setting_for
from ullage.doors.proxy.config import UPSTREAMS, Config
from ullage.session.receipts.writer import written_here
from ullage.stores import default_path, is_url, open_lasting
from ullage.tools.cli._options import short_path, usual_address
from ullage.tools.cli._proxy import proxy_options, settings_of
from ullage.tools.cli._tally import RunTally, summary


@click.command(
    "run",
    short_help="Run a coding agent behind its own proxy.",
    context_settings={"allow_interspersed_args": False},
)
@proxy_options
@click.argument(
    "words",
    metavar="COMMAND…",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
)
def command(file: Path | None, words: tuple[str, ...], **options: Any) -> None:
    """Run a coding agent, or any command, behind a proxy of its own: ullage run -- claude

    Every model call of the command goes through the proxy, which ends with it.
    """
    config = settings_of(file, tenant="", **options)
    # These need aiohttp, which no other command does.
    from ullage.doors.proxy.command import behind_a_proxy, run_command
    from ullage.doors.proxy.quiet import own_words
    from ullage.doors.proxy.run_keys import new_run_keys

    environment = dict(os.environ)
    if MARK in environment:
        address = environment[MARK].rpartition("/")[
            0
        ]  # and not the key behind it
        click.echo(f"ullage: already behind the proxy on {address}", err=True)
        sys.exit(run_command(words, environment))
    named = {
        name
        for name, url in config.upstreams.items()
        if UPSTREAMS.get(name) != url
    }
    setting = setting_for(
        environment,
        named,
        config.upstreams,
        program=words[0],
        arguments=words[1:],
    )
    if setting.note:
        click.echo(f"ullage: {setting.note}", err=True)
    run_keys, tally = new_run_keys(), RunTally()
    since_day = datetime.now(UTC).date().isoformat()
    with (
        own_words(tells_events=False),
        behind_a_proxy(
            _for_one(config, setting.upstreams),
            tally.take,
            run_keys=run_keys,
        ) as (url, watch),
    ):
        environment = setting.environment_at(
            f"{url}/{run_keys.key}", environment
        )
        if config.store:  # what `ullage pin` and the like within it decide on
            environment["ULLAGE_STORE"] = _absolute(config.store)
        arguments = arguments_for(
            words, setting, f"{url}/{run_keys.shown_key}"
        )
        code = run_command(arguments, environment)
    spent = _spent(config, since_day)
    for line in summary(tally, spent, watch.activity.conversations):
        click.echo(f"ullage: {line}", err=True)
    if tally.requests:
        for line in _where_kept(config):
            click.echo(f"ullage: {line}", err=True)
    sys.exit(code)


def _spent(config: Config, since_day: str) -> ReceiptTotals | None:
    """What the receipts of this process come to; None where they cannot be read."""
    if config.dry_run:
        return None
    with (
        suppress(UllageError),
        closing(open_lasting(config.store or "sqlite", None, None)) as store,
    ):
        return written_here(store, since_day)
    return None


def _where_kept(config: Config) -> Iterator[str]:
    """Where the conversations are kept, and the commands that show them."""
    if config.dry_run:
        yield "Dry run: nothing was kept."
        return
    if is_url(config.store):
        place = "the PostgreSQL server"
    else:
        place = short_path(
            Path(config.store) if config.store else default_path()
        )
    yield f"Kept in {place}."
    option = ""
    if config.store and config.store != usual_address():
        # an address can hold a password
        value = "URL" if is_url(config.store) else shlex.quote(config.store)
        option = f" --store {value}"
    yield f"To look at it: ullage last{option}"
    yield f"               ullage window last{option}"


def _absolute(address: str) -> str:
    """The address of a store as it is from any folder."""
    return address if is_url(address) else str(Path(address).absolute())


def _for_one(config: Config, upstreams: dict[str, str]) -> Config:
    """The settings for one command: any free port, whatever the file says."""
    discover = True if config.discover is None else config.discover
    upstreams = {**config.upstreams, **upstreams}
    return replace(
        config, listen="127.0.0.1:0", upstreams=upstreams, discover=discover
    )
