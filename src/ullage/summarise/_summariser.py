"""What a summariser is: how it is sent to, how its reply is read, and what holds for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ullage.errors import ConfigError, SummaryError
from ullage.tokens.catalog import lookup
from ullage.values.effects import Reply, Summarise
from ullage.values.usage import Usage

TIMEOUT_S = 60.0


class Summariser(Struct, frozen=True, kw_only=True):
    """A model that writes summaries.

    Attributes:
        send: sends a request to the model of this name, and gives what came back.
        read: the reply in what came back.
        is_async: whether ``send`` must be awaited.
        model: the model that is asked, unless a policy names another; ``""`` for the model of
            the conversation.
        window_tokens: its context window; None for what is known of the model.
        timeout_s: how long one request may take, in seconds.

    Raises:
        ConfigError: a number is not positive.
    """

    send: Callable[[Summarise, str], Any]
    read: Callable[[Any], Reply]
    is_async: bool = False
    model: str = ""
    window_tokens: int | None = None
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        for name, value in (("timeout_s", self.timeout_s), ("window_tokens", self.window_tokens)):
            if value is not None and not value > 0:
                raise ConfigError(name, f"{value} is not positive", "Give more than 0.")

    def model_for(self, model: str, caller: str) -> str:
        """The model that is asked, given the policy's own and that of the conversation."""
        return model or self.model or caller

    def window_for(self, model: str, caller: str) -> int:
        """The context window of that model, in tokens."""
        return self.window_tokens or lookup(self.model_for(model, caller)).window_tokens


def of(
    call: Callable[[Summarise], Any] | Summariser,
    *,
    model: str = "",
    window_tokens: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summariser:
    """A summariser from any callable.

    Args:
        call: takes a `Summarise` and returns a `Reply`, or the text alone; may be async.
        model: what it asks, for its price and its window.
        window_tokens: its context window; None for what is known of the model.
        timeout_s: how long one call may take, in seconds.
    """
    if isinstance(call, Summariser):
        return call
    if not callable(call):
        raise ConfigError(
            "summariser",
            f"a {type(call).__name__} cannot be called",
            "Give a function or a client.",
        )
    return Summariser(
        send=lambda asked, _: call(asked),
        read=_read,
        is_async=inspect.iscoroutinefunction(call)
        or inspect.iscoroutinefunction(getattr(call, "__call__", None)),  # noqa: B004
        model=model,
        window_tokens=window_tokens,
        timeout_s=timeout_s,
    )


def _read(came: Any) -> Reply:
    if isinstance(came, Reply) and isinstance(came.text, str) and isinstance(came.usage, Usage):
        return came
    if isinstance(came, str):
        return Reply(text=came)
    raise SummaryError(f"the summariser returned a {type(came).__name__}; return a str or a Reply")
