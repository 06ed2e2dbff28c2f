"""What a session learns from requests that a provider refused as too long."""

from __future__ import annotations

from ullage.tokens.catalog import lookup
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.wires.overflow import Overflow

__all__ = ["Refusals"]


class Refusals:
    """The limits of a session's models, as given, as known, and as refusals taught.

    Args:
        given: the limits the session was asked to keep, or None.
    """

    def __init__(self, given: Limits | None) -> None:
        self._given = given
        self._named: dict[str, Limits] = {}
        self._retry: dict[str, Limits] = {}

    def limits(self, model: str) -> Limits:
        """The window of a model: as a provider named it, as was given, or as is known."""
        given = self._named.get(model) or self._given
        return given or Limits(window_tokens=lookup(model).window_tokens)

    def next_limits(self, model: str) -> Limits | None:
        """What the next view must keep to; None where nothing was given or learnt."""
        return self._retry.get(model) or self._named.get(model) or self._given

    def take(self, found: Overflow, model: str, shown_tokens: int) -> Event:
        """Take in that a view of so many tokens was refused, and tell of it."""
        room = found.room_tokens(shown_tokens)
        self._retry[model] = Limits(window_tokens=room, output_reserve_tokens=0)
        named = found.limit_tokens if found.by == "tokens" else None
        if named and named < self.limits(model).window_tokens:
            self._named[model] = Limits(window_tokens=named)
        size = "a size it does not tell" if found.size_tokens is None else f"{found.size_tokens:,}"
        limit = "" if found.limit_tokens is None else f" for a limit of {found.limit_tokens:,}"
        return Event(
            kind="refused",
            where="request",
            why=f"the provider refused the request as too long: {size}{limit}, by its own count",
            tokens_before=shown_tokens,
            tokens_after=room,
        )

    def reported(self) -> None:
        """A reply reported what it counted: estimates are right again, and retries are over."""
        self._retry.clear()
