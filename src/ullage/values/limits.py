"""How much room there is: the window, what is kept free for the answer, what is left."""

from __future__ import annotations

from msgspec import Struct

from ullage.errors import ConfigError

__all__ = ["Limits"]

DEFAULT_RESERVE_TOKENS = 16_384


class Limits(Struct, frozen=True, kw_only=True):
    """The hard limits of one model or of one session.

    Attributes:
        window_tokens: the whole context window, prompt and answer together.
        output_reserve_tokens: what is kept free for the answer. None: the request's own
            ``max_tokens`` if it has one, else 16,384 or an eighth of the window, whichever
            is smaller.

    Raises:
        ConfigError: the reserve leaves no room for a prompt.
    """

    window_tokens: int
    output_reserve_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.window_tokens <= 0:
            raise ConfigError(
                "window_tokens", f"{self.window_tokens} is not positive", "Give the model's window."
            )
        reserve = self.output_reserve_tokens
        if reserve is not None and not 0 <= reserve < self.window_tokens:
            raise ConfigError(
                "output_reserve_tokens",
                f"{reserve:,} leaves no room in a window of {self.window_tokens:,}",
                "Give a reserve from 0 to less than the window.",
            )

    def prompt_tokens(self, asked_output_tokens: int | None) -> int:
        """The most a prompt may hold, given the ``max_tokens`` of its request, if any.

        A ``max_tokens`` as large as the window (some SDKs send it always) counts as half.
        """
        reserve = self.output_reserve_tokens
        if reserve is None:
            reserve = asked_output_tokens
        if reserve is None:
            reserve = min(DEFAULT_RESERVE_TOKENS, self.window_tokens // 8)
        return self.window_tokens - min(reserve, self.window_tokens // 2)
