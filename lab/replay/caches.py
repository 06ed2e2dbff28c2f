"""Caches that are followed request by request, with no pause, and what their calls come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.cache import CacheUse, PromptCache, sum_usd, usd
from ullage.tools.replay.cost.prefix import CountText, Prefix, Wire
from ullage.tools.replay.cost.prices import Profile, profile_named


class Totals(Struct, frozen=True, kw_only=True):
    """The sum of many calls under one profile, in tokens.

    ``input_usd`` is what their input cost, in US dollars; None if a price is not known.
    """

    profile: Profile
    input_usd: float | None = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    rewritten_tokens: int = 0
    breaks: int = 0
    peak_tokens: int = 0

    def plus(self, call: CacheUse) -> Totals:
        """These totals and one call more."""
        return self + Totals(
            profile=self.profile,
            input_usd=usd(call, self.profile),
            calls=1,
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            written_tokens=call.written_tokens,
            fresh_tokens=call.fresh_tokens,
            rewritten_tokens=call.rewritten_tokens,
            breaks=int(call.rewritten_tokens > 0),
            peak_tokens=call.prompt_tokens,
        )

    def __add__(self, other: Totals) -> Totals:
        if self.profile != other.profile:
            names = f"{self.profile.name!r} and {other.profile.name!r}"
            remedy = "Sum each profile by itself."
            raise ConfigError(
                "profile", f"totals under {names} cannot be added", remedy
            )
        return Totals(
            profile=self.profile,
            input_usd=sum_usd(self.input_usd, other.input_usd),
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            written_tokens=self.written_tokens + other.written_tokens,
            fresh_tokens=self.fresh_tokens + other.fresh_tokens,
            rewritten_tokens=self.rewritten_tokens + other.rewritten_tokens,
            breaks=self.breaks + other.breaks,
            peak_tokens=max(self.peak_tokens, other.peak_tokens),
        )


def total_usd(totals: Totals, output_tokens: int) -> float | None:
    """What many calls and their answers cost, in US dollars; None if a price is not known.

    Answers cost what they do behind a short prompt: which were behind a long one is not known.
    """
    output_usd = totals.profile.output_usd
    if output_usd is None:
        return None
    return sum_usd(totals.input_usd, output_tokens * output_usd / 1e6)


class Caches:
    """Follows one session, request by request, against several profiles; no entry grows too old.

    Each request is measured once, whatever the number of profiles.

    Args:
        profiles: the profiles.
        count: the tokens of a text.

    Attributes:
        totals: the sum of all calls, by profile.
    """

    def __init__(self, profiles: Iterable[Profile], count: CountText) -> None:
        self._caches = [PromptCache(profile) for profile in profiles]
        self._prefix = Prefix(count)
        self.totals = [Totals(profile=cache.profile) for cache in self._caches]

    def call(self, messages: Sequence[Wire], head: str = "") -> list[CacheUse]:
        """One request: its messages in wire form, and its head as text (`head_of`)."""
        sent = self._prefix.measure(messages, head)
        calls = [cache.take(sent) for cache in self._caches]
        pairs = zip(self.totals, calls, strict=True)
        self.totals = [totals.plus(call) for totals, call in pairs]
        return calls


class CacheSimulator:
    """Follows one session against one profile; no entry grows too old.

    Args:
        profile: a profile, or the name of one that ships.
        count: the tokens of a text.

    Raises:
        ConfigError: there is no profile of that name.
    """

    def __init__(self, profile: Profile | str, count: CountText) -> None:
        chosen = (
            profile if isinstance(profile, Profile) else profile_named(profile)
        )
        self._caches = Caches((chosen,), count)

    @property
    def totals(self) -> Totals:
        """The sum of all calls."""
        return self._caches.totals[0]

    def call(self, messages: Sequence[Wire], head: str = "") -> CacheUse:
        """One request: its messages in wire form, and its head as text (`head_of`)."""
        return self._caches.call(messages, head)[0]
