"""What a reply costs.

Each class of tokens has its price: fresh, read from cache, written to cache, output. The
length of the whole prompt chooses the tier, and the tier prices the whole request, its output
included (`provider-rules` §3.4). An unknown price makes the cost unknown, never nought.
"""

from __future__ import annotations

from ullage.catalog import ModelInfo, Tier
from ullage.usage import Usage

__all__ = ["cost_usd", "worst_usd"]

_MILLION = 1_000_000


def cost_usd(usage: Usage, info: ModelInfo) -> float | None:
    """The cost of one reply in USD, or None if the model's prices are unknown.

    Only for the usage of a single request: a sum of several is longer than any of them and
    could fall into a tier none was in.

    Args:
        usage: tokens of the request, each in one class.
        info: the model's prices. A missing cache price means that such tokens cost as much
            as fresh ones.
    """
    fresh_usd, output_usd, read_usd, write_usd = _prices(usage.input_tokens, info)
    if fresh_usd is None or output_usd is None:
        return None
    total = (
        usage.fresh_tokens * fresh_usd
        + usage.cache_read_tokens * (fresh_usd if read_usd is None else read_usd)
        + usage.cache_write_tokens * (fresh_usd if write_usd is None else write_usd)
        + usage.output_tokens * output_usd
    )
    return total / _MILLION


def worst_usd(prompt_tokens: int, output_tokens: int, info: ModelInfo) -> float | None:
    """The most that one request can cost, or None if the model's prices are unknown.

    The whole prompt is fresh or, where that is dearer, written to cache for five minutes.
    """
    fresh = Usage(fresh_tokens=prompt_tokens, output_tokens=output_tokens)
    written = Usage(cache_write_tokens=prompt_tokens, output_tokens=output_tokens)
    costs = [cost for usage in (fresh, written) if (cost := cost_usd(usage, info)) is not None]
    return max(costs, default=None)


def _prices(
    prompt_tokens: int, info: ModelInfo
) -> tuple[float | None, float | None, float | None, float | None]:
    """Fresh, output, cache read and cache write price of a prompt of this length."""
    chosen: ModelInfo | Tier = info
    for tier in info.tiers:
        if prompt_tokens > tier.above_tokens:
            chosen = tier
    return chosen.input_usd, chosen.output_usd, chosen.cache_read_usd, chosen.cache_write_usd
