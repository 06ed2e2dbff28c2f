"""What a provider's prompt cache would have charged: a simulator.

    prompt = cached + written + fresh        each token in exactly one class
    cached   read from the cache: the common prefix, as far as a live entry reaches
    written  not in the cache before, in it now
    fresh    not cached at all: below the minimum, or past the last whole step

Where an entry may end differs (`provider-rules` §3.4). Automatic caches hit any prefix, in
whole steps. Explicit ones hit only where an earlier request had set a marker, and only within
so many blocks behind a marker of this request. Assumed is a client that knows of no edit: it
sets one marker at the end of every request, one after the head, and the others where its newest
earlier requests ended. So a cut deep in the history falls back to the head, where a provider
looks back over few blocks only: no marker is near the older entries.

An entry lives for the profile's time after the start of the request that wrote or last read
it; reading a prefix renews all of it. The clock is the caller's.

Assumed throughout: an entry overtaken by a rewrite is not looked for again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ullage.tools.replay.cost.prefix import MeasuredRequest
from ullage.tools.replay.cost.prices import Profile

_EVER_S = 1e8
"""Where no time to live is known, an entry lives three years."""


class CacheUse(Struct, frozen=True, kw_only=True, gc=False):
    """What one request did to the cache, in tokens."""

    prompt_tokens: int
    cached_tokens: int
    written_tokens: int
    fresh_tokens: int
    rewritten_tokens: int = 0


def usd(
    call: CacheUse, profile: Profile, output_tokens: int = 0
) -> float | None:
    """What one call and its answer cost in US dollars; None if a price is not known.

    The length of the whole prompt chooses the prices (`provider-rules` §3.4).
    """
    prices = profile.prices(call.prompt_tokens)
    if prices is None:
        return None
    input_usd, output_usd = prices
    return (
        input_units(call, profile) * input_usd + output_tokens * output_usd
    ) / 1e6


def input_units(call: CacheUse, profile: Profile) -> float:
    """The input in units of the input price: what as many fresh tokens would cost."""
    return (
        call.fresh_tokens
        + profile.write * call.written_tokens
        + profile.read * call.cached_tokens
    )


def sum_usd(cost_usd: float | None, more_usd: float | None) -> float | None:
    """Two costs together; None if one of them is not known."""
    return (
        None if cost_usd is None or more_usd is None else cost_usd + more_usd
    )


class _Entry(Struct, frozen=True, gc=False):
    """Where a cached prefix ends, and the clock when it was last used."""

    tokens: int
    blocks: int
    used_s: float


class PromptCache:
    """The cache of one session under one profile, fed with measured requests."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._entries: list[_Entry] = []
        self._ends: list[int] = []

    def take(self, request: MeasuredRequest, now_s: float = 0.0) -> CacheUse:
        """One request at ``now_s`` seconds of the caller's clock, which never goes back."""
        cached = self._hit(request, now_s)
        written = self._write(request, cached, now_s)
        self._ends = [*self._ends, request.blocks][
            -self.profile.max_breakpoints :
        ]
        return CacheUse(
            prompt_tokens=request.prompt_tokens,
            cached_tokens=cached,
            written_tokens=written,
            fresh_tokens=request.prompt_tokens - cached - written,
            rewritten_tokens=request.rewritten_tokens,
        )

    def _hit(self, request: MeasuredRequest, now_s: float) -> int:
        """How much of the common prefix can be read."""
        profile = self.profile
        if profile.hits == "never":
            return 0
        ttl_s = _EVER_S if profile.ttl_s is None else profile.ttl_s
        living = [
            entry for entry in self._entries if now_s - entry.used_s <= ttl_s
        ]
        if profile.hits == "prefix":
            warm = min(
                request.common_tokens,
                request.prompt_tokens - profile.recomputed_tokens,
                max((entry.tokens for entry in living), default=0),
            )
            reach = warm - warm % profile.step_tokens
        else:
            findable = self._remembered(living)
            living = [
                entry
                for entry in living
                if entry.tokens <= request.common_tokens
            ]
            reach = self._reach(
                [entry for entry in living if entry in findable], request
            )
        self._entries = [
            replace(entry, used_s=now_s) if entry.tokens <= reach else entry
            for entry in living
        ]
        return reach if reach >= max(profile.min_tokens, 1) else 0

    def _reach(
        self, entries: Sequence[_Entry], request: MeasuredRequest
    ) -> int:
        """The longest entry that a marker finds: of its end, the head, or the newest ends."""
        near = self.profile.look_back_blocks
        if near is not None:
            ends = (
                end for end in reversed(self._ends) if end < request.blocks
            )
            marks = [request.blocks, 0, *ends][: self.profile.max_breakpoints]
            entries = [
                e
                for e in entries
                if any(m - near < e.blocks <= m for m in marks)
            ]
        return max((entry.tokens for entry in entries), default=0)

    def _remembered(self, entries: Sequence[_Entry]) -> Sequence[_Entry]:
        """The newest entries, and that of the head, which every request writes again."""
        most = self.profile.remembered
        if most is None or len(entries) <= most:
            return entries
        return [
            *(entry for entry in entries[:-most] if not entry.blocks),
            *entries[-most:],
        ]

    def _write(
        self, request: MeasuredRequest, cached: int, now_s: float
    ) -> int:
        """How much is in the cache now and was not before."""
        profile = self.profile
        total = request.prompt_tokens
        end = total - total % profile.step_tokens
        if profile.hits == "never" or end < max(profile.min_tokens, 1):
            return 0
        if profile.hits == "prefix":
            self._entries = [_Entry(total, request.blocks, now_s)]
        else:
            lengths = {entry.tokens for entry in self._entries}
            for tokens, blocks in (
                (request.head_tokens, 0),
                (total, request.blocks),
            ):
                if tokens >= profile.min_tokens and tokens not in lengths:
                    self._entries.append(_Entry(tokens, blocks, now_s))
        return max(end - cached, 0)
