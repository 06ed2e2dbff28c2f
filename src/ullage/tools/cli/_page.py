"""What replays and sessions are shown with: price profiles, and the page, which is private."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.prices import (
    OWN,
    PROFILES,
    ProfileChoice,
    profile_named,
)

F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(dir_okay=False, path_type=Path)


def page_options(command: F) -> F:
    """``--cache``, ``--html``, ``--share`` and ``--plot``."""
    profiles = ", ".join(PROFILES)
    cache = f"A price profile: own (each run's), {profiles}, or a TOML file. Default: all."
    page = "Write a page to look at: every turn, every edit, what was visible when."
    share = "Take keys, tokens, addresses and home folders out of the page: it is for others."
    plot = "Write a picture (SVG): the largest run, what was sent of it call by call."
    for option in (
        click.option("--plot", type=FILE, help=plot),
        click.option("--share", is_flag=True, help=share),
        click.option("--html", "page", type=FILE, help=page),
        click.option(
            "--cache", "named", multiple=True, metavar="NAME|FILE", help=cache
        ),
    ):
        command = option(command)
    return command


def profiles_of(named: tuple[str, ...]) -> tuple[ProfileChoice, ...]:
    """The price profiles asked for; if none was, each run's own and then all that ship.

    Raises:
        ConfigError: there is none of a name, or a file holds none.
    """
    profiles = (OWN if name == OWN else profile_named(name) for name in named)
    return tuple(profiles) or (OWN, *PROFILES.values())


def typed(program: str = "") -> str:
    """The command that is running, as it was typed; of paths their names alone."""
    context = click.get_current_context()
    words = (program or context.command_path).split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = (
                parameter.opts[-1:]
                if isinstance(parameter, click.Option)
                else []
            )
            setting = context.params[name]
            for value in setting if isinstance(setting, tuple) else (setting,):
                words += option if value is True else [*option, _word(value)]
    return shlex.join(words)


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return "=".join(map(str, value))
    is_path = (
        isinstance(value, Path)
        or "://" in str(value)
        or str(value).endswith(".toml")
    )
    return Path(str(value)).name or "." if is_path else str(value)


def save_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a folder, which is made if it is missing, for its owner alone to read.

    Args:
        folder: where to.
        pages: each page by the name of its file.

    Raises:
        ConfigError: they cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            "--pages",
            f"the folder cannot be made ({reason})",
            "Give another path.",
        ) from None
    for name, page in pages.items():
        save(folder / name, page, "--pages")


def save(path: Path, page: str, option: str = "--html") -> None:
    """Write a page, or a picture, for its owner alone to read: a page holds the conversation.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(page.encode())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            option,
            f"the file cannot be written ({reason})",
            "Give another path.",
        ) from None
