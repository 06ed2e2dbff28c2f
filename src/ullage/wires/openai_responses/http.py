"""OpenAI Responses over HTTP.

…/responses                                    a reply
…/responses/input_tokens                       counted
…/responses/compact                            compacted by the provider
GET …/responses/ID                             what is stored
GET …/responses/ID/input_items                 the items of its request
DELETE …/responses/ID                          it is to go
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.http import CountRequest, Http, Question, endpoint

_STORED = r"/responses/(?P<id>[^/]+)"

_COUNTED_FIELDS = (
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
)
"""What of a request may be in one that asks for its tokens."""


class ResponsesHttp(Http):
    """Responses over HTTP."""

    wire = "openai-responses"
    base = "/v1"
    asks = re.compile(r"/responses$")
    endpoints = (
        endpoint(r"/responses"),
        endpoint(r"/responses/input_tokens", "count"),
        endpoint(r"/responses/compact", "compact"),
        endpoint(_STORED, "reply", method="GET"),
        endpoint(rf"{_STORED}/input_items", "items", method="GET"),
        endpoint(_STORED, "delete", method="DELETE"),
    )
    openings = frozenset(
        ("response.created", "response.in_progress", "response.queued")
    )
    failures = frozenset(("error", "response.failed"))

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        body: dict[str, Any] = {
            "model": model,
            "max_output_tokens": most_tokens,
            "input": [{"role": "user", "content": text} for text in texts],
            "store": False,
        }
        if system:
            body["instructions"] = system
        return Question("/responses", body)

    def count_of(
        self, path: str, request: Mapping[str, Any]
    ) -> CountRequest | None:
        """See `Http.count_of`."""
        if not path.endswith("/responses"):
            return None
        body = {
            name: request[name] for name in _COUNTED_FIELDS if name in request
        }
        return CountRequest(f"{path}/input_tokens", body)


HTTP = ResponsesHttp()
