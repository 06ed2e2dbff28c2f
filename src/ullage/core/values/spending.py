"""Spending of teams: what each process has booked and reserved of a budget, period by period.

A row holds the newest sums of one process, so that a write that is done twice counts once. Like a
receipt it holds no content, and outlives the conversations that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace


class SpendingKey(Struct, frozen=True, order=True):
    """What a row counts towards.

    Attributes:
        budget: the name of the budget.
        tenant: who spends of it; ``""`` where all its tenants spend of one allowance.
        period: the day or month in the budget's time zone, as ``2026-11-27`` or ``2026-11``.
    """

    budget: str
    tenant: str
    period: str


class SpendingRow(Struct, frozen=True, kw_only=True, rename={"key": "place"}):
    """What one process has booked towards a budget.

    Attributes:
        key: which budget, tenant and period.
        writer: names the process; 16 characters.
        version: grows with each change; a store leaves an older one out. 0: nothing is written,
            and only the sums of others are asked for.
        tokens: spent, prompts and answers.
        usd: spent, at list price.
        calls: how many requests.
        estimated_calls: of those the ones whose usage no provider reported.
        unpriced_calls: of those the ones without a known price, which are in no sum of dollars.
        reserved_tokens: the most that requests under way may come to.
        reserved_usd: the same in dollars.
        lapse_s: after so many seconds without a newer row what is reserved counts no more.
        limit_tokens: the allowance, as the process was told; 0: no limit.
        limit_usd: the same in dollars.
        resets_s: when the period ends, in seconds since 1970.
        written_s: when the row was written, by the store's clock.
    """

    key: SpendingKey
    writer: str
    version: int = 0
    tokens: int = 0
    usd: float = 0.0
    calls: int = 0
    estimated_calls: int = 0
    unpriced_calls: int = 0
    reserved_tokens: int = 0
    reserved_usd: float = 0.0
    lapse_s: int = 0
    limit_tokens: int = 0
    limit_usd: float = 0.0
    resets_s: int = 0
    written_s: int = 0

    @property
    def share(self) -> float:
        """What is spent, as a share of the allowance: that of the unit which is nearer its end."""
        shares = [
            spent / limit
            for spent, limit in (
                (self.tokens, self.limit_tokens),
                (self.usd, self.limit_usd),
            )
            if limit
        ]
        return max(shares, default=0.0)


class SpendingSum(Struct, frozen=True):
    """What other processes have spent and reserved of a budget.

    Attributes:
        tokens: spent.
        usd: spent.
        reserved_tokens: reserved, and not lapsed.
        reserved_usd: the same in dollars.
    """

    tokens: int = 0
    usd: float = 0.0
    reserved_tokens: int = 0
    reserved_usd: float = 0.0


def spending_totals(rows: Iterable[SpendingRow]) -> list[SpendingRow]:
    """The rows of all processes as one for each key, in the order of the keys.

    The allowance is that of the newest row: it may have been changed meanwhile.
    """
    totals: dict[SpendingKey, SpendingRow] = {}
    for row in sorted(rows, key=lambda row: (row.key, row.written_s)):
        earlier = totals.get(row.key)
        totals[row.key] = replace(
            row,
            writer="",
            tokens=row.tokens + (earlier.tokens if earlier else 0),
            usd=row.usd + (earlier.usd if earlier else 0.0),
            calls=row.calls + (earlier.calls if earlier else 0),
            estimated_calls=row.estimated_calls
            + (earlier.estimated_calls if earlier else 0),
            unpriced_calls=row.unpriced_calls
            + (earlier.unpriced_calls if earlier else 0),
        )
    return list(totals.values())
