"""Google Gemini over HTTP: the Gemini API and Vertex.

…/models/M:generateContent                     a reply
…/models/M:streamGenerateContent               the same; without ``alt=sse`` one JSON array
…/models/M:countTokens                         counted
…/models/M:batchGenerateContent                a batch
"""

from __future__ import annotations

from typing import Any

from ullage.wires.http import BatchPaths, Http, endpoint

_MODEL = r"/(?P<model>[^/:]+)"


class GeminiHttp(Http):
    """GenerateContent over HTTP."""

    wire = "gemini"
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

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`."""
        return {
            "error": {
                "code": status,
                "message": message,
                "status": "FAILED_PRECONDITION",
            }
        }

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
