"""What stands in a caller's request: dicts as sent, or the objects of the vendors' SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.errors import FormatError
from ullage.core.history import canon


def field(value: Any, name: str, default: Any = None) -> Any:
    """A field of a dict or of an SDK object."""
    if type(value) is dict or isinstance(value, Mapping):  # the second alone is slow
        return value.get(name, default)
    return getattr(value, name, default)


def text_at(value: Any, where: str) -> str:
    """``value`` if it is a string. Raises FormatError if not."""
    if isinstance(value, str):
        return value
    raise unexpected(value, where, "a string", "Give text as a string.")


def as_json(value: Any, where: str) -> str:
    """``value`` as canonical JSON text. Raises FormatError if it is not JSON."""
    try:
        return canon.canonical_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_json(where, error) from None


def not_json(where: str, what: object) -> FormatError:
    """The error for what has to be JSON and is none."""
    return FormatError(where, f"not JSON ({what})", "Give plain JSON values.")


def unexpected(value: Any, where: str, wanted: str, remedy: str) -> FormatError:
    """The error for what is of another type than its place wants."""
    return FormatError(where, f"expected {wanted}, got {type(value).__name__}", remedy)
