"""What a session learns from requests that a provider refused as too long."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ullage.tokens.catalog import lookup
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.wires.overflow import Overflow

__all__ = ["Refusals"]


class Refusals(Struct, frozen=True):
    """The limits of a session's models, as given, as known, and as refusals taught. A value.

    Attributes:
        given: the limits the session was asked to keep, or None.
        named: by model, a smaller window that its provider named.
        retry: by model, what the next view must keep to.
    """

    given: Limits | None = None
    named: Mapping[str, Limits] = {}
    retry: Mapping[str, Limits] = {}

    def limits(self, model: str) -> Limits:
        """The window of a model: as a provider named it, as was given, or as is known."""
        return self.known(model) or Limits(window_tokens=lookup(model).window_tokens)

    def known(self, model: str) -> Limits | None:
        """The window of a model as a provider named it, or as was given; None if neither is."""
        return self.named.get(model) or self.given

    def next_limits(self, model: str) -> Limits | None:
        """What the next view must keep to; None where nothing was given or learnt."""
        return self.retry.get(model) or self.known(model)

    def after(self, found: Overflow, model: str, sent_tokens: int) -> tuple[Refusals, Event]:
        """What is known once a view of so many tokens was refused, and the event of it."""
        room = found.room_tokens(sent_tokens)
        retry = {**self.retry, model: Limits(window_tokens=room, output_reserve_tokens=0)}
        named, limit_tokens = self.named, found.limit_tokens if found.by == "tokens" else None
        if limit_tokens and limit_tokens < self.limits(model).window_tokens:
            named = {**named, model: Limits(window_tokens=limit_tokens)}
        size = "a size it does not name" if found.size_tokens is None else f"{found.size_tokens:,}"
        limit = "" if found.limit_tokens is None else f" for a limit of {found.limit_tokens:,}"
        event = Event(
            kind="refused",
            where="request",
            why=f"the provider refused the request as too long: {size}{limit}, by its own count",
            tokens_before=sent_tokens,
            tokens_after=room,
        )
        return replace(self, named=named, retry=retry), event

    def reported(self) -> Refusals:
        """What is known once a reply was counted: estimates are right again."""
        return replace(self, retry={}) if self.retry else self
