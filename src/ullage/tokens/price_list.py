"""The list of models' windows and prices that ships with the package: ``prices.json``.

A copy of what genai-prices (MIT licence, github.com/pydantic/genai-prices) says of the models that
a name alone tells: ``make prices`` makes it, and the tests hold it to the release it names. Prices
are in USD per million tokens.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

__all__ = ["Dated", "Listed", "Maker", "Match", "PriceList", "Prices", "price_list"]


class Prices(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tokens cost, in USD per million. None where it is not known.

    Attributes:
        input_usd: fresh prompt tokens.
        output_usd: output tokens, reasoning included.
        cache_read_usd: prompt tokens read from cache; None is priced as fresh.
        cache_write_usd: those written to cache for the vendor's shorter time; None as fresh.
        long_write_usd: those written for the longer time; None as for the shorter.
        audio_input_usd: fresh tokens of sound; None as other tokens, as are the next two.
        audio_cache_read_usd: those read from cache.
        audio_output_usd: output tokens of sound.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    cache_read_usd: float | None = None
    cache_write_usd: float | None = None
    long_write_usd: float | None = None
    audio_input_usd: float | None = None
    audio_cache_read_usd: float | None = None
    audio_output_usd: float | None = None


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which names are meant, in small letters: those that one of these fits."""

    equals: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    all_of: tuple[tuple[Match, ...], ...] = ()

    def fits(self, name: str) -> bool:
        """Whether the name is meant."""
        return (
            name in self.equals
            or name.startswith(self.starts)
            or name.endswith(self.ends)
            or any(part in name for part in self.contains)
            or any(re.search(pattern, name) for pattern in self.regex)
            or any(all(each.fits(name) for each in group) for group in self.all_of)
        )


class Dated(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Prices, and when they are asked.

    Attributes:
        prices: those of a prompt below every tier.
        tiers: prompts of more than so many tokens have other prices, shortest first.
        since: the first day (UTC) of these prices.
        hours: from and until what time of the day (UTC) they are asked; may pass midnight.
    """

    prices: Prices
    tiers: tuple[tuple[int, Prices], ...] = ()
    since: date | None = None
    hours: tuple[time, time] | None = None

    def asked(self, now: datetime) -> bool:
        """Whether these prices are asked at that time (UTC)."""
        if self.hours is not None:
            start, end = self.hours
            at = now.timetz()
            return start <= at < end if start <= end else at >= start or at < end
        return self.since is None or now.date() >= self.since


class Listed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model of the list: its window in tokens, 0 if unknown; of its prices the last rules."""

    id: str
    match: Match
    window: int = 0
    prices: tuple[Dated, ...]

    def at(self, now: datetime) -> Dated:
        """The prices of that time (UTC)."""
        return next((each for each in reversed(self.prices) if each.asked(now)), self.prices[0])


class Maker(Struct, frozen=True, kw_only=True):
    """Whose models a name may mean, and its models."""

    id: str
    match: Match
    models: tuple[Listed, ...]


class PriceList(Struct, frozen=True, kw_only=True):
    """The whole list, where it is from and of which day."""

    source: str
    as_of: date
    makers: tuple[Maker, ...]

    def find(self, name: str) -> tuple[str, Listed] | None:
        """The first maker whose models a name may mean, and its first model of that name."""
        name = name.lower()
        maker = next((each for each in self.makers if each.match.fits(name)), None)
        models = maker.models if maker else ()
        return next(((maker.id, each) for each in models if maker and each.match.fits(name)), None)


@cache
def price_list() -> PriceList:
    """The list as it ships, read once."""
    shipped = Path(__file__).with_name("prices.json")
    return msgspec.json.decode(shipped.read_bytes(), type=PriceList)
