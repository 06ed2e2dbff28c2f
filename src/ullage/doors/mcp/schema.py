"""Whether a value keeps a declared schema, and where it does not.

Clients check what a tool returns against the ``outputSchema`` it declared, and raise. So does this,
before anything is sent. What generated schemas are written in is checked here (`keywords`); any
other by jsonschema-rs (extra ``mcp``), which reads every draft, has a limit on backtracking
patterns, and fetches nothing. It is loaded with the first schema that needs it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ullage.doors.mcp.frames import UnreadableFrame, value_of
from ullage.doors.mcp.keywords import Keywords, understood
from ullage.doors.mcp.shorter import Fault, Path


def faults_of(schema: bytes | None) -> tuple[Fault, ...] | None:
    """What finds a fault under a schema: with formats checked first, then without.

    A server may fill a field of some format with something else, and not every client minds.

    Args:
        schema: the schema as JSON; None if none was declared: nothing is at fault then.

    Returns:
        None where it cannot be told: the schema is none, points elsewhere, or it needs
        jsonschema-rs, which is not installed.
    """
    if schema is None:
        return (lambda raw: None,)
    checks = [_check(schema, formats) for formats in (True, False)]
    return (
        None if None in checks else tuple(check for check in checks if check)
    )


@lru_cache(maxsize=64)
def _check(schema: bytes, formats: bool) -> Fault | None:
    try:
        read = value_of(schema)
    except UnreadableFrame:
        return None
    return (
        _own(read, formats) if understood(read) else _library_s(read, formats)
    )


def _own(schema: Any, formats: bool) -> Fault:
    keywords = Keywords(schema, formats=formats)

    def fault(raw: bytes) -> Path | None:
        try:
            return keywords.fault(value_of(raw))
        except UnreadableFrame:
            return ()

    return fault


def _library_s(schema: Any, formats: bool) -> Fault | None:
    try:
        import jsonschema_rs

        validator = jsonschema_rs.validator_for(
            schema, validate_formats=formats, offline=True
        )
    except (
        ImportError,
        ValueError,
        RecursionError,
    ):  # its errors are ValueErrors
        return None

    def fault(raw: bytes) -> Path | None:
        try:
            value = value_of(raw)
            if validator.is_valid(value):
                return None
            error: Any = next(iter(validator.iter_errors(value)))
        except (ValueError, StopIteration):
            return ()
        return tuple(
            step if isinstance(step, str) else None
            for step in error.instance_path
        )

    return fault
