"""What teams spend, on the server: one row for each budget, tenant, period and process.

Written and summed in one statement. Two processes that reserve at the same moment do not see each
other's row, so that together they may spend one call each more than is allowed; none waits for
another. What is reserved lapses by the server's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from ullage.core.values.spending import SpendingRow, SpendingSum
from ullage.stores._spending import (
    INTEGERS,
    PLACE,
    SPENDING_COLUMNS,
    row_of_spending,
    spending_row,
)
from ullage.stores.postgres.asking import NOW, Asking, Query


def _type_of(column: str) -> str:
    if column == "tenant":
        return "bytea"
    if column in INTEGERS:
        return "bigint"
    return "text" if column in PLACE else "float8"


_GIVEN = ", ".join(
    f"%({name})s::{_type_of(name)}[]" for name in SPENDING_COLUMNS
)
_WRITTEN = ", ".join(
    f"{NOW}" if name == "written_s" else f"given.{name}"
    for name in SPENDING_COLUMNS
)
_SET = ", ".join(
    f"{name} = excluded.{name}" for name in SPENDING_COLUMNS[len(PLACE) :]
)
_IS_LIVE = f"FILTER (WHERE kept.written_s + kept.lapse_s > {NOW})"
_BOOK = f"""
WITH set AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
given AS MATERIALIZED (
    SELECT given.* FROM set, unnest({_GIVEN}) WITH ORDINALITY
        AS given ({", ".join(SPENDING_COLUMNS)}, place)),
written AS (
    INSERT INTO ullage.spending AS kept ({", ".join(SPENDING_COLUMNS)})
    SELECT {_WRITTEN} FROM given WHERE given.version > 0
    ORDER BY {", ".join(f"given.{name}" for name in PLACE)}
    ON CONFLICT ({", ".join(PLACE)}) DO UPDATE SET {_SET}
    WHERE excluded.version >= kept.version)
SELECT coalesce(sum(kept.tokens), 0)::bigint, coalesce(sum(kept.usd), 0)::float8,
    coalesce(sum(kept.reserved_tokens) {_IS_LIVE}, 0)::bigint,
    coalesce(sum(kept.reserved_usd) {_IS_LIVE}, 0)::float8
FROM given LEFT JOIN ullage.spending AS kept
    ON (kept.budget, kept.tenant, kept.period) = (given.budget, given.tenant, given.period)
    AND kept.writer <> given.writer
GROUP BY given.place ORDER BY given.place
"""
_SPENDING = f"""
SELECT {", ".join(SPENDING_COLUMNS)} FROM ullage.spending WHERE resets_s > %(since)s
ORDER BY {", ".join(PLACE)}
"""


def book(rows: Sequence[SpendingRow]) -> Asking[tuple[SpendingSum, ...]]:
    """`PostgresStore.book_spending`."""
    if not rows:
        return ()
    columns = map(
        list, zip(*(spending_row(row, 0) for row in rows), strict=True)
    )
    values = dict(zip(SPENDING_COLUMNS, columns, strict=True))
    (sums,) = yield (Query(_BOOK, values),)
    return tuple(SpendingSum(*row) for row in sums)


def read(since_s: int) -> Asking[tuple[SpendingRow, ...]]:
    """`PostgresStore.spending`."""
    (rows,) = yield (Query(_SPENDING, {"since": since_s}),)
    return tuple(map(row_of_spending, rows))
