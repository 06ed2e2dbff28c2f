"""What it is worth to keep a prompt cache from expiring; see `ullage.doors.proxy.keepalive`."""

from __future__ import annotations

from msgspec import Struct

from ullage import Usage
from ullage.doors.host import cost_of


class Worth(Struct, frozen=True):
    """What it costs to keep a cache, and what that is worth.

    Attributes:
        cost_usd: what the request for one token costs.
        saved_usd: what the next request saves, if it comes in time.
        chance: that it does, from 0 to 1.
    """

    cost_usd: float
    saved_usd: float
    chance: float

    @property
    def pays(self) -> bool:
        """Whether it is expected to save more than it costs."""
        return self.chance * self.saved_usd > self.cost_usd

    @property
    def words(self) -> str:
        """The figures in words."""
        return (
            f"reading the cache cost ${self.cost_usd:.4f}; to write it anew would cost "
            f"${self.saved_usd:.4f} more, with a chance of {self.chance:.0%}"
        )


def chance_of(gaps_s: list[float], waited_s: float, lives_s: float) -> float:
    """The chance that a pause ends in time, from a conversation's earlier ones.

    Args:
        gaps_s: the earlier pauses.
        waited_s: how long this one is by now.
        lives_s: how much longer it may be.

    Returns:
        The share of the pauses that were as long and then ended in that time; this one counts as
        one that did not, so without experience it is 0.
    """
    longer_s = [gap_s for gap_s in gaps_s if gap_s >= waited_s]
    in_time_s = [gap_s for gap_s in longer_s if gap_s <= waited_s + lives_s]
    return len(in_time_s) / (len(longer_s) + 1)


def cached_tokens(usage: Usage) -> int:
    """The tokens of a prompt that stand in the cache once it was answered.

    Args:
        usage: what its reply reported.
    """
    return usage.cache_read_tokens + usage.cache_write_tokens


def worth_of(
    usage: Usage, model: str, *, is_long: bool, chance: float
) -> Worth | None:
    """What it is worth to keep the cache of a request; None: its model's prices are not known.

    Args:
        usage: of the request.
        model: that was asked.
        is_long: whether the cache is written at the price of the longer life.
        chance: that another request comes in time.
    """
    tokens = cached_tokens(usage)
    if not tokens:
        return None
    long_tokens = tokens if is_long else 0
    request = Usage(
        fresh_tokens=usage.fresh_tokens,
        cache_read_tokens=tokens,
        output_tokens=1,
    )
    request_usd = cost_of(request, model)
    read_usd = cost_of(Usage(cache_read_tokens=tokens), model)
    write_usd = cost_of(
        Usage(cache_write_tokens=tokens, long_write_tokens=long_tokens), model
    )
    if request_usd is None or read_usd is None or write_usd is None:
        return None
    return Worth(request_usd, write_usd - read_usd, chance)
