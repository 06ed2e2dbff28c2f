"""litellm: `trim_messages` and `compress`. Both take Chat messages as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import litellm
from litellm.compression import compress
from litellm.utils import trim_messages
from speaks import Message, Policy, View, placed, serve

MODEL = "gpt-4o"


class Trim(Policy):
    """`trim_messages` to the budget."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        with self.timed():
            made = trim_messages(
                self.history, MODEL, max_tokens=self.budget_tokens
            )
        return placed(self.history, made)


class Compress(Policy):
    """`compress` once the history is over the budget. It raises on content that is null."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.cache: dict[str, str] = {}

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        given = [
            {**message, "content": message.get("content") or ""}
            for message in self.history
        ]
        with self.timed():
            made = compress(
                given, MODEL, compression_trigger=self.budget_tokens
            )
        self.cache = made["cache"]
        return placed(given, made["messages"])

    def refs(self) -> Sequence[str]:
        """The keys that the retrieve tool takes."""
        return list(self.cache)

    def page(self, ref: str) -> str:
        """What the retrieve tool answers: litellm reads it from the same cache."""
        return self.cache[ref]


if __name__ == "__main__":
    litellm.suppress_debug_info = True
    serve({"trim": Trim, "compress": Compress}, packages=["litellm"])
