"""Price profiles: the terms of a provider's prompt cache and its prices, as dated data files.

A profile is one TOML file in this folder, or any other file of the same shape. Prices are
those of one model, in US dollars per million tokens; cache terms are factors of its input
price (`metrics` M3, `provider-rules` §3). A file that leaves out a term of the cache is
refused. A price or a time to live that is not known is left out, and what depends on it is
reported as unknown: never as 0.

Beside them a run has one of its own: the catalogue's prices of its model, and the cache of its
vendor. A model without known prices, or a recording that names none, is priced as the model of
the profile of its wire, and the profile says so (`Profile.in_place_of`): never silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.errors import ConfigError
from ullage.core.tokens.catalog import Prices
from ullage.core.tokens.models import family_of
from ullage.doors.host import lookup
from ullage.tools.replay.readers import Run
from ullage.wires import wire_named


class Cliff(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dearer prices of a whole request whose prompt is longer than ``above_tokens``.

    US dollars per million tokens. Every token of the request pays them.
    """

    above_tokens: int
    input_usd: float
    output_usd: float


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terms of one provider's cache, and the prices of one of its models.

    Attributes:
        name: what to call it.
        write: price of a token written to the cache, as a factor of the input price.
        read: price of a token read from it, as a factor of the input price.
        min_tokens: the shortest prefix that is cached.
        step_tokens: prefixes are cached in whole steps of so many tokens, from the start.
        recomputed_tokens: so many at the end are worked out, even where all of them are cached.
        hits: ``"prefix"``: any common prefix; ``"entry"``: only up to where an earlier
            request had set a marker; ``"never"``: there is no cache.
        max_breakpoints: markers that one request may set; only for ``"entry"``.
        look_back_blocks: how many blocks a marker looks back for an entry, its own
            included; None: any number.
        remembered: how many of the newest entries are looked for; None: all.
        ttl_s: seconds that an entry lives after it was last read or written; None: the
            provider does not say.
        model: the model whose prices these are.
        in_place_of: the model that is priced as that one, for its own prices are not known.
        input_usd: price of a fresh prompt token; None: not known.
        output_usd: price of an output token; None: not known.
        cliffs: dearer prices of longer prompts, shortest first.
        as_of: when the terms were read, ISO date.
        source: where.
    """

    name: str
    write: float
    read: float
    min_tokens: int
    step_tokens: int = 1
    recomputed_tokens: int = 0
    hits: Literal["prefix", "entry", "never"] = "prefix"
    max_breakpoints: int = 4
    look_back_blocks: int | None = None
    remembered: int | None = None
    ttl_s: float | None = None
    model: str = ""
    in_place_of: str = ""
    input_usd: float | None = None
    output_usd: float | None = None
    cliffs: tuple[Cliff, ...] = ()
    as_of: str
    source: str

    @property
    def is_free(self) -> bool:
        """Whether no token costs money: a server of one's own. Then its work is what counts."""
        return self.input_usd == 0 and self.output_usd == 0

    @property
    def whose(self) -> str:
        """Whose prices they are, in words."""
        unknown = (
            f" (no price is known of {self.in_place_of})"
            if self.in_place_of
            else ""
        )
        return f"{self.model or 'no model'}{unknown}"

    def prices(self, prompt_tokens: int) -> tuple[float, float] | None:
        """Input and output price of a request of this length, or None if one is not known."""
        if self.input_usd is None or self.output_usd is None:
            return None
        pair = (self.input_usd, self.output_usd)
        for cliff in self.cliffs:
            if prompt_tokens > cliff.above_tokens:
                pair = (cliff.input_usd, cliff.output_usd)
        return pair


def profile_at(path: Path) -> Profile:
    """The profile in a TOML file.

    Raises:
        ConfigError: it cannot be read, or it leaves out a term, or it has one unknown here.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Profile)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        remedy = "Give a TOML file with the fields of the profiles in ullage/replay/cost/prices."
        raise ConfigError("cache", f"{path.name!r}: {error}", remedy) from None


def profile_named(name: str) -> Profile:
    """The profile that ships under a name, or that of a TOML file.

    Raises:
        ConfigError: there is none.
    """
    if name.endswith(".toml"):
        return profile_at(Path(name))
    if name not in PROFILES:
        remedy = f"Use one of {', '.join(map(repr, PROFILES))}, or the path of a TOML file."
        raise ConfigError(
            "cache", f"there is no price profile {name!r}", remedy
        )
    return PROFILES[name]


_SHIPPED = map(profile_at, sorted(Path(__file__).parent.glob("*.toml")))
PROFILES: dict[str, Profile] = {profile.name: profile for profile in _SHIPPED}
"""The profiles that ship, by name. Terms change: each has its date and source."""


OWN: Literal["own"] = "own"
ProfileChoice: TypeAlias = Profile | Literal["own"]
"""A profile, or that of each run's own model."""


def profiles_for(choices: Sequence[ProfileChoice], run: Run) -> list[Profile]:
    """The profiles to price a run under."""
    return [
        choice
        if isinstance(choice, Profile)
        else own_profile(run.model, run.format)
        for choice in choices
    ]


def own_profile(model: str, wire: str) -> Profile:
    """Prices of a model and the terms of its vendor's cache, under the name ``own``."""
    of_wire = PROFILES[wire_named(wire).price_profile]
    # Whoever made the model, it runs on the user's own machine.
    if of_wire.is_free:
        return replace(of_wire, name=OWN, model=model)
    info = lookup(model)
    prices = info.prices
    fresh_usd = info.prices.input_usd
    terms = PROFILES[_cache_of(model, wire, prices)]
    if not fresh_usd or prices.output_usd is None:
        return replace(
            terms, name=OWN, in_place_of=model or "an unnamed model"
        )
    read_usd = prices.cache_read_usd
    write_usd = prices.cache_write_usd
    return replace(
        terms,
        name=OWN,
        model=model,
        input_usd=fresh_usd,
        output_usd=prices.output_usd,
        cliffs=tuple(
            Cliff(
                above_tokens=above_tokens,
                input_usd=tier.input_usd,
                output_usd=tier.output_usd,
            )
            for above_tokens, tier in info.tiers
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
    if family.startswith(
        "claude"
    ):  # since Opus 5.5 reading costs less than a tenth
        read_usd = prices.cache_read_usd
        tenth_usd = (prices.input_usd or 0) / 10
        return (
            "anthropic-5m"
            if read_usd is None or read_usd >= tenth_usd
            else "anthropic-5.5"
        )
    if "deepseek" in model:
        return "deepseek"
    if family == "gemini":
        return "gemini-implicit"
    return wire_named(wire).price_profile
