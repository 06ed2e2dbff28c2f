"""Receipts on the server: one row for each place and process, its newest sums in it."""

from __future__ import annotations

from collections.abc import Sequence

from ullage.core.values.receipts import Receipt, in_order
from ullage.stores._receipts import COLUMNS, INTEGERS, KEY, receipt_of, row_of
from ullage.stores.postgres.asking import Asking, Query

_TYPES = {"tenant": "bytea", "is_held_out": "integer", "is_open": "integer"}


def _type_of(column: str) -> str:
    if column in _TYPES:
        return _TYPES[column]
    if column in INTEGERS:
        return "bigint"
    return "text" if column in KEY else "float8"


_GIVEN = ", ".join(f"%({name})s::{_type_of(name)}[]" for name in COLUMNS)
_KEEP = f"""
WITH set AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO ullage.receipts AS kept ({", ".join(COLUMNS)})
SELECT given.* FROM set, unnest({_GIVEN}) AS given ({", ".join(COLUMNS)})
ORDER BY {", ".join(f"given.{name}" for name in KEY)}
ON CONFLICT ({", ".join(KEY)}) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in COLUMNS[len(KEY) :])}
WHERE excluded.requests >= kept.requests
"""
_RECEIPTS = f"""
SELECT {", ".join(COLUMNS)} FROM ullage.receipts WHERE day BETWEEN %(since)s AND %(until)s
"""


def keep(receipts: Sequence[Receipt]) -> Asking[None]:
    """`PostgresStore.keep_receipts`."""
    if receipts:
        columns = map(list, zip(*map(row_of, receipts), strict=True))
        yield (Query(_KEEP, dict(zip(COLUMNS, columns, strict=True))),)


def read(since: str, until: str) -> Asking[tuple[Receipt, ...]]:
    """`PostgresStore.receipts`."""
    (rows,) = yield (Query(_RECEIPTS, {"since": since, "until": until}),)
    receipts = map(receipt_of, rows)
    return tuple(sorted(receipts, key=in_order))
