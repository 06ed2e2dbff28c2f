"""What may be spent, and when it is used up: the part of a budget that is a value.

Source: multi-stage §3 (Hard Budgeting), DESIGN §7.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from ullage.core.errors import ConfigError

OnExceeded: TypeAlias = Literal["wrap_up", "stop", "warn"]
Unit: TypeAlias = Literal["tokens", "usd"]

WRAP_UP = (
    "The budget of this session is spent, so this is the last reply. Call no more tools. "
    "Summarise your findings with the data that is available: what was asked, what is "
    "established and on what evidence, and what is still open."
)
"""What the model is asked once the allowance is spent, in our own words."""


class Claim(Struct, frozen=True):
    """An amount of both units: what a call may come to at most, or what is spent."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Claim) -> Claim:
        return Claim(self.tokens + other.tokens, self.usd + other.usd)


NOTHING = Claim()


class Allowance(Struct, frozen=True, kw_only=True):
    """What may be spent, and what happens then. See `Budget` for each setting."""

    tokens: int = 0
    usd: float = 0.0
    warn_at: float = 0.8
    on_exceeded: OnExceeded = "wrap_up"
    words: str = WRAP_UP

    def __post_init__(self) -> None:
        check_amount("tokens", self.tokens, whole=True)
        check_amount("usd", self.usd, whole=False)
        check_amount("warn_at", self.warn_at, whole=False)
        if self.warn_at > 1:
            raise ConfigError(
                "warn_at",
                f"{self.warn_at} is not a share",
                "Give 0.8 for 80 %.",
            )
        if self.on_exceeded not in get_args(OnExceeded):
            choices = ", ".join(get_args(OnExceeded))
            raise ConfigError(
                "on_exceeded",
                f"{self.on_exceeded!r} is not known",
                f"Use one of {choices}.",
            )
        if not isinstance(self.words, str) or not self.words.strip():
            raise ConfigError(
                "words",
                "there are none",
                "Give the sentence the model is asked.",
            )

    @property
    def is_limited(self) -> bool:
        """Whether anything is limited at all."""
        return bool(self.tokens or self.usd)

    def used_up(self, claim: Claim, share: float = 1.0) -> Unit | None:
        """The unit of which an amount reaches a share of the allowance, or None.

        Args:
            claim: the amount.
            share: of the allowance, from 0 to 1.
        """
        if self.tokens and claim.tokens >= share * self.tokens:
            return "tokens"
        if self.usd and claim.usd >= share * self.usd:
            return "usd"
        return None


def check_amount(name: str, value: Any, *, whole: bool) -> None:
    """Refuse a value that is no amount: another type, a bool, a negative, NaN or infinity.

    Args:
        name: of the setting, for the error.
        value: what was given.
        whole: whether it has to be a whole number.

    Raises:
        ConfigError: it is not an amount.
    """
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        expected = "a whole number" if whole else "a number"
        raise ConfigError(
            name,
            f"a {type(value).__name__} is not {expected}",
            "Give 0 or more.",
        )
    if not math.isfinite(value) or value < 0:
        raise ConfigError(name, f"{value} is no amount", "Give 0 or more.")
