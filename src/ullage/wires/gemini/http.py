"""Google Gemini over HTTP: the Gemini API and Vertex.

…/models/M:generateContent                     a reply
…/models/M:streamGenerateContent               the same; without ``alt=sse`` one JSON array
…/models/M:countTokens                         counted
…/models/M:batchGenerateContent                a batch
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
    quoted,
)

_MODEL = r"/(?P<model>[^/:]+)"
_COUNTED_ON_VERTEX = ("contents", "systemInstruction", "tools")
_GENERATES = re.compile(r":(?:streamGenerateContent|generateContent)$")


class GeminiHttp(Http):
    """GenerateContent over HTTP."""

    wire = "gemini"
    base = "/v1beta/models"
    asks = re.compile(rf"{_MODEL}:(?:g|streamG)enerateContent$")
    endpoints = (
        endpoint(rf"{_MODEL}:generateContent", streams=False),
        endpoint(
            rf"{_MODEL}:streamGenerateContent",
            streams=True,
            array_without="alt=sse",
        ),
        endpoint(rf"{_MODEL}:countTokens", "count"),
        endpoint(rf"{_MODEL}:batchGenerateContent", "batch"),
    )
    batch = BatchPaths(
        ("batch", "inputConfig", "requests", "requests"), "request"
    )

    count_field = "totalTokens"

    def count_of(
        self, path: str, request: Mapping[str, Any]
    ) -> CountRequest | None:
        """See `Http.count_of`. Vertex AI takes fields of the request itself."""
        match = _GENERATES.search(path)
        if match is None:
            return None
        counting_path = f"{path[: match.start()]}:countTokens"
        if "/publishers/" in path:
            body = {
                name: request[name]
                for name in _COUNTED_ON_VERTEX
                if name in request
            }
            return CountRequest(counting_path, body)
        inner = {
            name: value for name, value in request.items() if name != "model"
        }
        inner["model"] = f"models/{request.get('model', '')}"
        return CountRequest(counting_path, {"generateContentRequest": inner})

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`."""
        return {
            "error": {
                "code": status,
                "message": message,
                "status": "FAILED_PRECONDITION",
            }
        }

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        parts = [{"text": text} for text in texts]
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": parts}],
            "generationConfig": {"maxOutputTokens": most_tokens},
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        name = quoted(model.removeprefix("models/"))
        return Question(f"/{name}:generateContent", body)

    def key_headers(self, key: str) -> dict[str, str]:
        """See `Http.key_headers`."""
        return {"x-goog-api-key": key}

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """See `Http.spent`."""
        error = {
            "code": 429,
            "message": message,
            "status": "RESOURCE_EXHAUSTED",
        }
        return 429, {"error": error}


HTTP = GeminiHttp()
