"""Budgets of teams: what each tenant of a proxy may spend in a day or a month.

    budgets = [TeamBudget(name="research", tenants=["research"], usd=500)]
    ledger = TeamBudgets(budgets, store.book_spending)

Before a call, its process reserves in the store the most that it can come to, and hears what all
others have spent and reserved: one step. The reply replaces the reservation by what was reported.
A process that dies leaves its reservation, which lapses, or is given back by the one that takes its
place (`TeamBudgets.resume`). So

    spent ≤ allowance + the most that one call can come to, for each process

What is written are a process's own sums, in place of its earlier ones: done twice, it counts once.
Where the store cannot be asked, a process goes on by what it heard last and what it spends itself.
"""

from ullage.session.spend.teams.budgets import TeamBudgets
from ullage.session.spend.teams.call import TeamCall
from ullage.session.spend.teams.settings import TeamBudget
from ullage.session.spend.teams.use import BudgetUse

__all__ = ["BudgetUse", "TeamBudget", "TeamBudgets", "TeamCall"]
