"""Calls of a model as values: what each one used and cost, and sums of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add, sub
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.core.values.usage import Usage

By: TypeAlias = Literal["agent", "model"]


class Spent(Struct, frozen=True, kw_only=True):
    """The sum of some calls.

    Attributes:
        usage: their tokens by class.
        cost_usd: what they cost at list price; None once a call had no known price.
        calls: how many there were.
        estimated_tokens: of their tokens, those that nobody reported: our estimate.
    """

    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    calls: int = 0
    estimated_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompts and outputs together, cached tokens included."""
        return self.usage.total_tokens

    def __add__(self, other: Spent) -> Spent:
        """The sum of both; its cost is known if both are."""
        return self._with(add, other)

    def __sub__(self, other: Spent) -> Spent:
        """The sum without calls that were in it."""
        return self._with(sub, other)

    def _with(
        self, operation: Callable[[Any, Any], Any], operand: Spent
    ) -> Spent:
        is_known = self.cost_usd is not None and operand.cost_usd is not None
        return Spent(
            usage=operation(self.usage, operand.usage),
            cost_usd=operation(self.cost_usd, operand.cost_usd)
            if is_known
            else None,
            calls=operation(self.calls, operand.calls),
            estimated_tokens=operation(
                self.estimated_tokens, operand.estimated_tokens
            ),
        )


class Call(Struct, frozen=True, kw_only=True):
    """One call of a model, as it was paid for.

    Attributes:
        agent: the name of who called, as its session was given it.
        model: the model of the request.
        usage: tokens by class: the provider's own figures, if ``reported``.
        cost_usd: their list price, or None if a price is not known.
        estimated_tokens: what we had taken the prompt for; 0 outside a session.
        reported: whether the provider reported the usage. If not, it is our estimate of the
            prompt, and of the output it has no more than was reported.
        is_billed: whether anybody bills it: nobody does a model on a machine of one's own.
    """

    agent: str
    model: str
    usage: Usage
    cost_usd: float | None
    estimated_tokens: int = 0
    reported: bool = True
    is_billed: bool = True

    @property
    def spent(self) -> Spent:
        """The sum of this call alone."""
        estimated = 0 if self.reported else self.usage.total_tokens
        return Spent(
            usage=self.usage,
            cost_usd=self.cost_usd,
            calls=1,
            estimated_tokens=estimated,
        )


def totals(calls: Iterable[Call], by: By) -> dict[str, Spent]:
    """Sum up calls by agent or by model, in the order each first called.

    Args:
        calls: the calls.
        by: ``"agent"`` or ``"model"``.
    """
    sums: dict[str, Spent] = {}
    for call in calls:
        name = call.agent if by == "agent" else call.model
        sums[name] = sums.get(name, Spent()) + call.spent
    return sums
