"""Schemas of the answer: what a request shows the model beside system text and tools.

They stand in different fields of each format. The SDKs also take a class in their place, of which
they make the schema themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ullage.history import canon
from ullage.wires.gemini.fields import get

__all__ = ["schemas_at"]


def schemas_at(settings: Any, paths: Iterable[str]) -> tuple[str, ...]:
    """The schemas that stand at these paths, each as text.

    Args:
        settings: a request, or the object in it that holds them; None if there is none.
        paths: names of fields with dots between, in camelCase where a field has two spellings.
            What is no mapping on the way, a class say, is the schema itself.
    """
    found = (_text(_at(settings, path.split("."))) for path in paths)
    return tuple(text for text in found if text)


def _at(settings: Any, path: list[str]) -> Any:
    value = get(settings, path[0])
    for name in path[1:]:
        if not isinstance(value, Mapping):
            break
        value = value.get(name)
    return value


def _text(schema: Any) -> str:
    """A schema as JSON text; of a class what is made of it, of a type its classes'."""
    made = getattr(schema, "model_json_schema", None)
    if inspect.isclass(schema) and made is not None:
        schema = made()
    elif hasattr(schema, "model_dump"):
        schema = schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    if isinstance(schema, Mapping):
        return _json(schema)
    if inspect.isclass(schema) and not get_args(schema):
        return " ".join([schema.__name__, *map(str, getattr(schema, "__members__", ()))])
    return " ".join(map(_text, get_args(schema)))


def _json(schema: Any) -> str:
    """As JSON text, or as it is shown to people: an SDK may take what is none."""
    try:
        return canon.canonical_json(schema)
    except (TypeError, ValueError, RecursionError):
        return str(schema)
