"""Converse over HTTP: Amazon Bedrock, with an API key or a signature.

/model/M/converse              a reply
/model/M/converse-stream       the same, in Amazon's binary frames
/model/M/count-tokens          counted (asked beside a request, with an API key)

An event is an object with one field, whose name is its type: in a frame the type is a header, and
the payload is what stands in the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.http import (
    CountRequest,
    Http,
    Question,
    endpoint,
    quoted,
)

_MODEL = r"/model/(?P<model>[^/]+)"
_COUNTED_FIELDS = ("messages", "system", "toolConfig")
_TYPES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    429: "ThrottlingException",
}


class ConverseHttp(Http):
    """Converse over HTTP."""

    wire = "bedrock-converse"
    asks = re.compile(rf"{_MODEL}/converse(?:-stream)?$")
    endpoints = (
        endpoint(rf"{_MODEL}/converse", streams=False),
        endpoint(rf"{_MODEL}/converse-stream", streams=True),
    )
    names_events = True
    count_field = "inputTokens"

    def count_of(
        self, path: str, request: Mapping[str, Any]
    ) -> CountRequest | None:
        """See `Http.count_of`: CountTokens, which not every model has."""
        match = self.asks.search(path)
        if match is None:
            return None
        converse = {
            name: request[name] for name in _COUNTED_FIELDS if name in request
        }
        end = match.end("model")
        return CountRequest(
            f"{path[:end]}/count-tokens", {"input": {"converse": converse}}
        )

    def is_opening(self, event: Mapping[str, Any]) -> bool:
        """See `Http.is_opening`."""
        return "messageStart" in event

    def is_error(self, value: Mapping[str, Any]) -> bool:
        """See `Http.is_error`: a body with a message and no reply, or an exception as an event."""
        if "__type" in value or any(
            name.endswith("Exception") for name in value
        ):
            return True
        return "output" not in value and (
            "message" in value or "Message" in value
        )

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`."""
        kind = _TYPES.get(
            status,
            "ValidationException" if status < 500 else "ModelErrorException",
        )
        return {"message": message, "__type": kind}

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        content = [{"text": text} for text in texts]
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": content}],
            "inferenceConfig": {"maxTokens": most_tokens},
        }
        if system:
            body["system"] = [{"text": system}]
        return Question(f"/model/{quoted(model)}/converse", body)

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """See `Http.spent`."""
        return 429, self.error(429, message)


HTTP = ConverseHttp()
