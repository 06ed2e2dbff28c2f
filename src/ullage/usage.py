"""Tokens as a provider reported them, each token in exactly one class."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Usage"]


class Usage(Struct, frozen=True, kw_only=True):
    """Token counts of one reply, or the sum of several.

    The classes do not overlap, whatever the vendor's field says: Anthropic reports cached
    tokens outside ``input_tokens``, OpenAI and Gemini inside (`provider-rules` §4.1).
    ``reasoning_tokens`` is a part of ``output_tokens``, given for information.
    """

    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """The whole prompt: fresh, read from cache and written to cache."""
        return self.fresh_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            fresh_tokens=self.fresh_tokens + other.fresh_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )
