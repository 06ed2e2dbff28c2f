"""Ollama's own chat over HTTP. Streams are lines of JSON, and the default.

…/api/chat                                     a reply
"""

from __future__ import annotations

from typing import Any

from ullage.wires.http import Http, endpoint


class OllamaHttp(Http):
    """``/api/chat`` over HTTP."""

    wire = "ollama"
    endpoints = (endpoint(r"/api/chat"),)

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`: a text, in a body and in a line of a stream alike."""
        return {"error": message}

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """See `Http.spent`."""
        return 429, self.error(429, message)


HTTP = OllamaHttp()
