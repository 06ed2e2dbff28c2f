"""What is drawn, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

KINDS = (
    "system and tools",
    "user",
    "model",
    "tool results",
    "records and notices",
)
"""What tokens are of; the last: what stands in place of something set aside."""


class OneWindow(Struct, frozen=True, kw_only=True):
    """One request: what the history holds, and what of it is shown.

    Attributes:
        title: what it is of.
        limit_tokens: the most that the request may hold.
        history: uncalibrated tokens of the whole history, by kind (`KINDS`).
        view: the same of what is shown.
    """

    title: str
    limit_tokens: int
    history: Mapping[str, int]
    view: Mapping[str, int]

    @property
    def summary(self) -> str:
        """What it shows, in words."""
        whole = sum(self.history.values())
        now = sum(self.view.values())
        if now >= whole:
            return f"{short(now)} tokens, nothing set aside; limit {short(self.limit_tokens)}"
        sizes = f"{short(now)} tokens sent of a history of {short(whole)}"
        return f"{sizes}; limit {short(self.limit_tokens)}"


class OverCalls(Struct, frozen=True, kw_only=True):
    """A run: what each call would have sent, and what was sent.

    Attributes:
        title: what it is of.
        summary: what it came to, in words.
        limit_tokens: the most that a request may hold.
        history: tokens of the whole history, by call.
        views: tokens of what was sent, by call.
        rewrites: the calls, from 0, before which something sent earlier was changed.
    """

    title: str
    summary: str
    limit_tokens: int
    history: Sequence[int]
    views: Sequence[int]
    rewrites: Sequence[int] = ()


def short(tokens: float) -> str:
    """A number of tokens as one says it: 940, 53k, 3.7M."""
    if tokens < 1_000:
        return f"{tokens:.0f}"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"
