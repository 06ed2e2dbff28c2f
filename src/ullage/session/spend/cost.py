"""What a reply costs.

Each class of tokens has its price: fresh, read from cache, written to cache, output; what was
heard or spoken has its own where the vendor has one, as has what is cached for longer. The
length of the whole prompt chooses the tier, and the tier prices the whole request, its output
included (`provider-rules` §3.4). An unknown price makes the cost unknown, never nought. A
model that runs on a machine of one's own is billed by nobody: its calls cost nothing, and say so.
"""

from __future__ import annotations

from msgspec.structs import replace

from ullage.core.tokens.catalog import ModelInfo, Prices, lookup
from ullage.core.values.usage import Modalities, Usage
from ullage.session.spend.calls import Call
from ullage.wires import is_billed

_MILLION = 1_000_000
_TEXT = Modalities()
_NOTHING = Prices(input_usd=0.0, output_usd=0.0)


def price_of(model: str, wire: str = "") -> ModelInfo:
    """What is known of a model, with what its calls cost on a wire.

    Args:
        model: the model that is called.
        wire: the name of the wire; ``""``: the price is the model's.
    """
    info = lookup(model)
    if is_billed(wire, model):
        return info
    return replace(info, prices=_NOTHING, tiers=(), is_billed=False)


def cost_of(usage: Usage, model: str, wire: str = "") -> float | None:
    """The cost of one reply in USD: see `price_of` and `cost_usd`.

    Args:
        usage: tokens of the request, each in one class.
        model: the model that was called.
        wire: the name of the wire; ``""``: the price is the model's.
    """
    return cost_usd(usage, price_of(model, wire))


def cost_usd(usage: Usage, info: ModelInfo) -> float | None:
    """The cost of one reply in USD, or None if the model's prices are unknown.

    Only for the usage of a single request: a sum of several is longer than any of them and
    could fall into a tier none was in.

    Args:
        usage: tokens of the request, each in one class.
        info: the model's prices. A missing cache price means that such tokens cost as much
            as fresh ones.
    """
    price = info.prices_at(usage.sent_tokens or usage.input_tokens)
    if price.input_usd is None or price.output_usd is None:
        return None
    read_usd = _price_or(price.cache_read_usd, price.input_usd)
    write_usd = _price_or(price.cache_write_usd, price.input_usd)
    is_text = (
        usage.input_media
        == usage.cache_read_media
        == usage.output_media
        == _TEXT
    )
    audio, read_audio, spoken = (0, 0, 0) if is_text else _audio(usage)
    long_writes = min(usage.long_write_tokens, usage.cache_write_tokens)
    total = (  # what there is none of needs no price
        (usage.fresh_tokens - audio) * price.input_usd
        + (audio and audio * _price_or(price.audio_input_usd, price.input_usd))
        + (usage.cache_read_tokens - read_audio) * read_usd
        + (
            read_audio
            and read_audio * _price_or(price.audio_cache_read_usd, read_usd)
        )
        + (usage.cache_write_tokens - long_writes) * write_usd
        + (
            long_writes
            and long_writes * _price_or(price.long_write_usd, write_usd)
        )
        + (usage.output_tokens - spoken) * price.output_usd
        + (
            spoken
            and spoken * _price_or(price.audio_output_usd, price.output_usd)
        )
    )
    return total / _MILLION


def _audio(usage: Usage) -> tuple[int, int, int]:
    """Audio tokens: fresh, read from cache, and of the output."""
    read = min(usage.cache_read_media.audio_tokens, usage.cache_read_tokens)
    fresh = min(
        max(usage.input_media.audio_tokens - read, 0), usage.fresh_tokens
    )
    return (
        fresh,
        read,
        min(usage.output_media.audio_tokens, usage.output_tokens),
    )


def priced(
    agent: str,
    model: str,
    usage: Usage,
    estimated_tokens: int = 0,
    *,
    reported: bool = True,
    wire: str = "",
) -> Call:
    """A call with its cost at list price; see `Call` and `price_of` for the arguments."""
    info = price_of(model, wire)
    return Call(
        agent=agent,
        model=model,
        usage=usage,
        cost_usd=cost_usd(usage, info),
        estimated_tokens=estimated_tokens,
        reported=reported,
        is_billed=info.is_billed,
    )


def worst_usd(
    prompt_tokens: int, output_tokens: int, info: ModelInfo
) -> float | None:
    """The most that one request can cost, or None if the model's prices are unknown.

    The whole prompt is fresh or, where that is dearer, written to cache for the vendor's shorter
    time. One that is written for the longer time, or is sound, may cost more.

    Args:
        prompt_tokens: the upper estimate of its prompt.
        output_tokens: the most tokens of its reply.
        info: the model's prices.
    """
    fresh = Usage(fresh_tokens=prompt_tokens, output_tokens=output_tokens)
    written = Usage(
        cache_write_tokens=prompt_tokens, output_tokens=output_tokens
    )
    costs = [
        cost
        for usage in (fresh, written)
        if (cost := cost_usd(usage, info)) is not None
    ]
    return max(costs, default=None)


def _price_or(price_usd: float | None, otherwise_usd: float) -> float:
    return otherwise_usd if price_usd is None else price_usd
