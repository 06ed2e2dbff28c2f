"""What is answered here and not upstream: everything under ``/_ullage/``."""

from __future__ import annotations

from aiohttp import web

from ullage.proxy.answers import failure, json_answer
from ullage.proxy.config import Config
from ullage.proxy.relay import Relay

__all__ = ["Pages"]

_ROOT = "/_ullage"


class Pages:
    """Answers for one worker.

    ``health`` and ``ready`` hold nothing that is anybody's, so whoever reaches the proxy may ask.
    """

    def __init__(self, config: Config, relay: Relay) -> None:
        self._config, self._relay = config, relay

    def are_meant(self, request: web.BaseRequest) -> bool:
        """Whether a request is for a page."""
        return request.path == _ROOT or request.path.startswith(f"{_ROOT}/")

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        match request.path.removeprefix(_ROOT):
            case "/health":
                return json_answer({"status": "ok"})
            case "/ready" if self._relay.is_stopping:
                return json_answer({"status": "stopping"}, 503)
            case "/ready":
                return json_answer({"status": "ready", "in_flight": self._relay.in_flight})
        return failure(404, "there is no such page.")
