"""``ullage watch STORE``: follow a live session in the terminal."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from ullage.core.errors import ConfigError
from ullage.tools.cli._options import (
    json_option,
    path_of_store,
    print_json,
    store_option,
)
from ullage.tools.watch.reading import read
from ullage.tools.watch.screen import Screen


@click.command("watch", short_help="Follow live sessions in the terminal.")
@click.argument(
    "store", required=False, type=click.Path(dir_okay=False, path_type=Path)
)
@store_option
@click.option(
    "--tenant", default="", help="Whose sessions. Default: the unnamed tenant."
)
@click.option(
    "--every",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=1.0,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Print what there is now, and end.")
@json_option
def command(
    store: Path | None,
    address: str | None,
    tenant: str,
    interval_s: float,
    once: bool,
    as_json: bool,
) -> None:
    """Follow the sessions of a STORE while another process writes to it.

    STORE is the SQLite file that a session was given, or will be: a file that does not exist yet is
    waited for. Without it, the store of `ullage run` is followed. It is only read. Shown are the
    newest prompts as their provider reported them, and every decision with its reason; no content.
    """
    store = store or path_of_store(address)
    if once or as_json:
        snapshot = read(store, tenant)
        if snapshot is None:
            raise ConfigError(
                "store",
                "there is no store at this path",
                "Leave --once out to wait.",
            )
        print_json(snapshot) if as_json else Console(highlight=False).print(
            Screen(store.name, snapshot)
        )
        return
    console = Console(highlight=False)
    with Live(
        console=console, screen=console.is_terminal, auto_refresh=False
    ) as live:
        while True:
            live.update(Screen(store.name, read(store, tenant)), refresh=True)
            time.sleep(interval_s)
