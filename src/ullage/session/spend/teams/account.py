"""What one process knows of a budget, a tenant and a period: sums and reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.values.spending import (
    SpendingKey,
    SpendingRow,
    SpendingSum,
)
from ullage.core.values.usage import Usage
from ullage.session.spend.allowance import NOTHING, Claim
from ullage.session.spend.teams.settings import CurrentPeriod, TeamBudget

if TYPE_CHECKING:
    from ullage.session.spend.teams.call import TeamCall

LAPSE_S = 90
"""A reservation lapses after so many seconds, unless `TeamBudgets.renew` renews it."""


class TeamAccount:
    """What this process knows of one budget, tenant and period.

    Attributes:
        budget: whose allowance it counts towards.
        period: the day or month that it is of.
        spent: by this process.
        claims: of its calls under way, by the identity of each call.
        calls: how many this process has settled.
        estimated_calls: of those, the calls whose usage nobody reported.
        unpriced_calls: of those, the calls whose model has no price.
        others: what other processes spent and reserved, as far as heard.
        version: of the newest row.
        has_warned: whether it was reported that the allowance is nearly spent.
    """

    def __init__(self, budget: TeamBudget, period: CurrentPeriod) -> None:
        self.budget = budget
        self.period = period
        self.spent = NOTHING
        self.claims: dict[int, Claim] = {}
        self.calls = 0
        self.estimated_calls = 0
        self.unpriced_calls = 0
        self.others = SpendingSum()
        self.version = 0
        self.has_warned = False

    def total(self) -> Claim:
        """What all processes have spent."""
        return self.spent + Claim(self.others.tokens, self.others.usd)

    def reserved(self, *, but: TeamCall | None = None) -> Claim:
        """What calls under way may come to, but for one of this process."""
        own = [claim for name, claim in self.claims.items() if name != id(but)]
        elsewhere = Claim(
            self.others.reserved_tokens, self.others.reserved_usd
        )
        return sum(own, elsewhere)

    def add(
        self, usage: Usage, usd: float | None, *, is_reported: bool
    ) -> None:
        """Add what a call came to.

        Args:
            usage: its tokens.
            usd: its price; None: nobody knows one.
            is_reported: whether its provider reported the tokens.
        """
        self.spent += Claim(usage.total_tokens, usd or 0.0)
        self.calls += 1
        self.estimated_calls += not is_reported
        self.unpriced_calls += usd is None

    def resume(self, row: SpendingRow) -> None:
        """Go on from the row that a process of the same name wrote.

        Args:
            row: its row of this budget, tenant and period.
        """
        self.spent = Claim(row.tokens, row.usd)
        self.calls = row.calls
        self.estimated_calls = row.estimated_calls
        self.unpriced_calls = row.unpriced_calls
        self.version = row.version

    def row(
        self, key: SpendingKey, writer: str, *, is_written: bool
    ) -> SpendingRow:
        """What this process has spent and reserved, as its row in the store.

        Args:
            key: of the budget, the tenant and the period.
            writer: the name of the process.
            is_written: whether the row may be kept. If not, only the sums of others are wanted.
        """
        reserved = sum(self.claims.values(), NOTHING)
        return SpendingRow(
            key=key,
            writer=writer,
            version=self.version if is_written else 0,
            tokens=self.spent.tokens,
            usd=self.spent.usd,
            calls=self.calls,
            estimated_calls=self.estimated_calls,
            unpriced_calls=self.unpriced_calls,
            reserved_tokens=reserved.tokens,
            reserved_usd=reserved.usd,
            lapse_s=LAPSE_S,
            limit_tokens=self.budget.tokens,
            limit_usd=self.budget.usd,
            resets_s=self.period.resets_s,
        )

    def total_row(self, key: SpendingKey) -> SpendingRow:
        """What all processes have spent and reserved, as far as this one has heard.

        Args:
            key: of the budget, the tenant and the period.
        """
        total = self.total()
        reserved = self.reserved()
        return SpendingRow(
            key=key,
            writer="",
            tokens=total.tokens,
            usd=total.usd,
            reserved_tokens=reserved.tokens,
            reserved_usd=reserved.usd,
            limit_tokens=self.budget.tokens,
            limit_usd=self.budget.usd,
            resets_s=self.period.resets_s,
        )
