"""Options that the commands of the proxy share."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.documents import NAMES
from ullage.doors.proxy.config import Config, config_of
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    TokenCount,
    user_tools_option,
)

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--config",
        "file",
        envvar="ULLAGE_PROXY_CONFIG",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A TOML file of settings; see docs/proxy.md.",
    ),
    click.option(
        "--upstream",
        "upstreams",
        multiple=True,
        metavar="NAME=URL",
        help="Where requests go: anthropic, openai, gemini, or a name of yours.",
    ),
    click.option(
        "--policy",
        type=NamedChoice(NAMES),
        help="A preset. Default: default.",
    ),
    click.option(
        "--joins/--no-joins",
        default=None,
        help="Join conversations that are first seen under way. Default: once it saves money.",
    ),
    click.option(
        "--window",
        "window_tokens",
        type=TokenCount(1_000),
        help="The window: 64000, 64k or 1M. Default: each model's own.",
    ),
    click.option(
        "--holdout",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Let this share of conversations pass unfitted, to compare bills: 0.05.",
    ),
    click.option(
        "--discover/--no-discover",
        default=None,
        help="Ask upstreams for the windows of their models. Default: those on this machine.",
    ),
    user_tools_option,
    click.option(
        "--store", metavar="PATH", help="Default: the platform's place for it."
    ),
    click.option(
        "--blobs",
        metavar="URL",
        help="s3://bucket/prefix, for the larger texts.",
    ),
    click.option(
        "--cache",
        metavar="URL",
        help="valkey://host, for copies of those, and leases.",
    ),
    click.option(
        "--redact/--no-redact",
        default=None,
        help="Keep no key of a known form in the store. Default: keep what comes.",
    ),
    click.option(
        "--allow-origin",
        "allowed_origins",
        multiple=True,
        metavar="ORIGIN",
        help="A web page, extension or Electron window that may send requests.",
    ),
    click.option(
        "--allow-host",
        "allowed_hosts",
        multiple=True,
        metavar="NAME",
        help="A name that clients know the proxy by, such as proxy.example.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        default=None,
        help="Fit and count, but send what came.",
    ),
)


def proxy_options(command: F) -> F:
    """The options that `settings_of` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_of(
    file: Path | None, upstreams: tuple[str, ...] = (), **options: Any
) -> Config:
    """The proxy's settings.

    Raises:
        ConfigError: something cannot be meant, or the extra is not installed.
    """
    if importlib.util.find_spec("aiohttp") is None:
        raise ConfigError(
            "ullage proxy", "aiohttp is missing", install_remedy("proxy")
        )
    urls = dict(_pair(pair) for pair in upstreams)
    options["user_tools"] = list(options["user_tools"]) or None
    return config_of(file, os.environ, upstreams=urls, **options)


def _pair(option: str) -> tuple[str, str]:
    name, equals, url = option.partition("=")
    if not equals:
        raise ConfigError(
            "--upstream", f"{option!r} names no URL", "Write NAME=URL."
        )
    return name, url
