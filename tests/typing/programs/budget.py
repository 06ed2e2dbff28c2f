"""One budget for several agents, and what is done when it is spent."""

from typing import Any, assert_type

import ullage


def agents(names: list[str]) -> tuple[ullage.Budget, list[ullage.Session]]:
    budget = ullage.Budget(tokens=850_000)
    return budget, [
        ullage.Session("gpt-5.4", budget=budget, agent=name) for name in names
    ]


def step(
    session: ullage.Session, budget: ullage.Budget, request: dict[str, Any]
) -> ullage.View:
    try:
        return session.fit(request)
    except ullage.BudgetExceeded:
        assert_type(budget.spent.tokens, int)
        assert_type(budget.spent.cost_usd, float | None)
        raise
