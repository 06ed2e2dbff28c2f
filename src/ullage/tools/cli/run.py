"""``ullage run -- COMMAND``: a command behind a proxy of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ullage.doors.proxy.agents import MARK, arguments_for, setting_for
from ullage.doors.proxy.config import UPSTREAMS, Config
from ullage.tools.cli._proxy import proxy_options, settings_of


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
    from ullage.doors.proxy.command import behind_a_proxy, run_command, summary
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
    run_keys = new_run_keys()
    with (
        own_words(tells_events=False),
        behind_a_proxy(
            _for_one(config, setting.upstreams), run_keys=run_keys
        ) as (
            url,
            watch,
        ),
    ):
        environment = setting.environment_at(
            f"{url}/{run_keys.key}", environment
        )
        arguments = arguments_for(
            words, setting, f"{url}/{run_keys.shown_key}"
        )
        code = run_command(arguments, environment)
    store = "the store" if config.store else "ullage's own store"
    for line in summary(
        watch.activity.totals, store, watch.activity.conversations
    ):
        click.echo(f"ullage: {line}", err=True)
    sys.exit(code)


def _for_one(config: Config, upstreams: dict[str, str]) -> Config:
    """The settings for one command: any free port, whatever the file says."""
    discover = True if config.discover is None else config.discover
    upstreams = {**config.upstreams, **upstreams}
    return replace(
        config, listen="127.0.0.1:0", upstreams=upstreams, discover=discover
    )
