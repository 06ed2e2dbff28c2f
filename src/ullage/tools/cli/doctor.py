"""``ullage doctor``: what is wrong with a set-up, and what to do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import config_of
from ullage.doors.proxy.doctor import findings
from ullage.tools.cli._options import json_option, print_json
from ullage.tools.cli._proxy import proxy_options

_SIGNS = {"ok": "  ok", "note": "   –", "wrong": "   ✗"}


@click.command("doctor", short_help="Look at what the proxy and agents need.")
@click.option("--online", is_flag=True, help="Connect to the upstreams too.")
@click.option(
    "--listen", metavar="ADDRESS:PORT", help="Default: 127.0.0.1:8787."
)
@proxy_options
@json_option
def command(
    file: Path | None,
    online: bool,
    as_json: bool,
    upstreams: tuple[str, ...],
    **options: Any,
) -> None:
    """Look at what the proxy and coding agents need; exit 1 if something is wrong."""
    named = dict(answer.partition("=")[::2] for answer in upstreams)
    try:
        config = config_of(file, os.environ, upstreams=named, **options)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    answers = list(findings(config, os.environ, online=online))
    if as_json:
        print_json(answers)
    else:
        for answer in answers:
            click.echo(
                f"{_SIGNS[answer.verdict]}  {answer.about}: {answer.words}"
            )
    sys.exit(any(answer.verdict == "wrong" for answer in answers))
