"""Anthropic Messages over HTTP: Anthropic's own API, Vertex, Bedrock.

…/v1/messages                                  a reply
…/v1/messages/count_tokens                     counted
…/v1/messages/batches                          a batch
…/publishers/anthropic/models/M:rawPredict     Vertex; also :streamRawPredict
…/publishers/anthropic/models/count-tokens:rawPredict     the same, counted
/model/M/invoke                                Bedrock
/model/M/invoke-with-response-stream           the same, in Amazon's binary frames
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ullage.core.history.raw import field
from ullage.wires.http import (
    BatchPaths,
    CacheRefresh,
    CountRequest,
    Http,
    Question,
    endpoint,
)

_VERTEX = r"/publishers/anthropic/models/(?P<model>[^/]+)"
_ON_VERTEX = re.compile(rf"{_VERTEX}:(?:rawPredict|streamRawPredict)$")
_BEDROCK = r"/model/(?P<model>[^/]+)"

_COUNTED_FIELDS = (
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
)
"""What of a request may be in one that asks for its tokens."""


LIFE_S = 300.0
"""How long a prompt cache lives from the request on that read it last."""
LONG_LIFE_S = 3_600.0
"""How long where its ``ttl`` is an hour."""


def _markers(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cache markers of a request."""
    blocks: list[Any] = [body]
    for name in ("tools", "system"):
        value = body.get(name)
        blocks += value if isinstance(value, list) else ()
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = field(message, "content")
        blocks += content if isinstance(content, list) else ()
    for block in blocks:
        marker = field(block, "cache_control")
        if isinstance(marker, Mapping):
            yield marker


class AnthropicHttp(Http):
    """Messages over HTTP."""

    wire = "anthropic"
    cache_life_s = LIFE_S
    asks = re.compile(r"/v1/messages$")
    endpoints = (
        endpoint(r"/models/count-tokens:rawPredict", "count"),
        endpoint(rf"{_VERTEX}:rawPredict"),
        endpoint(rf"{_VERTEX}:streamRawPredict", streams=True),
        endpoint(rf"{_BEDROCK}/invoke", streams=False),
        endpoint(rf"{_BEDROCK}/invoke-with-response-stream", streams=True),
        endpoint(r"/v1/messages"),
        endpoint(r"/v1/messages/count_tokens", "count"),
        endpoint(r"/v1/messages/batches", "batch"),
    )
    batch = BatchPaths(("requests",), "params")
    maker_field = (
        "anthropic_version"  # Bedrock's paths take models of every maker
    )
    openings = frozenset(("message_start", "ping"))

    def count_of(
        self, path: str, request: Mapping[str, Any]
    ) -> CountRequest | None:
        """See `Http.count_of`; of Anthropic's own API, and of Vertex AI."""
        body = {
            name: request[name] for name in _COUNTED_FIELDS if name in request
        }
        if path.endswith("/v1/messages"):
            return CountRequest(f"{path}/count_tokens", body)
        match = _ON_VERTEX.search(path)
        if match is None:
            return None
        publisher = path[: match.start("model")]
        return CountRequest(f"{publisher}count-tokens:rawPredict", body)

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`."""
        return {"type": "error", **super().error(status, message)}

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        content = [{"type": "text", "text": text} for text in texts]
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": most_tokens,
            "messages": [{"role": "user", "content": content}],
        }
        if system:
            body["system"] = system
        return Question("/v1/messages", body)

    def refresh(self, body: Mapping[str, Any]) -> CacheRefresh | None:
        """See `Http.refresh`. Where thinking has a budget of tokens, one token is refused.

        Source: `provider-rules` §3.2: a hit renews the life of an entry without a charge.
        """
        lives = {marker.get("ttl", "5m") for marker in _markers(body)}
        if not lives or field(body.get("thinking"), "type") == "enabled":
            return None
        is_long = lives == {"1h"}
        same = {
            name: value for name, value in body.items() if name != "stream"
        }
        return CacheRefresh(
            {**same, "max_tokens": 1},
            LONG_LIFE_S if is_long else LIFE_S,
            is_long,
        )

    def key_headers(self, key: str) -> dict[str, str]:
        """See `Http.key_headers`."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """See `Http.spent`. Clients try a 429 again, and a 402 not."""
        status, kind = (
            (429, "rate_limit_error") if can_retry else (402, "billing_error")
        )
        error = {"type": kind, "message": message}
        return status, {"type": "error", "error": error}


HTTP = AnthropicHttp()
