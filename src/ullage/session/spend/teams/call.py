"""One request of a client, as far as the budgets of teams are concerned."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from ullage.core.values.events import Event
from ullage.core.values.spending import SpendingKey
from ullage.core.values.usage import Usage
from ullage.session.spend.allowance import Claim
from ullage.session.spend.teams.use import BudgetUse

if TYPE_CHECKING:
    from ullage.session.spend.teams.budgets import TeamBudgets

Acts: TypeAlias = Generator[Callable[[], Any], Any, Any]
"""Steps that yield functions to be called, and are sent what those return."""


class TeamCall:
    """One request of a client, as far as budgets are concerned. Made by `TeamBudgets.call`.

    Attributes:
        tenant: the owner.
        model: that is asked; empty until something was claimed for it.
        claims: what it has reserved, by what it counts towards.
        wire: the name of its wire; ``""`` if it is not known.
        use: of the budget that is nearest its end; None: none covers it.
        sentence: what the model is told at the end of the request; empty: nothing.
        event: what is to be logged, once in a period; None: nothing.
        is_claimed: whether anything was asked for it.
        is_over: whether it was settled.
    """

    def __init__(self, budgets: TeamBudgets, tenant: str) -> None:
        self.tenant = tenant
        self.model = ""
        self.wire = ""
        self.claims: dict[SpendingKey, Claim] = {}
        self.use: BudgetUse | None = None
        self.event: Event | None = None
        self.sentence = ""
        self.is_claimed = False
        self.is_over = False
        self._budgets = budgets

    def claim(
        self,
        model: str,
        prompt_tokens: int,
        output_tokens: int,
        so_far: Usage | None = None,
    ) -> Acts:
        """Steps that reserve the most that the request can come to; see `TeamBudgets.claim`."""
        self.is_claimed = True
        return self._budgets.claim(
            self, model, prompt_tokens, output_tokens, so_far
        )

    def settle(self, usage: Usage | None, estimated_tokens: int = 0) -> None:
        """Put what it came to in the place of what it reserved; see `TeamBudgets.settle`."""
        self._budgets.settle(self, usage, estimated_tokens)
