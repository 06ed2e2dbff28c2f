"""``ullage proxy``: keep every request to a provider within its window."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click

from ullage.doors.proxy.config import Config
from ullage.tools.cli._proxy import proxy_options, settings_of


@click.command("proxy", short_help="Stand between clients and providers.")
@click.option(
    "--listen", metavar="ADDRESS:PORT", help="Default: 127.0.0.1:8787."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Processes that serve. Default: 1.",
)
@click.option(
    "--log",
    is_flag=True,
    default=None,
    help="A line of JSON for each request.",
)
@click.option(
    "--tenant",
    help="One tenant for everybody. Default: one for each credential.",
)
@proxy_options
def command(file: Path | None, **options: Any) -> None:
    """Stand between clients and their providers, and keep every request within its window.

    Point a client's base URL here; it keeps its own credentials.
    """
    config = settings_of(file, **options)
    # aiohttp takes 0.2 s to import, and no other command needs it.
    from ullage.doors.proxy.server import bound
    from ullage.doors.proxy.workers import serve_with_workers

    listening = bound(config)
    serve_with_workers(config, listening, lambda: _say(config, listening))


def _say(config: Config, listening: socket.socket) -> None:
    """How clients find the proxy."""
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"ullage proxy on {url}"]
    lines += [
        f"  {url}/{name} → {upstream}"
        for name, upstream in config.upstreams.items()
    ]
    lines += [f"  to look at: {url}/_ullage/"] if config.pages else []
    click.echo("\n".join(lines), err=True)
