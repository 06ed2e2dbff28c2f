"""Windows, output limits and prices of models.

Prices and most windows come from the list that ships with the package (``price_list``), a copy
of a maintained one. A table of our own has what that lacks: the limit of the output, windows it
leaves out, models it does not know yet. Figures are of November 2026.

An unknown model is no error: it gets a conservative window, says ``known=False`` and has no
prices. A window holds prompt and output together where the vendor says so; the output reserve
is the caller's to subtract.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ullage.tokens.price_list import Prices, price_list
from ullage.values.model_names import plain_name

__all__ = ["NAMES", "UNKNOWN_WINDOW_TOKENS", "ModelInfo", "Prices", "lookup"]

UNKNOWN_WINDOW_TOKENS = 128_000
"""The window of a model we know nothing about."""


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What is known of a model.

    Attributes:
        id: the model as it was asked for.
        provider: who serves it at these prices; ``""`` if unknown.
        known: whether the window is the model's own and not the default.
        window_tokens: the most a request may hold.
        max_output_tokens: the most one reply may hold, or None.
        prices: those of a prompt below every tier, at the time of the first look.
        tiers: prompts of more than so many tokens have other prices, shortest first. A cliff,
            not a bracket: every token of the request pays them.
    """

    id: str
    provider: str = ""
    known: bool = False
    window_tokens: int = UNKNOWN_WINDOW_TOKENS
    max_output_tokens: int | None = None
    prices: Prices = Prices()
    tiers: tuple[tuple[int, Prices], ...] = ()

    def prices_at(self, prompt_tokens: int) -> Prices:
        """The prices of a request whose prompt is so long."""
        found = self.prices
        for above_tokens, prices in self.tiers:
            if prompt_tokens > above_tokens:
                found = prices
        return found


@lru_cache(maxsize=512)
def lookup(model: str) -> ModelInfo:
    """What is known of a model, by the name a request gives it, at its maker's prices.

    Prefixes of gateways and clouds, dates and versions of a name are seen through.

    Args:
        model: such as ``"claude-sonnet-4-5-20250929"`` or ``"openai:gpt-6-astra"``.
    """
    name = plain_name(model)
    window, most = _limits(name)
    asked = (name,) if name in _TABLE else (model, name)
    found = next(filter(None, map(price_list().find, asked)), None)
    if found is None:
        return _unlisted(model, name)
    provider, listed = found
    dated = listed.at(datetime.now(UTC))
    window = listed.window or window
    return ModelInfo(
        id=model,
        provider=provider,
        known=bool(window),
        window_tokens=window or UNKNOWN_WINDOW_TOKENS,
        max_output_tokens=most,
        prices=_with_long_write(provider, dated.prices),
        tiers=tuple((above, _with_long_write(provider, prices)) for above, prices in dated.tiers),
    )


def _unlisted(model: str, name: str) -> ModelInfo:
    """A model without prices: of our table, or of nowhere."""
    known, provider = name in _TABLE, _maker(name)
    window, most = _TABLE.get(name, (UNKNOWN_WINDOW_TOKENS, None))
    return ModelInfo(
        id=model, provider=provider, known=known, window_tokens=window, max_output_tokens=most
    )


def _maker(name: str) -> str:
    """Whose model a plain name means; "" if it does not show."""
    if name.startswith("claude"):
        return "anthropic"
    return "google" if name.startswith("gemini") else "openai" if name.startswith("gpt") else ""


# fmt: off
# window, most output
_TABLE: dict[str, tuple[int, int]] = {
    "claude-haiku-4-5": (200_000, 64_000),
    "claude-sonnet-4-0": (200_000, 64_000),
    "claude-sonnet-4": (200_000, 64_000),
    "claude-sonnet-4-5": (200_000, 64_000),
    "claude-sonnet-4-6": (1_000_000, 64_000),
    "claude-opus-4-1": (200_000, 32_000),
    "claude-opus-4-5": (200_000, 64_000),
    "claude-opus-4-6": (1_000_000, 128_000),
    "claude-opus-4-7": (1_000_000, 128_000),
    "claude-opus-4-8": (1_000_000, 128_000),
    "claude-opus-5": (1_000_000, 128_000),
    "claude-opus-5-5": (1_000_000, 128_000),
    "claude-sonnet-5": (1_000_000, 128_000),
    "claude-sonnet-5-5": (1_000_000, 128_000),
    "claude-haiku-5-5": (1_000_000, 128_000),
    "claude-fable-5": (1_000_000, 128_000),
    "claude-fable-5-1": (1_000_000, 128_000),
    "claude-fable-5-2": (1_000_000, 128_000),
    "gpt-4o": (128_000, 16_384),
    "gpt-4o-mini": (128_000, 16_384),
    "gpt-4.1": (1_000_000, 32_768),
    "gpt-4.1-mini": (1_000_000, 32_768),
    "gpt-5": (400_000, 128_000),
    "gpt-5-mini": (400_000, 128_000),
    "gpt-5.1": (400_000, 128_000),
    "gpt-5.2": (400_000, 128_000),
    "gpt-5.4": (1_050_000, 128_000),
    "gpt-5.5": (1_000_000, 128_000),
    "gpt-5.6-sol": (1_050_000, 128_000),
    "gpt-5.6-terra": (1_050_000, 128_000),
    "gpt-6-astra": (1_050_000, 128_000),
    "gpt-6-sol": (1_050_000, 128_000),
    "gpt-6-luna": (1_050_000, 128_000),
    "gpt-6.1-sol": (1_050_000, 128_000),
    "gpt-6.1-terra": (1_050_000, 128_000),
    # released on 2026-11-17: the window is published, prices are not
    "gpt-6.2-astra": (1_050_000, 128_000),
    "gemini-2.5-pro": (1_048_576, 65_536),
    "gemini-2.5-flash": (1_048_576, 65_536),
    "gemini-3-pro-preview": (1_048_576, 65_536),
    "gemini-3.1-pro-preview": (1_048_576, 65_536),
    "gemini-3-flash-preview": (1_000_000, 65_536),
    "gemini-3.5-flash": (1_000_000, 65_536),
    "gemini-3.8-flash": (1_000_000, 65_536),
    "gemini-4-argon": (1_048_576, 65_536),
}

NAMES = tuple(_TABLE)
"""The models of our own table, by their plain names."""

# what the list leaves out, by the start of the plain name: window (0: as listed), output
_GAPS: tuple[tuple[str, int, int], ...] = (
    ("claude-3-5", 0, 8_192), ("claude-3-7", 0, 64_000), ("claude-3", 0, 4_096),
    ("claude-2", 0, 4_096), ("claude-opus-4", 0, 32_000),
    ("gpt-4.5", 128_000, 16_384), ("gpt-4.1", 0, 32_768), ("gpt-4o", 128_000, 16_384),
    ("gpt-4-turbo", 0, 4_096), ("gpt-4", 0, 8_192), ("gpt-3.5", 0, 4_096),
    ("gpt-5", 0, 128_000), ("gpt-6", 1_050_000, 128_000),
    ("o1", 0, 100_000), ("o3", 0, 100_000), ("o4", 0, 100_000),
    ("gemini-1.5", 1_000_000, 8_192), ("gemini-2.0", 1_000_000, 8_192),
    ("gemini-2.5", 1_048_576, 65_536), ("gemini-3", 1_048_576, 65_536),
)
# fmt: on


def _limits(name: str) -> tuple[int, int | None]:
    """Window and output limit of what the list leaves out; (0, None) if we do too."""
    gaps = ((window, most) for start, window, most in _GAPS if name.startswith(start))
    return _TABLE.get(name) or next(gaps, (0, None))


# what the longer of two times in the cache costs, of the price of the shorter
_LONG_WRITE = {"anthropic": 1.6, "openai": 2.0}


def _with_long_write(provider: str, prices: Prices) -> Prices:
    """Prices that tell what the longer time in the cache costs, where its maker says so."""
    write = prices.cache_write_usd
    if write is None or prices.long_write_usd is not None or provider not in _LONG_WRITE:
        return prices
    return replace(prices, long_write_usd=write * _LONG_WRITE[provider])
