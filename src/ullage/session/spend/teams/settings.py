"""A team's budget as a value: the team, how much, for how long, and what happens then."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.session.spend.allowance import check_amount

BudgetPeriod: TypeAlias = Literal["day", "month"]
OnTeamExceeded: TypeAlias = Literal["stop", "warn"]
OnUnpriced: TypeAlias = Literal["stop", "pass"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class CurrentPeriod(NamedTuple):
    """The day or month that a moment is in.

    Attributes:
        name: ``2026-11-27`` or ``2026-11``.
        resets_s: when it ends, in seconds since 1970.
    """

    name: str
    resets_s: int


class TeamBudget(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What tenants may spend in a day or a month.

    Attributes:
        name: as reports, metrics and errors call it.
        tenants: whose requests count; empty: everybody's.
        models: patterns of the models that count, such as ``claude-opus-*``, as requests name
            them; empty: all.
        shared: whether those tenants spend of one allowance; by default each has its own.
        tokens: the most tokens of prompts and answers, cached ones included; 0: no limit.
        usd: the most money, at list price; 0: no limit.
        period: ``"day"`` or ``"month"``.
        timezone: where the day or month begins, by its name of the IANA: ``"Europe/Berlin"``.
        warn_at: the share from which on replies, log and metrics say so; 0: never.
        wrap_up_at: the share from which on the model is asked to come to an end; 0: never.
        on_exceeded: what becomes of requests once all is spent: ``"stop"``, they are refused until
            the period ends; ``"warn"``, they go on.
        tell_model: whether the model is told, at the end of each request, how much is spent.
        unpriced: what becomes of a request under a limit in dollars whose model has no known
            price: ``"stop"``, it is refused; ``"pass"``, it goes on and counts nothing.
    """

    name: str
    tenants: list[str] = []
    models: list[str] = []
    shared: bool = False
    tokens: int = 0
    usd: float = 0.0
    period: BudgetPeriod = "month"
    timezone: str = "UTC"
    warn_at: float = 0.8
    wrap_up_at: float = 0.0
    on_exceeded: OnTeamExceeded = "stop"
    tell_model: bool = False
    unpriced: OnUnpriced = "stop"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        setting = f"budgets.{self.name}"
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                "budgets.name",
                "it is not a name",
                "Use up to 64 letters, digits, dots, hyphens and underscores.",
            )
        check_amount(f"{setting}.tokens", self.tokens, whole=True)
        check_amount(f"{setting}.usd", self.usd, whole=False)
        if not self.tokens and not self.usd:
            raise ConfigError(
                setting,
                "it limits nothing",
                "Give tokens, usd or both.",
            )
        for name in ("warn_at", "wrap_up_at"):
            share = getattr(self, name)
            check_amount(f"{setting}.{name}", share, whole=False)
            if share > 1:
                raise ConfigError(
                    f"{setting}.{name}",
                    f"{share} is not a share",
                    "Give 0.8 for 80 %.",
                )
        self._check_choices(setting)
        self.zone()

    def _check_choices(self, setting: str) -> None:
        for name, choices in (
            ("period", BudgetPeriod),
            ("on_exceeded", OnTeamExceeded),
            ("unpriced", OnUnpriced),
        ):
            value = getattr(self, name)
            if value not in get_args(choices):
                listed = " or ".join(map(repr, get_args(choices)))
                raise ConfigError(
                    f"{setting}.{name}",
                    f"{value!r} is not known",
                    f"Use {listed}.",
                )

    def zone(self) -> ZoneInfo:
        """The time zone.

        Raises:
            ConfigError: this machine knows none of that name.
        """
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(
                f"budgets.{self.name}.timezone",
                f"no time zone {self.timezone!r} is known here",
                "Write UTC or Europe/Berlin. Where no zone is known at all: pip install tzdata.",
            ) from None

    def covers(self, tenant: str, model: str) -> bool:
        """Whether a request counts.

        Args:
            tenant: the owner.
            model: as it names it.
        """
        if self.tenants and tenant not in self.tenants:
            return False
        return not self.models or any(
            fnmatchcase(model, pattern) for pattern in self.models
        )

    def period_at(self, now_s: float) -> CurrentPeriod:
        """The day or month that a moment is in.

        Args:
            now_s: seconds since 1970.
        """
        zone = self.zone()
        now = datetime.fromtimestamp(now_s, zone)
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if self.period == "day":
            end = start + timedelta(days=1)
            name = start.date().isoformat()
        else:
            start = start.replace(day=1)
            end = (start + timedelta(days=32)).replace(day=1)
            name = f"{start:%Y-%m}"
        # by the wall clock of the zone: a day in which clocks change has 23 or 25 hours
        return CurrentPeriod(name, int(end.replace(fold=0).timestamp()))

    @property
    def words(self) -> str:
        """How the period is called: ``today`` or ``this month``."""
        return "today" if self.period == "day" else "this month"
