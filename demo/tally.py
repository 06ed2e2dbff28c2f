"""Counting a run: tokens of every view and of the whole history, cache, cost, what was set aside.

Tokens are counted by the function handed in, each text once. The provider's prompt cache is
simulated by whatever follows ``Cache``; prices come as a function, so nothing here knows a
vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from demo.investigator import count_request
from demo.notices import RECALL

__all__ = ["Cache", "Cached", "Memo", "Tally", "Unlimited", "set_aside"]

CountTokens = Callable[[Sequence[str]], Sequence[int]]


class Cached(Protocol):
    """What a provider's cache did with one request, in tokens."""

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt."""

    @property
    def cached_tokens(self) -> int:
        """Of these, read from the cache."""


class Cache(Protocol):
    """A simulated prompt cache; requests are fed in the order they are sent."""

    def feed(
        self, head: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> Cached:
        """Take in one request: all but its messages, and its messages."""


class Memo:
    """Counts each text once, however often it is sent."""

    def __init__(self, count_tokens: CountTokens) -> None:
        self._count = count_tokens
        self._known: dict[str, int] = {}

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        new = [
            text for text in dict.fromkeys(texts) if text not in self._known
        ]
        if new:
            self._known.update(zip(new, self._count(new), strict=True))
        return [self._known[text] for text in texts]


class Tally:
    """The sums of one run.

    Args:
        history: the request whose messages grow.
        count_tokens: tokens of each text.
        cache: the simulated cache of this run.

    Attributes:
        calls: model calls so far.
        recalls: calls of a recall tool so far.
        view_tokens: tokens of the last view.
        history_tokens: tokens of the whole history when the last view was sent.
        peak_tokens: the largest view.
        history_sum_tokens: the whole history at each call, together.
        sum_tokens: all views together.
        cached_tokens: of these, read from the simulated cache; it counts in its own way, so
            only the share is taken from it.
        output_tokens: all replies together.
    """

    def __init__(
        self,
        history: Mapping[str, Any],
        count_tokens: CountTokens,
        cache: Cache,
    ) -> None:
        self._history, self._count, self._cache = history, count_tokens, cache
        self.calls = self.recalls = self.view_tokens = self.history_tokens = 0
        self.peak_tokens = self.sum_tokens = self.history_sum_tokens = 0
        self.cached_tokens = self.output_tokens = 0

    def watch(self, view: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Take in one view that was sent, and its reply."""
        message = reply["choices"][0]["message"]
        names = [
            call["function"]["name"]
            for call in message.get("tool_calls") or ()
        ]
        self.calls += 1
        self.recalls += sum(name in RECALL for name in names)
        self.view_tokens = reply["usage"]["prompt_tokens"]
        self.history_tokens = count_request(self._history, self._count)
        self.peak_tokens = max(self.peak_tokens, self.view_tokens)
        self.sum_tokens += self.view_tokens
        self.history_sum_tokens += self.history_tokens
        head = {key: value for key, value in view.items() if key != "messages"}
        cached = self._cache.feed(head, view["messages"])
        share = cached.cached_tokens / max(cached.prompt_tokens, 1)
        self.cached_tokens += round(self.view_tokens * share)
        self.output_tokens += reply["usage"]["completion_tokens"]

    @property
    def cache_share(self) -> float:
        """The part of all prompts that the cache held, from 0 to 1."""
        return self.cached_tokens / self.sum_tokens if self.sum_tokens else 0.0


class Unlimited:
    """A session that changes nothing: the agent as if the window had no end."""

    def fit(self, request: Mapping[str, Any], /) -> dict[str, Any]:
        """The request as it is."""
        return dict(request)

    def observe(self, reply: Any, /) -> None:
        """Nothing to learn."""

    def owns(self, call: Mapping[str, Any], /) -> bool:
        """No recall tools were offered."""
        return False

    def recall(self, call: Mapping[str, Any], /) -> dict[str, Any]:
        """Never called, since no call is owned."""
        raise LookupError(f"there is nothing to recall for {call['id']!r}")


def set_aside(events: Iterable[Any]) -> tuple[int, int]:
    """How many outputs a session's events put away, and the tokens this took off the view."""
    away = [
        e
        for e in events
        if getattr(e, "ref", None) and e.kind not in ("recalled", "observed")
    ]
    before = sum(getattr(event, "tokens_before", 0) for event in away)
    after = sum(getattr(event, "tokens_after", 0) for event in away)
    return len({event.ref for event in away}), before - after
