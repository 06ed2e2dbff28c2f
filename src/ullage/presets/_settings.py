"""How a document's settings are read: its own keys, checked, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct

from ullage.errors import ConfigError

__all__ = ["Settings", "at_least", "check_types", "read", "share"]

S = TypeVar("S", bound="Settings")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one document. Python names; ``rename`` gives the document's keys.

    Attributes:
        section: the key under which an application's file holds them, or None for the top.
        environment: the settings that environment variables of the same name may give.
    """

    section: ClassVar[str | None] = None
    environment: ClassVar[tuple[str, ...]] = ()


def check_types(settings: Settings) -> None:
    """Check that settings given by Python name are what they should be. Raises ConfigError."""
    for field in msgspec.structs.fields(settings):
        try:
            msgspec.convert(getattr(settings, field.name), field.type)
        except msgspec.ValidationError as error:
            problem = str(error).rstrip(".")
            raise ConfigError(field.encode_name, problem, "Give what the document says.") from None


def at_least(least: float, **settings: float | None) -> None:
    """Check that numbers are no smaller than ``least``. Raises ConfigError."""
    for name, value in settings.items():
        if value is not None and not value >= least:
            raise ConfigError(name, f"{value} is under {least}", f"Give {least} or more.")


def share(**settings: float) -> None:
    """Check that numbers are over 0 and at most 1. Raises ConfigError."""
    for name, value in settings.items():
        if not 0 < value <= 1:
            raise ConfigError(name, f"{value} is no share", "Give more than 0, at most 1.")


def read(of: type[S], values: Mapping[str, Any]) -> S:
    """Settings from a mapping, under the document's keys.

    Raises:
        ConfigError: a key that is not known, a value that is wrong.
    """
    if of.section is not None and of.section in values:
        values = values[of.section]
    try:
        return msgspec.convert(values, of)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        keys = ", ".join(field.encode_name for field in msgspec.structs.fields(of))
        raise ConfigError(
            of.section or "settings", str(error).rstrip("."), f"The keys are {keys}."
        ) from None
