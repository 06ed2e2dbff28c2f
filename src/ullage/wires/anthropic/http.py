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
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.http import (
    BatchPaths,
    CountRequest,
    Http,
    Question,
    endpoint,
)

_VERTEX = r"/publishers/anthropic/models/(?P<model>[^/]+)"
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


class AnthropicHttp(Http):
    """Messages over HTTP."""

    wire = "anthropic"
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
        """See `Http.count_of`; of Anthropic's own API alone."""
        if not path.endswith("/v1/messages"):
            return None
        body = {
            name: request[name] for name in _COUNTED_FIELDS if name in request
        }
        return CountRequest(f"{path}/count_tokens", body)

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
