"""Tokens as a provider reported them, each token in exactly one class."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, sub
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple


class Modalities(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Of some tokens those that are no text, each in one modality. What is left is text."""

    image_tokens: int = 0
    audio_tokens: int = 0
    video_tokens: int = 0
    document_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All that is no text."""
        return (
            self.image_tokens
            + self.audio_tokens
            + self.video_tokens
            + self.document_tokens
        )

    def __add__(self, other: Modalities) -> Modalities:
        if other == _TEXT:
            return self
        return Modalities(**_by_field(add, self, other))

    def __sub__(self, other: Modalities) -> Modalities:
        if other == _TEXT:
            return self
        return Modalities(**_by_field(sub, self, other))


def _by_field(
    function: Callable[[Any, Any], Any], left: Struct, right: Struct
) -> dict[str, Any]:
    """A function of each field of two values of a kind, but for a prompt as it was sent."""
    names = left.__struct_fields__[:_SUMMED]
    results = map(function, astuple(left), astuple(right))
    return dict(zip(names, results, strict=False))


_TEXT = Modalities()


class Usage(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Token counts of one reply, or the sum of several.

    The four classes do not overlap, whatever the vendor's field says: Anthropic reports cached
    tokens outside ``input_tokens``, OpenAI and Gemini inside (`provider-rules` §4.1). What
    comes after them is a part of one of them, and not counted again.

    Attributes:
        fresh_tokens: of the prompt, neither read from a cache nor written to one.
        cache_read_tokens: of the prompt, read from cache.
        cache_write_tokens: of the prompt, written to cache.
        output_tokens: of the reply, reasoning included.
        reasoning_tokens: of the output.
        long_write_tokens: of those written to cache, for the longer of the vendor's two times
            (an hour at Anthropic, twelve at OpenAI).
        input_media: of the whole prompt, by modality.
        cache_read_media: of those read from cache; and of ``input_media``. Empty where the
            vendor does not say what of its cache was no text.
        output_media: of the output, by modality.
        prompt_tokens: the prompt as it was sent, where the classes hold more than that: a server
            that ran several iterations, or brought something in, bills all of it (F64). 0 where
            it is not reported, None where it is `input_tokens`. A sum of several replies has none.
    """

    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    long_write_tokens: int = 0
    input_media: Modalities = _TEXT
    cache_read_media: Modalities = _TEXT
    output_media: Modalities = _TEXT
    prompt_tokens: int | None = None

    @property
    def input_tokens(self) -> int:
        """All input that is paid for: fresh, read from cache and written to cache."""
        return (
            self.fresh_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )

    @property
    def input_classes(self) -> tuple[int, int, int]:
        """Fresh tokens, those read from cache, those written to it."""
        return (
            self.fresh_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
        )

    @property
    def sent_tokens(self) -> int:
        """The size of the prompt as it was sent, 0 if that is not reported."""
        return (
            self.input_tokens
            if self.prompt_tokens is None
            else self.prompt_tokens
        )

    @property
    def total_tokens(self) -> int:
        """Prompt and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def is_count(self) -> bool:
        """Whether no class of it is negative."""
        return (
            min(*self.input_classes, self.output_tokens, self.sent_tokens) >= 0
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(**_by_field(add, self, other))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(**_by_field(sub, self, other))


_SUMMED = Usage.__struct_fields__.index("prompt_tokens")
"""So many fields can be summed: a prompt as it was sent is that of one reply."""
