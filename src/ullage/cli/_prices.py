"""The option that chooses price profiles."""

from __future__ import annotations

from pathlib import Path

import click

from ullage.replay.cost.prices import PROFILES, Profile, profile_at, profile_named

__all__ = ["price_option", "profiles_of"]

_FIRST = "anthropic-5m"

price_option = click.option(
    "--cache",
    "named",
    multiple=True,
    metavar="NAME|FILE",
    help=f"A price profile: {', '.join(PROFILES)}, or a TOML file. Default: all of them.",
)


def profiles_of(named: tuple[str, ...]) -> tuple[Profile, ...]:
    """The price profiles asked for; all that ship, ours of choice first, if none was.

    Raises:
        ConfigError: there is none of a name, or a file holds none.
    """
    if not named:
        first = PROFILES[_FIRST]
        return (first, *(profile for profile in PROFILES.values() if profile != first))
    return tuple(
        profile_at(Path(name)) if name.endswith(".toml") else profile_named(name) for name in named
    )
