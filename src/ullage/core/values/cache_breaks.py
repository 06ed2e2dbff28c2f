"""Breaks of a provider's prompt cache: what of a prompt was billed again, and because of what.

A provider reads the beginning of a prompt from its cache as far as it is the same as in the
request before. Whatever changes there has all that stands behind it billed again. A break says
where that was, whose doing it was and what it cost; it holds no content.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Cause: TypeAlias = Literal[
    "batch",  # ullage shortened what had been sent before
    "decision",  # a decision of a user's changed what had been sent before
    "recall",  # ullage's tools came, went or have other names
    "policy",  # another policy, version or model family decides from here on
    "message",  # the client changed a message that it had sent before
    "model",  # the client asked another model
    "system",  # the client changed the system prompt
    "tools",  # the client changed its tools
    "thinking",  # the client changed how the model is to think
    "settings",  # the client changed another setting that is part of the prompt
    "expired",  # the last call was longer ago than the cache lives
    "evicted",  # nothing changed, and the provider read far less than it had
]
Party: TypeAlias = Literal[
    "ullage", "a user", "the client", "time", "the provider"
]

PARTIES: dict[Cause, Party] = {
    "batch": "ullage",
    "decision": "a user",
    "recall": "ullage",
    "policy": "ullage",
    "message": "the client",
    "model": "the client",
    "system": "the client",
    "tools": "the client",
    "thinking": "the client",
    "settings": "the client",
    "expired": "time",
    "evicted": "the provider",
}
"""Whose doing each cause is."""
_APART = 0.2
"""Two figures that differ by a larger share are both named."""
# a time is told in the smallest unit of which it has no more than this
_MOST_SECONDS = 90
_MOST_MINUTES = 90
_MOST_HOURS = 48


class CacheBreak(Struct, frozen=True, array_like=True, omit_defaults=True):
    """One break of a prompt cache.

    Attributes:
        cause: what broke it.
        place: where, such as ``character 1,204`` or ``message 12``; ``""``: not known.
        tokens: that had been sent before and were billed again: by the provider's report, or
            reckoned where there is none.
        cost_usd: what that cost beyond reading them, at list price; None: no price is known.
        reckoned_tokens: the same, as ullage reckons it.
        read_tokens: what the provider read of its cache anyway; -1: it has not said.
        gap_s: seconds since the call before it; 0: not known.
        name: the short name of the batch or decision; ``""``: it is none.
        held_tokens: what the provider's cache had of the request before, as it reported them.
        lives_s: how long such a cache usually lives, where that is the cause.
    """

    cause: Cause
    place: str = ""
    tokens: int = 0
    cost_usd: float | None = None
    reckoned_tokens: int = 0
    read_tokens: int = -1
    gap_s: int = 0
    name: str = ""
    held_tokens: int = 0
    lives_s: int = 0

    @property
    def party(self) -> Party:
        """Whose doing it is."""
        return PARTIES[self.cause]

    @property
    def is_measured(self) -> bool:
        """Whether the provider reported what it read."""
        return self.read_tokens >= 0

    @property
    def attributes(self) -> dict[str, str | int | float]:
        """It as attributes of a span of OpenTelemetry."""
        attributes: dict[str, str | int | float] = {
            "ullage.cache.cause": self.cause,
            "ullage.cache.by": self.party,
            "ullage.cache.place": self.where,
            "ullage.cache.rebilled_tokens": self.tokens,
            "ullage.cache.is_measured": self.is_measured,
        }
        if self.cost_usd is not None:
            attributes["ullage.cache.cost_usd"] = self.cost_usd
        return attributes

    def __str__(self) -> str:
        """It in one sentence, for people."""
        return f"{self.reason}, so {self.price}."

    @property
    def where(self) -> str:
        """The part of the prompt that it begins in, for people."""
        return f"{_PARTS.get(self.cause, 'request')} {self.place}".rstrip()

    @property
    def reason(self) -> str:
        """What happened, as the first half of a sentence."""
        reason = _REASONS[self.cause]
        if self.cause == "evicted":
            return (
                f"{reason} read {self.read_tokens:,} of the {self.held_tokens:,} tokens "
                "in its cache (expired or evicted)"
            )
        if self.cause == "expired":
            lives = duration(self.lives_s)
            return f"{reason} {duration(self.gap_s)} ago, and its cache lives {lives}"
        return f"{reason} {self.place}".format(name=self.name).rstrip()

    @property
    def price(self) -> str:
        """What it came to, as the second half of a sentence."""
        if not self.is_measured:
            price = f"about {self.tokens:,} tokens are billed again"
        else:
            price = f"{self.tokens:,} tokens were billed again"
        if self.cost_usd is not None:
            price += f": {dollars(self.cost_usd)}"
        most = max(self.tokens, self.reckoned_tokens)
        gap_tokens = abs(self.tokens - self.reckoned_tokens)
        if (
            self.is_measured
            and self.reckoned_tokens
            and gap_tokens > _APART * most
        ):
            price += f" ({self.reckoned_tokens:,} tokens reckoned)"
        return price


_PARTS: dict[Cause, str] = {
    "recall": "recall tools",
    "model": "model",
    "system": "system prompt",
    "tools": "tools",
    "thinking": "thinking settings",
    "settings": "settings",
}
_REASONS: dict[Cause, str] = {
    "batch": "Batch {name} by ullage changed the request from",
    "decision": "A user's decision {name} changed the request from",
    "recall": "The recall tools changed",
    "policy": "Another policy or version decides from here on",
    "message": "The client changed",
    "model": "The model changed",
    "system": "The system prompt changed",
    "tools": "The tools changed",
    "thinking": "The thinking settings changed",
    "settings": "The settings changed:",
    "expired": "The last call was",
    "evicted": "Nothing changed, but the provider",
}


def dollars(cost_usd: float) -> str:
    """An amount as people read it: to the cent, and smaller ones to two digits that count."""
    if abs(cost_usd) >= 0.1 or not cost_usd:
        return f"${cost_usd:,.2f}"
    return f"${cost_usd:.4f}"


def duration(seconds: int) -> str:
    """A time as people read it, in one unit."""
    if seconds < _MOST_SECONDS:
        return f"{seconds:,} seconds"
    if seconds < _MOST_MINUTES * 60:
        return f"{round(seconds / 60):,} minutes"
    if seconds < _MOST_HOURS * 3_600:
        return f"{round(seconds / 3_600):,} hours"
    return f"{round(seconds / 86_400):,} days"
