"""How much room there is: in the window, for the answer, and of media in a request."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.core.values.events import Event

DEFAULT_RESERVE_TOKENS = 16_384
_ANY = 1 << 62


class Limits(Struct, frozen=True, kw_only=True):
    """The hard limits of one model or of one session.

    Attributes:
        window_tokens: the whole context window, prompt and answer together.
        output_reserve_tokens: what is kept free for the answer. None: the request's own
            ``max_tokens`` if it has one, else 16,384 or an eighth of the window, whichever
            is smaller.

    Raises:
        ConfigError: one of them is not a whole number, or the reserve leaves no room for a
            prompt.
    """

    window_tokens: int
    output_reserve_tokens: int | None = None

    def __post_init__(self) -> None:
        _check_tokens("window_tokens", self.window_tokens)
        if self.output_reserve_tokens is not None:
            _check_tokens("output_reserve_tokens", self.output_reserve_tokens)
        if self.window_tokens <= 0:
            raise ConfigError(
                "window_tokens",
                f"{self.window_tokens} is not positive",
                "Give the model's window.",
            )
        reserve = self.output_reserve_tokens
        if reserve is not None and not 0 <= reserve < self.window_tokens:
            raise ConfigError(
                "output_reserve_tokens",
                f"{reserve:,} leaves no room in a window of {self.window_tokens:,}",
                "Give a reserve from 0 to less than the window.",
            )

    def asks_too_much(self, asked_output_tokens: int | None) -> bool:
        """Whether a request's ``max_tokens`` is over half of the window, and so counts as half."""
        if self.output_reserve_tokens is not None:
            return False
        return (asked_output_tokens or 0) > self.window_tokens // 2

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


def _check_tokens(setting: str, tokens: object) -> None:
    """Refuse what is not a whole number; the value itself may be a secret, and is not shown."""
    if isinstance(tokens, int) and not isinstance(tokens, bool):
        return
    problem = (
        f"a value of type {type(tokens).__name__} is not a number of tokens"
    )
    raise ConfigError(setting, problem, "Give a whole number, such as 64_000.")


class TextLimit(Struct, frozen=True, gc=False):
    """The most that a provider takes of one text, apart from the window.

    Attributes:
        most: how many.
        unit: of what: characters (code points), or bytes of UTF-8.
    """

    most: int
    unit: Literal["characters", "bytes"] = "characters"


class ServedWindow(Struct, frozen=True, gc=False):
    """The window that a server serves one model with, as the server tells it.

    Attributes:
        window_tokens: the window; None: what it told cannot be one.
        event: what conversations with the model report of it.
    """

    window_tokens: int | None
    event: Event


class MediaLimits(Struct, frozen=True, kw_only=True, gc=False):
    """How much of media a request may hold.

    Attributes:
        request_bytes: of all of them together, as they are sent (base64).
        images: most images.
        images_small_window: the same for models of ``small_window_tokens`` or less.
        small_window_tokens: see there.
        side_px: longest side of an image.
        many_images: from more images than this on, ``many_side_px`` is the longest side.
        many_side_px: see there.
        image_bytes: most bytes of one image, decoded.
    """

    request_bytes: int
    images: int = _ANY
    images_small_window: int = _ANY
    small_window_tokens: int = 0
    side_px: int = _ANY
    many_images: int = _ANY
    many_side_px: int = _ANY
    image_bytes: int = _ANY

    def takes(self, side_px: int, sent_bytes: int) -> bool:
        """Whether one medium may be sent at all; of what has no sides only its weight counts."""
        most_bytes = (
            self.image_bytes * 4 // 3 + 4 if side_px else self.request_bytes
        )
        return side_px <= self.side_px and sent_bytes <= most_bytes


ANTHROPIC_MEDIA = MediaLimits(
    request_bytes=28_000_000,
    images=600,
    images_small_window=100,
    small_window_tokens=200_000,
    side_px=8_000,
    many_images=20,
    many_side_px=2_000,
    image_bytes=10_000_000,
)
"""A25, and of the 32 MB of a whole request what is left beside its text (`provider-rules` §1.A)."""
OTHER_MEDIA = MediaLimits(request_bytes=50_000_000)
"""What OpenAI's page on vision says; Google's has more room."""
