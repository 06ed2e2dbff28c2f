"""Windows, output limits and prices of models.

The models of Anthropic, OpenAI and Google stand in a table of our own. Those of others are in
genai-prices, a maintained table that never asks the network unless told to. It brings a dozen
packages and some 200 ms of import, so it is the extra ``prices``, imported at the first lookup of
a model that our table lacks; the tests check our table against it. Ours also has what it leaves
out: limits of the output, some windows, models it does not know yet. Figures are of November 2026.
A model that neither lists has the window of its family (`ullage.core.tokens.families`), and no
prices.

An unknown model is no error: it gets a conservative window, says ``known=False`` and has no
prices. A window holds prompt and output together where the vendor says so; the output reserve
is the caller's to subtract.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.installing import install_remedy
from ullage.core.tokens import families
from ullage.core.values.model_names import dated_name, plain_name

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as _Listed

_MAKERS = ("anthropic", "openai", "google")
_OPEN_MODELS = ("gpt-oss", "gemma")
_A_SLIP = 0.75
"""Names that share this much of their letters are taken for one name with a slip."""
UNKNOWN_WINDOW_TOKENS = 128_000
"""The window of a model we know nothing about."""


class Prices(Struct, frozen=True, kw_only=True):
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


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What is known of a model.

    Attributes:
        id: the model as it was asked for.
        provider: who serves it at these prices; ``""`` if unknown.
        known: whether the window is the model's own, or its family's, and not the default.
        window_tokens: the most a request may hold.
        max_output_tokens: the most one reply may hold, or None.
        prices: those of a prompt below every tier.
        tiers: prompts of more than so many tokens have other prices, shortest first. A cliff,
            not a bracket: every token of the request pays them.
        is_chat: whether conversations are had with it: no model of embeddings, pictures or sound.
        is_billed: whether anybody bills its calls; if not, they cost nothing.
    """

    id: str
    provider: str = ""
    known: bool = False
    window_tokens: int = UNKNOWN_WINDOW_TOKENS
    max_output_tokens: int | None = None
    prices: Prices = Prices()
    tiers: tuple[tuple[int, Prices], ...] = ()
    is_chat: bool = True
    is_billed: bool = True

    @property
    def has_one_window(self) -> bool:
        """Whether it has the same window wherever it is served: only its maker serves it.

        Open models are served with any window that a machine has memory for.
        """
        is_open = plain_name(self.id).startswith(_OPEN_MODELS)
        return self.known and self.provider in _MAKERS and not is_open

    def prices_at(self, prompt_tokens: int) -> Prices:
        """The prices of a request whose prompt is so long."""
        current = self.prices
        for above_tokens, prices in self.tiers:
            if prompt_tokens > above_tokens:
                current = prices
        return current


@lru_cache(maxsize=512)
def lookup(model: str) -> ModelInfo:
    """What is known of a model, by the name a request gives it.

    Prefixes of gateways and clouds, dates and versions of a name are seen through. A name that is
    in no table has its family's window.

    Args:
        model: such as ``"claude-sonnet-4-5-20250929"`` or ``"openai:gpt-6-astra"``.
    """
    name = plain_name(model)
    dated = dated_name(model)
    info = _priced(model, name)
    row = families.snapshot(dated)
    if row is None and not info.known:
        row = families.family(name)
    if row is not None:
        info = replace(
            info,
            known=True,
            window_tokens=row.window_tokens,
            max_output_tokens=row.max_output_tokens,
        )
    return info if families.is_chat(dated) else replace(info, is_chat=False)


def _priced(model: str, name: str) -> ModelInfo:
    """What the tables with prices list of a model."""
    row = _TABLE.get(name)
    if row is not None:
        return _from_row(model, name, row)
    info = _from_library(model, name)
    if info is not None:
        return info
    return ModelInfo(id=model, provider=_maker(name))


def advice(model: str) -> str:
    """What to do about a model that is not known, or ``""``: goes behind words that say so.

    Args:
        model: its name. One that is nearly the name of a known model is taken for a slip.
    """
    (nearest,) = get_close_matches(
        plain_name(model), _TABLE, n=1, cutoff=_A_SLIP
    ) or ("",)
    if nearest:
        return f"; did you mean {nearest}?"
    if find_spec("genai_prices"):
        return ""
    return f"; {install_remedy('prices')} tells of more models"


def _maker(name: str) -> str:
    """Whose model a plain name means; "" if it does not show."""
    if name.startswith("claude"):
        return "anthropic"
    if name.startswith("gemini"):
        return "google"
    return "openai" if name.startswith(("gpt", "o1", "o3", "o4")) else ""


_Cliff: TypeAlias = tuple[int, float, float]
_Price: TypeAlias = float | None
_Row: TypeAlias = tuple[
    int, int, _Price, _Price, _Price, _Price, _Cliff | None
]

_AT_272K: _Cliff = (272_000, 2.0, 1.5)
_AT_200K: _Cliff = (200_000, 2.0, 1.5)
_AT_100K: _Cliff = (100_000, 5.0, 5.0)

# fmt: off
# window, most output; input, output, cache read, cache write; prompt length from which dearer
_TABLE: dict[str, _Row] = {
    "claude-3-opus": (200_000, 4_096, 15.0, 75.0, 1.5, 18.75, None),
    "claude-3-5-haiku": (200_000, 8_192, 0.8, 4.0, 0.08, 1.0, None),
    "claude-3-5-sonnet": (200_000, 8_192, 3.0, 15.0, 0.3, 3.75, None),
    "claude-3-7-sonnet": (200_000, 64_000, 3.0, 15.0, 0.3, 3.75, None),
    "claude-haiku-4-5": (200_000, 64_000, 1.0, 5.0, 0.1, 1.25, None),
    "claude-sonnet-4-0": (200_000, 64_000, 3.0, 15.0, 0.3, 3.75, None),
    "claude-sonnet-4": (200_000, 64_000, 3.0, 15.0, 0.3, 3.75, None),
    "claude-sonnet-4-5": (200_000, 64_000, 3.0, 15.0, 0.3, 3.75, _AT_200K),
    "claude-sonnet-4-6": (1_000_000, 64_000, 3.0, 15.0, 0.3, 3.75, None),
    "claude-opus-4-0": (200_000, 32_000, 15.0, 75.0, 1.5, 18.75, None),
    "claude-opus-4": (200_000, 32_000, 15.0, 75.0, 1.5, 18.75, None),
    "claude-opus-4-1": (200_000, 32_000, 15.0, 75.0, 1.5, 18.75, None),
    "claude-opus-4-5": (200_000, 64_000, 5.0, 25.0, 0.5, 6.25, None),
    "claude-opus-4-6": (1_000_000, 128_000, 5.0, 25.0, 0.5, 6.25, None),
    "claude-opus-4-7": (1_000_000, 128_000, 5.0, 25.0, 0.5, 6.25, None),
    "claude-opus-4-8": (1_000_000, 128_000, 5.0, 25.0, 0.5, 6.25, None),
    "claude-opus-5": (1_000_000, 128_000, 5.0, 25.0, 0.5, 6.25, None),
    "claude-opus-5-5": (1_000_000, 128_000, 4.0, 20.0, 0.2, 5.0, None),
    "claude-sonnet-5": (1_000_000, 128_000, 2.0, 10.0, 0.2, 2.5, None),
    "claude-sonnet-5-5": (1_000_000, 128_000, 2.0, 10.0, 0.1, 2.5, None),
    "claude-haiku-5-5": (1_000_000, 128_000, 0.1, 0.5, 0.01, 0.125, _AT_100K),
    "claude-fable-5": (1_000_000, 128_000, 10.0, 50.0, 1.0, 12.5, None),
    "claude-fable-5-1": (1_000_000, 128_000, 10.0, 50.0, 0.25, 12.5, None),
    "claude-fable-5-2": (1_000_000, 128_000, 8.0, 40.0, 0.2, 10.0, None),
    "gpt-3.5-turbo": (16_385, 4_096, 0.5, 1.5, None, None, None),
    "gpt-4": (8_192, 8_192, 30.0, 60.0, None, None, None),
    "gpt-4-turbo": (128_000, 4_096, 10.0, 30.0, None, None, None),
    "o1": (200_000, 100_000, 15.0, 60.0, 7.5, None, None),
    "o3": (200_000, 100_000, 2.0, 8.0, 0.5, None, None),
    "o3-mini": (200_000, 100_000, 1.1, 4.4, 0.55, None, None),
    "o4-mini": (200_000, 100_000, 1.1, 4.4, 0.275, None, None),
    "gpt-4o": (128_000, 16_384, 2.5, 10.0, 1.25, None, None),
    "gpt-4o-mini": (128_000, 16_384, 0.15, 0.6, 0.075, None, None),
    "gpt-4.1": (1_000_000, 32_768, 2.0, 8.0, 0.5, None, None),
    "gpt-4.1-mini": (1_000_000, 32_768, 0.4, 1.6, 0.1, None, None),
    "gpt-4.1-nano": (1_000_000, 32_768, 0.1, 0.4, 0.025, None, None),
    "gpt-5": (400_000, 128_000, 1.25, 10.0, 0.125, None, None),
    "gpt-5-mini": (400_000, 128_000, 0.25, 2.0, 0.025, None, None),
    "gpt-5-nano": (400_000, 128_000, 0.05, 0.4, 0.005, None, None),
    "gpt-5-codex": (400_000, 128_000, 1.25, 10.0, 0.125, None, None),
    "gpt-5.1": (400_000, 128_000, 1.25, 10.0, 0.125, None, None),
    "gpt-5.1-codex": (400_000, 128_000, 1.25, 10.0, 0.125, None, None),
    "gpt-5.2": (400_000, 128_000, 1.75, 14.0, 0.175, None, None),
    "gpt-5.2-codex": (400_000, 128_000, 1.75, 14.0, 0.175, None, None),
    "gpt-5.3-codex": (400_000, 128_000, 1.75, 14.0, 0.175, None, None),
    "gpt-5.4": (1_050_000, 128_000, 2.5, 15.0, 0.25, None, _AT_272K),
    "gpt-5.4-mini": (400_000, 128_000, 0.75, 4.5, 0.075, None, None),
    "gpt-5.4-nano": (400_000, 128_000, 0.2, 1.25, 0.02, None, None),
    "gpt-5.5": (1_000_000, 128_000, 5.0, 30.0, 0.5, None, _AT_272K),
    "gpt-5.6-sol": (1_050_000, 128_000, 4.0, 20.0, 0.4, 5.0, _AT_272K),
    "gpt-5.6-terra": (1_050_000, 128_000, 2.0, 12.0, 0.2, 2.5, _AT_272K),
    "gpt-6-astra": (1_050_000, 128_000, 10.0, 50.0, 1.0, 12.5, _AT_272K),
    "gpt-6-sol": (1_050_000, 128_000, 2.0, 10.0, 0.2, 2.5, _AT_272K),
    "gpt-6-luna": (1_050_000, 128_000, 0.1, 0.5, 0.01, 0.125, _AT_272K),
    "gpt-6.1-sol": (1_050_000, 128_000, 2.0, 10.0, 0.1, 2.5, _AT_272K),
    "gpt-6.1-terra": (1_050_000, 128_000, 1.0, 5.0, 0.05, 1.25, _AT_272K),
    # released on 2026-11-17: the window is published, cache prices are not
    "gpt-6.2-astra": (1_050_000, 128_000, None, None, None, None, None),
    "gemini-2.0-flash": (1_000_000, 8_192, 0.1, 0.4, 0.025, None, None),
    "gemini-2.5-pro": (1_048_576, 65_536, 1.25, 10.0, 0.125, None, _AT_200K),
    "gemini-2.5-flash": (1_048_576, 65_536, 0.3, 2.5, 0.03, None, None),
    "gemini-2.5-flash-lite": (1_000_000, 65_536, 0.1, 0.4, 0.01, None, None),
    "gemini-3-pro-preview": (1_048_576, 65_536, 2.0, 12.0, 0.2, None, _AT_200K),
    "gemini-3.1-pro-preview": (1_048_576, 65_536, 2.0, 12.0, 0.2, None, _AT_200K),
    "gemini-3.1-flash-lite": (1_000_000, 65_536, 0.25, 1.5, 0.025, None, None),
    "gemini-3-flash-preview": (1_000_000, 65_536, 0.5, 3.0, 0.05, None, None),
    "gemini-3.5-flash": (1_000_000, 65_536, 1.5, 9.0, 0.15, None, None),
    "gemini-3.8-flash": (1_000_000, 65_536, 0.75, 3.75, 0.075, None, None),
    "gemini-4-argon": (1_048_576, 65_536, 2.0, 10.0, 0.1, None, None),
}

NAMES = tuple(_TABLE)
"""The models of our own table, by their plain names."""

# of those whose audio has a price of its own: input, cache read
_AUDIO: dict[str, tuple[float, float]] = {
    "gemini-2.0-flash": (0.7, 0.175),
    "gemini-2.5-flash": (1.0, 0.1),
    "gemini-2.5-flash-lite": (0.3, 0.03),
    "gemini-3.1-flash-lite": (0.5, 0.05),
    "gemini-3-flash-preview": (1.0, 0.1),
}
# what the longer of two times in the cache costs, of the price of the shorter
_LONG_WRITE = {"anthropic": 1.6, "openai": 2.0}
# fmt: on


def _from_row(model: str, name: str, row: _Row) -> ModelInfo:
    """A row of our table as a value."""
    window, most, fresh, output, read, write, cliff = row
    maker = _maker(name)
    audio, audio_read = _AUDIO.get(name, (None, None))
    prices = Prices(
        input_usd=fresh,
        output_usd=output,
        cache_read_usd=read,
        cache_write_usd=write,
        long_write_usd=None
        if write is None
        else write * _LONG_WRITE.get(maker, 1.0),
        audio_input_usd=audio,
        audio_cache_read_usd=audio_read,
    )
    return ModelInfo(
        id=model,
        provider=maker,
        known=True,
        window_tokens=window,
        max_output_tokens=most,
        prices=prices,
        tiers=() if cliff is None else ((cliff[0], _beyond(prices, cliff)),),
    )


def _beyond(prices: Prices, cliff: _Cliff) -> Prices:
    """The dearer prices: everything of the prompt by one factor, the output by another."""
    _, prompt_factor, output_factor = cliff
    dearer: dict[str, float] = {}
    for name in _COLUMNS:
        usd = getattr(prices, name)
        if usd is not None:
            factor = output_factor if "output" in name else prompt_factor
            dearer[name] = usd * factor
    return Prices(**dearer)


_COLUMNS = {
    "input_usd": "input_mtok",
    "output_usd": "output_mtok",
    "cache_read_usd": "cache_read_mtok",
    "cache_write_usd": "cache_write_mtok",
    "long_write_usd": "cache_write_1h_mtok",
    "audio_input_usd": "input_audio_mtok",
    "audio_cache_read_usd": "cache_audio_read_mtok",
    "audio_output_usd": "output_audio_mtok",
}
"""Our prices, and what the library calls them."""


def _gaps(name: str) -> tuple[int, int | None]:
    """Window and output limit of what the library leaves out; (0, None) if we do neither."""
    if name in _TABLE:
        return _TABLE[name][:2]
    row = families.family(name)
    return (
        (0, None)
        if row is None
        else (row.window_tokens, row.max_output_tokens)
    )


def _from_library(model: str, name: str) -> ModelInfo | None:
    """What genai-prices says, its gaps filled; None if it does not know the model."""
    entry = _listed(model, name)
    if entry is None:
        return None
    provider, listed = entry
    our_window, most = _gaps(name)
    window = listed.context_window or our_window
    columns = _columns_of(listed)
    return ModelInfo(
        id=model,
        provider=provider,
        known=bool(window),
        window_tokens=window or UNKNOWN_WINDOW_TOKENS,
        max_output_tokens=most,
        prices=_prices(columns, 0),
        tiers=_tiers_of(columns),
    )


def _columns_of(listed: _Listed) -> dict[str, Any]:
    """The library's prices of today, by our names."""
    prices = listed.get_prices(datetime.now(UTC))
    columns = {}
    for name, library_name in _COLUMNS.items():
        columns[name] = getattr(prices, library_name, None)
    return columns


def _tiers_of(columns: Mapping[str, Any]) -> tuple[tuple[int, Prices], ...]:
    """The prices of longer prompts; none where prompt or output has no price at all."""
    prices = _prices(columns, 0)
    if prices.input_usd is None or prices.output_usd is None:
        return ()
    starts = set[int]()
    for column in columns.values():
        starts.update(tier.start for tier in getattr(column, "tiers", ()))
    return tuple((start, _prices(columns, start)) for start in sorted(starts))


def _listed(model: str, name: str) -> tuple[str, _Listed] | None:
    """The library's entry: as asked, then by the plain name."""
    if find_spec("genai_prices") is None:
        return None
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    for reference in (model, name):
        try:
            provider, listed = snapshot.find_provider_model(
                reference, None, None, None
            )
        except LookupError:
            continue
        return provider.id, listed
    return None


def _prices(columns: Mapping[str, Any], start: int) -> Prices:
    """The library's prices for prompts just over ``start`` tokens."""
    return Prices(
        **{name: _above(column, start) for name, column in columns.items()}
    )


def _above(column: Any, start: int) -> float | None:
    """A column's price for prompts just over ``start`` tokens."""
    if column is None:
        return None
    price = getattr(column, "base", column)
    for tier in getattr(column, "tiers", ()):
        if tier.start <= start:
            price = tier.price
    return float(price)
