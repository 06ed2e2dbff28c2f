"""The keywords that generated schemas are written in, checked here.

jsonschema-rs is 6 MB of a process; what pydantic and zod write for most tools needs none of it. A
schema with any other keyword is left to it (`ullage.doors.mcp.schema`). Where this differs from it,
this
finds more at fault, never less: under a ``format`` no string that holds "…", as shortened ones do,
is what the format asks for, and a number is equal to one that is written alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ullage.doors.mcp.frames import encode
from ullage.doors.mcp.shorter import Path

_NOTES = frozenset(
    (
        *(
            "title",
            "description",
            "default",
            "examples",
            "deprecated",
            "readOnly",
            "writeOnly",
        ),
        *("$comment", "$defs", "definitions", "discriminator"),
    )
)
"""What asserts nothing."""

_SAID: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("$ref", "$schema", "format"), (str,)),
    **dict.fromkeys(("anyOf", "allOf", "enum", "required"), (list,)),
    **dict.fromkeys(
        ("minItems", "maxItems", "minLength", "maxLength"), (int,)
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        (int, float),
    ),
    "type": (str, list),
    "properties": (dict,),
    "items": (dict, bool),
    "additionalProperties": (dict, bool),
    "const": (str, int, float, bool, list, dict, type(None)),
}
"""What is checked, and what stands behind it."""

_KINDS: Mapping[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": float,
    "integer": int,
}
"""The type of what is read; a number may be written either way."""

_PARTED = ("$ref", "allOf", "items", "properties", "additionalProperties")
_DRAFTS = re.compile(
    r"https?://json-schema\.org/(draft/20(20-12|19-09)|draft-0[67])/schema#?"
)
_DEFINED = re.compile(r"#/(\$defs|definitions)/([^/~%]+)")


def understood(schema: Any) -> bool:
    """Whether a schema is written in these keywords alone, as they are meant."""
    waiting = [schema]
    seen = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or (isinstance(part, bool) and part is not schema):
            continue
        seen.add(id(part))
        if not isinstance(part, dict) or not all(
            map(_is_known, part, part.values())
        ):
            return False
        waiting += _inside(schema, part)
    return True


def _is_known(keyword: str, constraint: Any) -> bool:
    if keyword in _NOTES or keyword.startswith("x-"):
        return True
    if type(constraint) not in _SAID.get(keyword, ()):
        return False
    if keyword == "type":
        return all(
            isinstance(kind, str) and kind in _KINDS
            for kind in _listed(constraint)
        )
    return keyword != "$schema" or _DRAFTS.fullmatch(constraint) is not None


def _inside(
    root: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Any]:
    """The subschemas of a schema; None in the place of a target that is missing."""
    for keyword, constraint in schema.items():
        if keyword == "$ref":
            yield _target(root, constraint)
        elif keyword == "properties":
            yield from constraint.values()
        elif keyword in ("anyOf", "allOf"):
            yield from constraint
        elif keyword in ("items", "additionalProperties"):
            yield constraint


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """What a reference within the schema means; None if nothing that is understood here."""
    if ref == "#":
        return root
    match = _DEFINED.fullmatch(ref)
    defined = root.get(match[1]) if match else None
    return (
        defined.get(match[2]) if match and isinstance(defined, dict) else None
    )


class Keywords:
    """Finds faults under a schema that is `understood`.

    Args:
        schema: the schema.
        formats: whether a ``format`` counts.
    """

    def __init__(self, schema: Any, *, formats: bool) -> None:
        self._root = schema
        self._formats = formats

    def fault(self, value: Any) -> Path | None:
        """Where a value breaks the schema; None if it keeps it."""
        return self._fault(self._root, value, ())

    def _fault(self, schema: Any, value: Any, path: Path) -> Path | None:
        if isinstance(schema, bool):
            return None if schema else path
        for keyword, constraint in schema.items():
            if (holds := _PLAIN.get(keyword)) is not None:
                if not holds(constraint, value):
                    return path
            elif keyword in ("anyOf", "format"):
                if self._is_none(keyword, constraint, value, path):
                    return path
            elif keyword in _PARTED:
                for inner, part, place in self._parts(
                    schema, keyword, constraint, value, path
                ):
                    if (fault := self._fault(inner, part, place)) is not None:
                        return fault
        return None

    def _is_none(
        self, keyword: str, constraint: Any, value: Any, path: Path
    ) -> bool:
        """Whether a value fails every ``anyOf`` option, or a ``format``."""
        if keyword == "format":
            return self._formats and isinstance(value, str) and "…" in value
        return all(
            self._fault(option, value, path) is not None
            for option in constraint
        )

    def _parts(
        self,
        schema: Any,
        keyword: str,
        constraint: Any,
        value: Any,
        path: Path,
    ) -> Iterable[tuple[Any, Any, Path]]:
        """The subschemas that apply, each with the part of the value and its path."""
        if keyword == "$ref":
            return ((_target(self._root, constraint), value, path),)
        if keyword == "allOf":
            return ((option, value, path) for option in constraint)
        if keyword == "items" and isinstance(value, list):
            inside = (*path, None)
            return ((constraint, item, inside) for item in value)
        if keyword == "properties" and isinstance(value, dict):
            return (
                (constraint[name], value[name], (*path, name))
                for name in constraint
                if name in value
            )
        if (
            keyword == "additionalProperties"
            and isinstance(value, dict)
            and constraint is not True
        ):
            extra = value.keys() - schema.get("properties", {}).keys()
            return ((constraint, value[name], (*path, name)) for name in extra)
        return ()


def _listed(kinds: str | list[Any]) -> list[Any]:
    return [kinds] if isinstance(kinds, str) else kinds


def _is_of(kinds: str | list[str], value: Any) -> bool:
    value_type = type(value)
    if isinstance(kinds, list):
        return any(_is_of(kind, value) for kind in kinds)
    if value_type is _KINDS[kinds]:
        return True
    if kinds == "number":
        return value_type is int
    return kinds == "integer" and value_type is float and value % 1 == 0


def _of(
    kind: type | tuple[type, ...], holds: Callable[[Any, Any], bool]
) -> Callable[..., bool]:
    """An assertion about values of one type; all others keep it."""

    def check(constraint: Any, value: Any) -> bool:
        return (
            not isinstance(value, kind)
            or isinstance(value, bool)
            or holds(constraint, value)
        )

    return check


_PLAIN: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _is_of,
    "const": lambda said, value: encode(said) == encode(value),
    "enum": lambda said, value: encode(value) in map(encode, said),
    "required": _of(
        dict, lambda said, value: all(name in value for name in said)
    ),
    "minItems": _of(list, lambda said, value: len(value) >= said),
    "maxItems": _of(list, lambda said, value: len(value) <= said),
    "minLength": _of(str, lambda said, value: len(value) >= said),
    "maxLength": _of(str, lambda said, value: len(value) <= said),
    "minimum": _of((int, float), lambda said, value: value >= said),
    "maximum": _of((int, float), lambda said, value: value <= said),
    "exclusiveMinimum": _of((int, float), lambda said, value: value > said),
    "exclusiveMaximum": _of((int, float), lambda said, value: value < said),
}
