"""How a document's settings are read: its own keys, checked, with errors that help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from ullage.core.errors import ConfigError

S = TypeVar("S", bound="DocumentSettings")

Natural: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]


class DocumentSettings(Struct, frozen=True, kw_only=True):
    """The settings of one document. Python names; ``rename`` gives the document's keys.

    Attributes:
        section: the key under which an application's file holds them, or None for the top.
        environment: the settings that environment variables of the same name may give.

    Raises:
        ConfigError: a value is of another kind, or out of the range that its type names.
    """

    section: ClassVar[str | None] = None
    environment: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            _checked(field.encode_name, getattr(self, field.name), field.type)


def read(settings_type: type[S], values: Mapping[str, Any]) -> S:
    """Settings from a mapping, under the document's keys.

    Args:
        settings_type: which settings.
        values: the mapping; a document's own section is looked for first.

    Raises:
        ConfigError: a key that is not known, a value that is wrong.
    """
    if settings_type.section is not None and settings_type.section in values:
        values = _checked(
            settings_type.section,
            values[settings_type.section],
            Mapping[str, Any],
        )
    by_key = {field.encode_name: field for field in fields(settings_type)}
    if unknown := sorted(values.keys() - by_key):
        keys = f"The keys are {', '.join(by_key)}."
        raise ConfigError(
            settings_type.section or "settings",
            f"unknown: {', '.join(unknown)}",
            keys,
        )
    checked = {
        by_key[key].name: _checked(key, values[key], by_key[key].type)
        for key in values
    }
    return settings_type(**checked)


def _checked(key: str, value: Any, kind: Any) -> Any:
    """A value as a setting of this kind holds it."""
    if isinstance(value, Mapping) and get_origin(kind) is Mapping:
        item_type = get_args(kind)[1]
        return {
            name: _checked(f"{key}.{name}", item, item_type)
            for name, item in value.items()
        }
    if (
        isinstance(value, Mapping)
        and isinstance(kind, type)
        and issubclass(kind, DocumentSettings)
    ):
        return read(kind, value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        detail = f", not {value}" if isinstance(value, (int, float)) else ""
        remedy = "Give what the document says."
        raise ConfigError(
            key, f"{str(error).rstrip('.')}{detail}", remedy
        ) from None
