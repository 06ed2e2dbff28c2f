"""The prompt cache as OpenAI runs it, for the demo's bill: any common prefix, in steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from demo.tally import Cached
from lab.replay.caches import CacheSimulator
from ullage.tools.replay.cost.prefix import head_of

__all__ = ["OpenAICache"]


class OpenAICache:
    """A simulated cache of one run.

    Args:
        count_tokens: tokens of each text.
    """

    def __init__(
        self, count_tokens: Callable[[Sequence[str]], Sequence[int]]
    ) -> None:
        self._simulator = CacheSimulator(
            "openai-5", lambda text: count_tokens([text])[0]
        )

    def feed(
        self, head: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> Cached:
        """Take in one request: all but its messages, and its messages."""
        return self._simulator.call(messages, head_of(head))
