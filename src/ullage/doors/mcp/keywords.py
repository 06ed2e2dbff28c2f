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
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), (int,)),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (int, float)
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
    waiting, seen = [schema], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen or (isinstance(each, bool) and each is not schema):
            continue
        seen.add(id(each))
        if not isinstance(each, dict) or not all(map(_is_known, each, each.values())):
            return False
        waiting += _inside(schema, each)
    return True


def _is_known(keyword: str, said: Any) -> bool:
    if keyword in _NOTES or keyword.startswith("x-"):
        return True
    if type(said) not in _SAID.get(keyword, ()):
        return False
    if keyword == "type":
        return all(isinstance(kind, str) and kind in _KINDS for kind in _listed(said))
    return keyword != "$schema" or _DRAFTS.fullmatch(said) is not None


def _inside(root: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that a schema is made of; None for one that is not there."""
    for keyword, said in schema.items():
        if keyword == "$ref":
            yield _target(root, said)
        elif keyword == "properties":
            yield from said.values()
        elif keyword in ("anyOf", "allOf"):
            yield from said
        elif keyword in ("items", "additionalProperties"):
            yield said


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """What a reference within the schema means; None if nothing that is understood here."""
    if ref == "#":
        return root
    found = _DEFINED.fullmatch(ref)
    defined = root.get(found[1]) if found else None
    return defined.get(found[2]) if found and isinstance(defined, dict) else None


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
        for keyword, said in schema.items():
            if (holds := _PLAIN.get(keyword)) is not None:
                if not holds(said, value):
                    return path
            elif keyword in ("anyOf", "format"):
                if self._is_none(keyword, said, value, path):
                    return path
            elif keyword in _PARTED:
                for inner, part, place in self._parts(
                    schema, keyword, said, value, path
                ):
                    if (fault := self._fault(inner, part, place)) is not None:
                        return fault
        return None

    def _is_none(self, keyword: str, said: Any, value: Any, path: Path) -> bool:
        """Whether a value has none of some forms, or not a format."""
        if keyword == "format":
            return self._formats and isinstance(value, str) and "…" in value
        return all(self._fault(each, value, path) is not None for each in said)

    def _parts(
        self, schema: Any, keyword: str, said: Any, value: Any, path: Path
    ) -> Iterable[tuple[Any, Any, Path]]:
        """What must be kept by what, and where that is."""
        if keyword == "$ref":
            return ((_target(self._root, said), value, path),)
        if keyword == "allOf":
            return ((each, value, path) for each in said)
        if keyword == "items" and isinstance(value, list):
            inside = (*path, None)
            return ((said, item, inside) for item in value)
        if keyword == "properties" and isinstance(value, dict):
            return (
                (said[name], value[name], (*path, name))
                for name in said
                if name in value
            )
        if (
            keyword == "additionalProperties"
            and isinstance(value, dict)
            and said is not True
        ):
            others = value.keys() - schema.get("properties", {}).keys()
            return ((said, value[name], (*path, name)) for name in others)
        return ()


def _listed(kinds: str | list[Any]) -> list[Any]:
    return [kinds] if isinstance(kinds, str) else kinds


def _is_of(kinds: str | list[str], value: Any) -> bool:
    of = type(value)
    if isinstance(kinds, list):
        return any(_is_of(kind, value) for kind in kinds)
    if of is _KINDS[kinds]:
        return True
    return (
        of is int
        if kinds == "number"
        else kinds == "integer" and of is float and value % 1 == 0
    )


def _of(
    kind: type | tuple[type, ...], holds: Callable[[Any, Any], bool]
) -> Callable[..., bool]:
    """An assertion about values of one type; all others keep it."""

    def check(said: Any, value: Any) -> bool:
        return (
            not isinstance(value, kind) or isinstance(value, bool) or holds(said, value)
        )

    return check


_PLAIN: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _is_of,
    "const": lambda said, value: encode(said) == encode(value),
    "enum": lambda said, value: encode(value) in map(encode, said),
    "required": _of(dict, lambda said, value: all(name in value for name in said)),
    "minItems": _of(list, lambda said, value: len(value) >= said),
    "maxItems": _of(list, lambda said, value: len(value) <= said),
    "minLength": _of(str, lambda said, value: len(value) >= said),
    "maxLength": _of(str, lambda said, value: len(value) <= said),
    "minimum": _of((int, float), lambda said, value: value >= said),
    "maximum": _of((int, float), lambda said, value: value <= said),
    "exclusiveMinimum": _of((int, float), lambda said, value: value > said),
    "exclusiveMaximum": _of((int, float), lambda said, value: value < said),
}
