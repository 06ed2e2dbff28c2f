"""The price profile of a run's own model: the catalogue's prices, and the cache of its vendor.

A model without known prices, or a recording that names none, is priced as the model of the
profile of its wire, and the profile says so (`Profile.in_place_of`): never silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ullage.replay.cost.prices import PROFILES, Cliff, Profile
from ullage.replay.readers import Run
from ullage.tokens.catalog import Prices, lookup
from ullage.tokens.models import family_of

OWN: Literal["own"] = "own"
Wanted: TypeAlias = Profile | Literal["own"]
"""A profile, or that of each run's own model."""


def profiles_for(wanted: Sequence[Wanted], run: Run) -> list[Profile]:
    """The profiles to price a run under."""
    return [
        each if isinstance(each, Profile) else own_profile(run.model, run.format) for each in wanted
    ]


def own_profile(model: str, wire: str) -> Profile:
    """Prices of a model and the terms of its vendor's cache, under the name ``own``."""
    info = lookup(model)
    prices, fresh_usd = info.prices, info.prices.input_usd
    terms = PROFILES[_cache_of(model, wire, prices)]
    if not fresh_usd or prices.output_usd is None:
        return replace(terms, name=OWN, in_place_of=model or "an unnamed model")
    read_usd, write_usd = prices.cache_read_usd, prices.cache_write_usd
    return replace(
        terms,
        name=OWN,
        model=model,
        input_usd=fresh_usd,
        output_usd=prices.output_usd,
        cliffs=tuple(
            Cliff(above_tokens=above, input_usd=tier.input_usd, output_usd=tier.output_usd)
            for above, tier in info.tiers
            if tier.input_usd is not None and tier.output_usd is not None
        ),
        read=1.0 if read_usd is None else round(read_usd / fresh_usd, 6),
        write=1.0 if write_usd is None else round(write_usd / fresh_usd, 6),
        hits="never" if read_usd is None else terms.hits,
        source=f"cache: {terms.name}; prices: the catalogue of models",
    )


def _cache_of(model: str, wire: str, prices: Prices) -> str:
    """The profile whose cache is the model's; that of the wire where the vendor is unknown."""
    family = family_of(model)
    if family == "openai":  # since GPT-5.6 writing is charged
        return "openai-5" if prices.cache_write_usd is None else "openai-5.6"
    if family.startswith("claude"):  # since Opus 5.5 reading costs less than a tenth
        read_usd, tenth_usd = prices.cache_read_usd, (prices.input_usd or 0) / 10
        return "anthropic-5m" if read_usd is None or read_usd >= tenth_usd else "anthropic-5.5"
    if "deepseek" in model:
        return "deepseek"
    is_gemini = family == "gemini" or wire == "gemini"
    return "gemini-implicit" if is_gemini else "openai-5" if wire != "anthropic" else "anthropic-5m"
