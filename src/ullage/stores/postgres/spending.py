"""What a fleet has spent of a budget: each call is booked once, and the sum is one row.

The sum and the calls are written in one statement. It is not waited for until they are on the
disk: after a crash of the server's machine the last half second of sums may be missing, as what was
observed in it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ullage.stores.postgres.asking import Asking, Query


class CallRow(NamedTuple):
    """One call, or by how much a fuller report of it is more.

    Attributes:
        id: tells it from all others.
        agent: the name it is listed under.
        model: the model that was called.
        calls: 1; 0 for a fuller report.
        unpriced: how many calls without a known price it adds.

    The other columns are those of `ullage.session.spend.calls.Spent`.
    """

    id: bytes
    agent: str
    model: str
    fresh_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    estimated_tokens: int
    calls: int
    cost_usd: float
    unpriced: int


_SUMS = CallRow._fields[3:]
_COLUMNS = ", ".join(CallRow._fields)
_BOOK = f"""
WITH set AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), new AS (
    INSERT INTO ullage.calls (budget, {_COLUMNS})
    SELECT %(budget)s, given.* FROM set, unnest(%(id)s::bytea[], %(agent)s::text[],
        %(model)s::text[], %(fresh_tokens)s::bigint[], %(cache_read_tokens)s::bigint[],
        %(cache_write_tokens)s::bigint[], %(output_tokens)s::bigint[],
        %(estimated_tokens)s::bigint[], %(calls)s::bigint[], %(cost_usd)s::float8[],
        %(unpriced)s::bigint[]) AS given ({_COLUMNS})
    ON CONFLICT (id) DO NOTHING RETURNING *)
INSERT INTO ullage.budgets AS sum (name, {", ".join(_SUMS)})
SELECT %(budget)s, {", ".join(f"coalesce(sum({name}), 0)" for name in _SUMS)} FROM new
ON CONFLICT (name) DO UPDATE SET {", ".join(f"{n} = sum.{n} + excluded.{n}" for n in _SUMS)}
RETURNING {", ".join(f"sum.{name}" for name in _SUMS)}
"""
_SPENT = (
    f"SELECT {', '.join(_SUMS)} FROM ullage.budgets WHERE name = %(budget)s"
)


def book_calls(
    budget: str, calls: Sequence[CallRow]
) -> Asking[tuple[float, ...]]:
    """`PostgresStore.book`."""
    if not calls:
        (rows,) = yield (Query(_SPENT, {"budget": budget}),)
        return rows[0] if rows else (0,) * len(_SUMS)
    columns = zip(*(_plain(call) for call in calls), strict=True)
    values = dict(zip(CallRow._fields, map(list, columns), strict=True))
    (rows,) = yield (Query(_BOOK, {"budget": budget, **values}),)
    return rows[0]


def _plain(call: CallRow) -> CallRow:
    """With names that the server takes: no lone surrogate, no NUL."""
    agent, model = (
        name.encode("utf-8", "replace").decode().replace("\0", "?")
        for name in (call.agent, call.model)
    )
    return call._replace(agent=agent, model=model)
