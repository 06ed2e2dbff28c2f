"""Whether a value keeps a declared schema, and where it does not.

Clients check what a tool returns against the ``outputSchema`` it declared, and raise. So does this,
before anything is sent: by jsonschema-rs (extra ``ullage[mcp]``), which reads every draft, has a
limit on backtracking patterns, and fetches nothing. It is loaded with the first schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ullage.mcp.frames import value_of
from ullage.mcp.shorter import Fault, Path

__all__ = ["faults_of"]


def faults_of(schema: bytes | None) -> tuple[Fault, ...] | None:
    """What finds a fault under a schema: with formats checked first, then without.

    A server may fill a field of some format with something else, and not every client minds.

    Args:
        schema: the schema as JSON; None if none was declared: nothing is at fault then.

    Returns:
        None where it cannot be told: the schema is none, points elsewhere, or jsonschema-rs is
        not installed.
    """
    if schema is None:
        return (lambda raw: None,)
    checks = [_check(schema, formats) for formats in (True, False)]
    return None if None in checks else tuple(check for check in checks if check)


@lru_cache(maxsize=64)
def _check(schema: bytes, formats: bool) -> Fault | None:
    try:
        import jsonschema_rs
    except ImportError:
        return None
    try:
        validator = jsonschema_rs.validator_for(
            value_of(schema), validate_formats=formats, offline=True
        )
    except (ValueError, RecursionError):  # its errors are ValueErrors, as Unreadable is
        return None

    def fault(raw: bytes) -> Path | None:
        try:
            value = value_of(raw)
            if validator.is_valid(value):
                return None
            error: Any = next(iter(validator.iter_errors(value)))
        except (ValueError, StopIteration):
            return ()
        return tuple(step if isinstance(step, str) else None for step in error.instance_path)

    return fault
