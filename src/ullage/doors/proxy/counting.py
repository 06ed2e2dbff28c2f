"""A sample of requests is counted by the provider itself, as they came: without ullage.

    count_sample = 0.02

What a request would have been without ullage is reckoned (`ullage.session.receipts`). Where this
is set, the provider's own endpoint counts the same request for some of them, and the receipts hold
both, so that a report says how far they are apart. It is asked beside the requests, with the
client's own credential, at the address that its request went to; one question of a worker at a
time, none where one is under way, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from blake3 import blake3
from yarl import URL

from ullage.doors.exchange import bodies
from ullage.doors.exchange.exchange import Exchange
from ullage.doors.proxy.config import UPSTREAMS, Config
from ullage.doors.proxy.summarising import (
    AnsweredCredentials,
    BackgroundCaller,
)
from ullage.doors.proxy.upstream import HttpReply
from ullage.wires import wire_named

_TIMEOUT_S = 30.0
_REPLY_BYTES = 1 << 16
_AWAY_S = 600.0
"""An endpoint that refuses is left alone for so long."""
_MOST_AWAY = 1_000
_KEY = blake3(b"ullage counting 1").digest()
_BITS = 64
_NOT_OURS = ("accept", "accept-encoding", "content-encoding", "content-length")
_VENDORS = frozenset(urlsplit(url).netloc for url in UPSTREAMS.values())


class Counting:
    """Asks providers to count requests. One for each worker.

    Args:
        config: the proxy's settings.
        client: who speaks to providers.
        answered: the credentials that an upstream answered.
        proxies: the system's proxy for each upstream, by the upstream's name.

    Attributes:
        counted: how many requests were counted.
        failed: how many questions failed.
    """

    def __init__(
        self,
        config: Config,
        client: aiohttp.ClientSession,
        answered: AnsweredCredentials,
        proxies: dict[str, str],
    ) -> None:
        self.counted = self.failed = 0
        self._config = config
        self._client = client
        self._answered = answered
        self._proxies = proxies
        self._task: asyncio.Task[None] | None = None
        self._away_until_s: dict[str, float] = {}

    def consider(self, exchange: Exchange, caller: BackgroundCaller) -> None:
        """Begin to count a request that is answered, where it is one of the sample.

        Args:
            exchange: the exchange of the request, closed.
            caller: its client.
        """
        if not self._is_due(exchange, caller):
            return
        parts = urlsplit(caller.url)
        http = wire_named(caller.route.wire).http
        question = http.count_of(parts.path, exchange.as_it_came)
        if question is None:
            return
        url = urlunsplit(parts._replace(path=question.path, query=""))
        self._task = asyncio.create_task(
            self._ask(exchange.view, caller, question.body, url)
        )

    async def close(self) -> None:
        """Give up what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _is_due(self, exchange: Exchange, caller: BackgroundCaller) -> bool:
        share = self._config.count_sample
        if not share or exchange.view is None or exchange.passed is not None:
            return False
        report = exchange.report
        # of a request that went as it came the reply itself tells its tokens
        if not report.is_shortened or report.usage is None:
            return False
        if self._task is not None and not self._task.done():
            return False
        if caller.identity not in self._answered:
            return False
        if self._away_until_s.get(_place(caller), 0.0) > time.monotonic():
            return False
        name = f"{report.conversation} {report.messages} {report.view_tokens}"
        return _is_drawn(name, share)

    async def _ask(
        self,
        view: Any,
        caller: BackgroundCaller,
        body: dict[str, Any],
        url: str,
    ) -> None:
        """Ask, and note what is answered; whatever goes wrong, nobody is told but a counter."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                tokens = await self._tokens(caller, body, url)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            tokens = None
        if tokens is None:
            self.failed += 1
            self._leave_alone(_place(caller))
        elif view.counted(tokens):
            self.counted += 1

    async def _tokens(
        self, caller: BackgroundCaller, body: dict[str, Any], url: str
    ) -> int | None:
        """What the provider counts; None: it does not say."""
        headers = caller.headers.copy()
        for name in _NOT_OURS:
            headers.popall(name, None)
        headers["Content-Type"] = "application/json"
        if urlsplit(url).netloc not in _VENDORS:
            headers[self._config.opt_out_header] = "off"
        data = await asyncio.to_thread(bodies.write, body)
        async with self._client.post(
            URL(url, encoded=True),
            data=data,
            headers=headers,
            allow_redirects=False,
            proxy=self._proxies.get(caller.upstream),
        ) as response:
            answer = await HttpReply(response, _REPLY_BYTES).read()
        if response.status != 200:
            return None
        return wire_named(caller.route.wire).http.counted(bodies.read(answer))

    def _leave_alone(self, place: str) -> None:
        self._away_until_s[place] = time.monotonic() + _AWAY_S
        if len(self._away_until_s) > _MOST_AWAY:
            del self._away_until_s[next(iter(self._away_until_s))]


def _is_drawn(name: str, share: float) -> bool:
    """Whether a request is one of the sample: by a keyed hash of its place, and by no chance."""
    digest = blake3(name.encode(), key=_KEY).digest(_BITS // 8)
    return int.from_bytes(digest, "big") < share * (1 << _BITS)


def _place(caller: BackgroundCaller) -> str:
    """The API that a client speaks to."""
    return f"{caller.upstream} {caller.route.wire}"
