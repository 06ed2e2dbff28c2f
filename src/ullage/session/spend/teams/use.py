"""How far a budget of a team's is used, and what is said of it: to the model, to the client."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.core.errors import TeamBudgetExceeded
from ullage.session.spend.allowance import Claim, Unit
from ullage.session.spend.teams.settings import CurrentPeriod, TeamBudget

BudgetState: TypeAlias = Literal["within", "warned", "wrap_up", "stopped"]

RETRY_S = 2
"""After so many seconds a request may be tried again that only those under way prevent."""

_FROM = "A note from the proxy, not from the user:"


class BudgetUse(Struct, frozen=True, kw_only=True):
    """How far the budget is used that a request counts towards.

    Attributes:
        budget: its name.
        share: what is spent, as a share of the allowance.
        state: ``"within"``, ``"warned"``, ``"wrap_up"`` (the model is asked to come to an end) or
            ``"stopped"``.
        resets_s: when the period ends, in seconds since 1970.
    """

    budget: str
    share: float
    state: BudgetState
    resets_s: int

    @property
    def percent(self) -> int:
        """The share in percent; 100 only where all is spent."""
        return math.floor(self.share * 100)


def use_of(
    budget: TeamBudget, period: CurrentPeriod, spent: Claim
) -> BudgetUse:
    """How far a budget is used.

    Args:
        budget: the budget.
        period: the present one.
        spent: in it, by all processes.
    """
    share = share_of(budget, spent)
    state: BudgetState = "within"
    if share >= 1 and budget.on_exceeded == "stop":
        state = "stopped"
    elif budget.wrap_up_at and share >= budget.wrap_up_at:
        state = "wrap_up"
    elif budget.warn_at and share >= budget.warn_at:
        state = "warned"
    return BudgetUse(
        budget=budget.name,
        share=share,
        state=state,
        resets_s=period.resets_s,
    )


def share_of(budget: TeamBudget, amount: Claim) -> float:
    """An amount as a share of the allowance, in the unit in which that is more."""
    tokens = amount.tokens / budget.tokens if budget.tokens else 0.0
    return max(tokens, amount.usd / budget.usd if budget.usd else 0.0)


def sentence_of(budget: TeamBudget, use: BudgetUse) -> str:
    """What the model is told at the end of its request; empty: nothing."""
    used = f"{_FROM} {use.percent}% of this budget ({budget.words}) is used."
    if use.state == "wrap_up":
        return (
            f"{used} Come to an end now: make only the calls that you still need, then say what "
            "is done, what is established and what is still open."
        )
    return used if budget.tell_model else ""


def warning_of(budget: TeamBudget, spent: Claim) -> str:
    """What the log says where a budget is nearly spent, with its figures."""
    unit = _unit_of(budget, spent)
    return (
        f"of the budget {budget.name} ({budget.words}) {_amount(unit, spent)} of "
        f"{_amount(unit, Claim(budget.tokens, budget.usd))} is spent"
    )


def exceeded(
    budget: TeamBudget,
    period: CurrentPeriod,
    spent: Claim,
    reserved: Claim,
    now_s: float,
) -> TeamBudgetExceeded:
    """The error of a request that a budget refuses.

    Args:
        budget: the budget.
        period: the present one.
        spent: in it, by all processes.
        reserved: by requests under way.
        now_s: the time, in seconds since 1970.
    """
    unit = _unit_of(budget, spent + reserved)
    limit = Claim(budget.tokens, budget.usd)
    of = f"{_amount(unit, spent)} of {_amount(unit, limit)}"
    if share_of(budget, spent) < 1:
        return TeamBudgetExceeded(
            f"the budget {budget.name} has no room at the moment: {of} is spent, and requests "
            f"under way may need {_amount(unit, reserved)}. Try again in a few seconds.",
            unit,
            getattr(limit, unit),
            getattr(spent, unit),
            getattr(reserved, unit),
            retry_s=RETRY_S,
        )
    reset = datetime.fromtimestamp(period.resets_s, budget.zone())
    return TeamBudgetExceeded(
        f"the budget {budget.name} for {budget.words} is spent: {of}. It starts again on "
        f"{reset:%Y-%m-%d} at {reset:%H:%M} {budget.timezone}. Until then, ask whoever runs this "
        "proxy for more, or use a model that the budget does not cover.",
        unit,
        getattr(limit, unit),
        getattr(spent, unit),
        getattr(reserved, unit),
        retry_s=max(period.resets_s - int(now_s), 1),
        resets_s=period.resets_s,
    )


def unpriced(budget: TeamBudget, model: str) -> TeamBudgetExceeded:
    """The error of a request whose price is not known, under a limit in dollars."""
    return TeamBudgetExceeded(
        f"the budget {budget.name} is in dollars, and no price is known for {model!r}. Use another "
        'model, or ask whoever runs this proxy to limit tokens, or to set unpriced = "pass".',
        "usd",
        budget.usd,
        0.0,
        0.0,
    )


def _unit_of(budget: TeamBudget, amount: Claim) -> Unit:
    """The unit of which an amount uses the larger share."""
    if not budget.tokens:
        return "usd"
    tokens = amount.tokens / budget.tokens
    is_money = budget.usd and amount.usd / budget.usd > tokens
    return "usd" if is_money else "tokens"


def _amount(unit: Unit, amount: Claim) -> str:
    if unit == "usd":
        return f"${amount.usd:,.2f}"
    return f"{amount.tokens:,} tokens"
