"""OpenAI Chat Completions over HTTP: OpenAI's own API, Azure, and compatible servers.

…/chat/completions                             a reply
…/deployments/M/chat/completions               the same (Azure)
GET …/chat/completions                         a list of what is stored
GET …/chat/completions/ID                      one of them
GET …/chat/completions/ID/messages             the messages of its request
DELETE …/chat/completions/ID                   it is to go
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.http import Http, Question, endpoint

_STORED = r"/chat/completions/(?P<id>[^/]+)"


class ChatHttp(Http):
    """Chat Completions over HTTP."""

    wire = "openai-chat"
    base = "/v1"
    asks = re.compile(r"/chat/completions$")
    endpoints = (
        endpoint(r"/deployments/(?P<model>[^/]+)/chat/completions"),
        endpoint(r"/chat/completions"),
        endpoint(r"/chat/completions", "replies", method="GET"),
        endpoint(_STORED, "reply", method="GET"),
        endpoint(rf"{_STORED}/messages", "items", method="GET"),
        endpoint(_STORED, "delete", method="DELETE"),
    )

    def with_usage(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """See `Http.with_usage`: streams have to be asked."""
        options = request.get("stream_options")
        if not request.get("stream"):
            return None
        if options is not None and (
            not isinstance(options, dict) or "include_usage" in options
        ):
            return None
        return {
            **request,
            "stream_options": {**(options or {}), "include_usage": True},
        }

    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """See `Http.question`."""
        head = [{"role": "system", "content": system}] if system else []
        user = [{"role": "user", "content": text} for text in texts]
        body = {
            "model": model,
            "max_completion_tokens": most_tokens,
            "messages": [*head, *user],
        }
        return Question("/chat/completions", body)


HTTP = ChatHttp()
