"""Ollama's own chat over HTTP. Streams are lines of JSON, and the default.

…/api/chat                                     a reply
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ullage.wires.http import Http, Question, endpoint


class OllamaHttp(Http):
    """``/api/chat`` over HTTP."""

    wire = "ollama"
    asks = re.compile(r"/api/chat$")
    endpoints = (endpoint(r"/api/chat"),)

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See `Http.error`: a text, in a body and in a line of a stream alike."""
        return {"error": message}

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        head = [{"role": "system", "content": system}] if system else []
        user = [{"role": "user", "content": text} for text in texts]
        body = {
            "model": model,
            "messages": [*head, *user],
            "stream": False,
            "options": {"num_predict": most_tokens},
        }
        return Question("/api/chat", body)

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """See `Http.spent`."""
        return 429, self.error(429, message)


HTTP = OllamaHttp()
