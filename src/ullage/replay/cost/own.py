"""The price profile of a run's own model: the catalogue's prices, and the cache of its vendor.

A model without known prices, or a recording that names none, is priced as the model of the
profile of its wire, and the profile says so (`Profile.in_place_of`): never silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ullage.replay.cost.prices import PROFILES, Cliff, Profile
from ullage.tokens.catalog import ModelInfo, Prices, lookup
from ullage.tokens.models import family_of
from ullage.values.model_names import plain_name

__all__ = ["OWN", "Wanted", "own_profile", "profiles_for"]

OWN: Literal["own"] = "own"
"""The name of the profile that is each run's own."""

Wanted: TypeAlias = Profile | Literal["own"]
"""A profile, or that of each run's own model."""

_BY_WIRE = {
    "anthropic": "anthropic-5m",
    "openai-chat": "openai-5",
    "openai-responses": "openai-5",
    "gemini": "gemini-implicit",
}


def profiles_for(wanted: Sequence[Wanted], model: str, wire: str) -> list[Profile]:
    """The profiles to price a run under.

    Args:
        wanted: those asked for.
        model: the model its recording names, or "".
        wire: the format of its history.
    """
    return [each if isinstance(each, Profile) else own_profile(model, wire) for each in wanted]


def own_profile(model: str, wire: str) -> Profile:
    """Prices of a model and the terms of its vendor's cache, under the name ``own``."""
    info = lookup(model) if model else ModelInfo(id="")
    prices, terms = info.prices, _terms(model, wire, info.prices)
    fresh, output = prices.input_usd, prices.output_usd
    if not fresh or output is None:
        return replace(terms, name=OWN, in_place_of=model or "an unnamed model")
    read = _factor(prices.cache_read_usd, fresh, 1.0)
    return replace(
        terms,
        name=OWN,
        model=model,
        input_usd=fresh,
        output_usd=output,
        cliffs=tuple(_cliffs(info)),
        read=read,
        write=_factor(prices.cache_write_usd, fresh, 1.0),
        hits=terms.hits if read < 1 else "never",
        source=f"cache: {terms.name}; prices: the catalogue of models",
    )


def _terms(model: str, wire: str, prices: Prices) -> Profile:
    """The profile whose cache is the model's; that of the wire where the vendor is unknown."""
    family = family_of(model) if model else "unknown"
    if family.startswith("claude"):
        read = _factor(prices.cache_read_usd, prices.input_usd, 0.1)
        return PROFILES[
            "anthropic-5m" if read >= PROFILES["anthropic-5m"].read else "anthropic-5.5"
        ]
    if family == "openai":  # from GPT-5.6 on writing is charged
        return PROFILES["openai-5" if prices.cache_write_usd is None else "openai-5.6"]
    if family == "gemini":
        return PROFILES["gemini-implicit"]
    return PROFILES["deepseek" if "deepseek" in plain_name(model) else _BY_WIRE[wire]]


def _factor(price_usd: float | None, fresh_usd: float | None, unknown: float) -> float:
    return unknown if price_usd is None or not fresh_usd else round(price_usd / fresh_usd, 6)


def _cliffs(info: ModelInfo) -> list[Cliff]:
    return [
        Cliff(above_tokens=above, input_usd=prices.input_usd, output_usd=prices.output_usd)
        for above, prices in info.tiers
        if prices.input_usd is not None and prices.output_usd is not None
    ]
