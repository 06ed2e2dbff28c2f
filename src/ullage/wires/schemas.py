"""The schemas that an answer is to have, as text: the model is shown them, so they are counted."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ullage.core.history import canon
from ullage.wires.base import get


def schemas_at(settings: Any, paths: Iterable[str]) -> tuple[str, ...]:
    """The schemas that stand at these paths of a request or of its settings, each as text.

    What is no mapping on the way, a class say, is the schema itself.
    """
    texts = [_schema_text(_schema_at(settings, path)) for path in paths]
    return tuple(text for text in texts if text)


def _schema_at(settings: Any, path: str) -> Any:
    key, *inner_keys = path.split(".")
    value = get(settings, key)
    for inner_key in inner_keys:
        if not isinstance(value, Mapping):
            break
        value = value.get(inner_key)
    return value


def _schema_text(schema: Any) -> str:
    """A schema as JSON text; of a class its own schema, of a type those of its classes."""
    if schema is None:
        return ""
    make_schema = getattr(schema, "model_json_schema", None)
    if inspect.isclass(schema) and make_schema is not None:
        schema = make_schema()
    elif hasattr(schema, "model_dump"):
        schema = schema.model_dump(
            mode="json", exclude_none=True, by_alias=True
        )
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Mapping):
        try:
            return canon.canonical_json(schema)
        except (TypeError, ValueError, RecursionError):
            return str(schema)  # an SDK may take what is no JSON
    arguments = get_args(schema)
    if inspect.isclass(schema) and not arguments:
        members = getattr(schema, "__members__", ())  # of an enumeration
        return " ".join([schema.__name__, *map(str, members)])
    return " ".join(_schema_text(argument) for argument in arguments)
