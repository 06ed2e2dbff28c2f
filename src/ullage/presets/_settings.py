"""How a document's settings are read: its own keys, checked, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct

from ullage.errors import ConfigError

__all__ = ["Settings", "read"]

S = TypeVar("S", bound="Settings")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one document. Python names; ``rename`` gives the document's keys.

    Attributes:
        section: the key under which an application's file holds them, or None for the top.
        environment: the settings that environment variables of the same name may give.
        least: the least that a number may be; of a mapping, each of its numbers.
        shares: the numbers that are over 0 and at most 1.

    Raises:
        ConfigError: a value is of another kind, or out of range.
    """

    section: ClassVar[str | None] = None
    environment: ClassVar[tuple[str, ...]] = ()
    least: ClassVar[Mapping[str, float]] = {}
    shares: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value, key, least = getattr(self, field.name), field.encode_name, self.least
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError as error:
                problem = str(error).rstrip(".")
                raise ConfigError(key, problem, "Give what the document says.") from None
            if field.name in least and value is not None:
                _at_least(least[field.name], key, value)
            if field.name in self.shares and not 0 < value <= 1:
                raise ConfigError(key, f"{value} is no share", "Give more than 0, at most 1.")


def _at_least(least: float, key: str, value: Any) -> None:
    numbers = {key: value}
    if isinstance(value, Mapping):
        numbers = {f"{key}.{name}": number for name, number in value.items()}
    for name, number in numbers.items():
        if not number >= least:
            raise ConfigError(name, f"{number} is under {least}", f"Give {least} or more.")


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
