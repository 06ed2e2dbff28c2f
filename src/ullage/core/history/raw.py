"""What stands in a caller's request: dicts as sent, or the objects of the vendors' SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.errors import FormatError
from ullage.core.history import canon


def field(value: Any, name: str, default: Any = None) -> Any:
    """A field of a dict or of an SDK object."""
    if type(value) is dict or isinstance(
        value, Mapping
    ):  # the second alone is slow
        return value.get(name, default)
    return getattr(value, name, default)


def text_at(value: Any, path: str) -> str:
    """``value`` if it is a string. Raises FormatError if not.

    Args:
        value: the value.
        path: where it stands in the request, for the error.
    """
    if isinstance(value, str):
        return value
    raise unexpected(value, path, "a string", "Give text as a string.")


def as_json(value: Any, path: str) -> str:
    """``value`` as canonical JSON text. Raises FormatError if it is not JSON."""
    try:
        return canon.canonical_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_json(path, error) from None


def not_json(path: str, cause: object) -> FormatError:
    """The error for a value that has to be JSON and is none."""
    return FormatError(path, f"not JSON ({cause})", "Give plain JSON values.")


def unexpected(
    value: Any, path: str, type_name: str, remedy: str
) -> FormatError:
    """The error for a value of a wrong type; ``type_name`` is what it has to be."""
    problem = f"expected {type_name}, got {type(value).__name__}"
    return FormatError(path, problem, remedy)
