"""``ullage watch STORE``: follow a live session in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from rich.console import Console
from rich.live import Live

from ullage.core.errors import ConfigError
from ullage.stores import innermost, is_url
from ullage.tools.cli._options import (
    json_option,
    open_kept,
    path_of_store,
    print_json,
    store_option,
    usual_address,
)
from ullage.tools.watch.reading import StoreSnapshot, read, read_server
from ullage.tools.watch.screen import Screen

if TYPE_CHECKING:
    from ullage.stores import PostgresStore

Look = Callable[[], StoreSnapshot | None]
"""Reads the store once; None while there is none."""


@click.command("watch", short_help="Follow live sessions in the terminal.")
@click.argument("store", required=False)
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
    store: str | None,
    address: str | None,
    tenant: str,
    interval_s: float,
    once: bool,
    as_json: bool,
) -> None:
    """Follow the sessions of a STORE while another process writes to it.

    STORE is the SQLite file that a session was given, or will be: a file that does not exist yet is
    waited for. Or it is the address of a server, postgresql://…. Without it, the store of
    `ullage run` is followed. It is only read. Shown are the newest prompts as their provider
    reported them, and every decision with its reason; no content.
    """
    with _opened(store, address, tenant) as (name, look):
        if once or as_json:
            snapshot = look()
            if snapshot is None:
                raise ConfigError(
                    "store",
                    "there is no store at this path",
                    "Leave --once out to wait.",
                )
            print_json(snapshot) if as_json else Console(
                highlight=False
            ).print(Screen(name, snapshot))
            return
        console = Console(highlight=False)
        with Live(
            console=console, screen=console.is_terminal, auto_refresh=False
        ) as live:
            while True:
                live.update(Screen(name, look()), refresh=True)
                time.sleep(interval_s)


@contextmanager
def _opened(
    store: str | None, address: str | None, tenant: str
) -> Iterator[tuple[str, Look]]:
    """What the store is called, and what reads it."""
    location = store or address or usual_address()
    if not is_url(location):
        path = Path(store) if store else path_of_store(address)
        yield path.name, lambda: read(path, tenant)
        return
    server = open_kept(location)
    try:
        # without who asks, and the password
        place = location.partition("://")[2].partition("?")[0]
        name = place.rpartition("@")[2]
        on_server = cast("PostgresStore", innermost(server))
        yield name, lambda: read_server(on_server, tenant)
    finally:
        server.close()
