"""Keeps a provider's prompt cache from expiring in a pause of a conversation. Off by default.

    [keepalive]
    most = 3

A cache that expires is written anew by the next request, at more than the price of the whole
prompt. Shortly before, the last request is sent once more and asked for one token: that reads the
cache, and it lives on. It is done only where it pays: what it costs is less than what the next
request would save, times the chance that there is one in time. The chance comes from the pauses of
this very conversation, so one that never paused so long is not kept alive.

    a reply is over ─▶ wait ─▶ is it worth it? ─▶ sent, with one token ─▶ wait ─▶ … `most` times
    a request comes ─▶ the wait is over
    the client hung up, closes its connection, is refused; the proxy stops ─▶ forgotten

The request and its credential stay in memory that long, and nowhere else. They belong to the
conversation, which is one tenant's.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from ullage import Event, Usage
from ullage.doors.exchange import Exchange, Route, bodies
from ullage.doors.host import cost_of
from ullage.doors.proxy.bodies import BodyBudget
from ullage.doors.proxy.cache_worth import (
    Worth,
    cached_tokens,
    chance_of,
    worth_of,
)
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.routes import UpstreamRoute
from ullage.doors.proxy.upstream import HttpReply, HttpUpstream
from ullage.wires import FORMATS, wire_named

KEPT_ALIVE = "ullage keep-alive"
"""What its receipts are listed under, among the clients."""
_MOST_KEPT = 1_000
_MOST_GAPS = 64
_MARGIN_SHARE = 0.1
"""A cache is read again this share of its life before it expires."""
_MOST_MARGIN_S = 30.0
"""And no earlier than this before."""
_NOT_SENT = ("accept", "accept-encoding", "content-encoding", "content-length")

Notice: TypeAlias = Callable[[str, Event, float], None]
"""Takes the conversation, what was done, and what it cost in USD."""


class FinishedRequest(Struct, frozen=True, kw_only=True):
    """A request whose reply is over.

    Attributes:
        conversation: the key of its session.
        tenant: the owner.
        upstream: the name of the upstream that it went to.
        url: where it went.
        route: what it asked there.
        headers: what it was sent with, its credential among them.
        body: what was sent.
        model: that was asked.
        usage: what its provider reported.
        began_s: when it was sent, by a clock of this process.
    """

    conversation: str
    tenant: str
    upstream: str
    url: str
    route: Route
    headers: CIMultiDict[str]
    body: bytes
    model: str
    usage: Usage
    began_s: float


class _KeptConversation:
    """A conversation that may be kept alive.

    Attributes:
        last: its last request; None: a request is under way, or it is not to be kept.
        gaps_s: its pauses, the newest last.
        began_s: when its last request came.
        in_flight: requests under way.
        sent: how often its cache was read again in this pause.
        timer: what wakes us before the cache expires.
        held_bytes: how much of bodies is held for it.
        lives_s: how long its cache is taken to live.
    """

    def __init__(self) -> None:
        self.last: FinishedRequest | None = None
        self.gaps_s: list[float] = []
        self.began_s = self.lives_s = 0.0
        self.in_flight = self.sent = self.held_bytes = 0
        self.timer: asyncio.TimerHandle | None = None


class KeepAlive:
    """The prompt caches that one worker keeps alive.

    Args:
        config: the proxy's settings, with those of it.
        client: who speaks to the upstreams.
        held: how much of bodies may be held.
        proxies: the system's proxy for each upstream.
        pay: takes a request, and the usage of what kept its cache: the receipts have it.

    Attributes:
        count: how often a cache was read again.
        cost_usd: what that cost, at list price.
        notice: called each time; None: nothing is.
        is_elsewhere: whether another worker has served a conversation since a time; None: there
            is no other.
    """

    def __init__(
        self,
        config: Config,
        client: aiohttp.ClientSession,
        held: BodyBudget,
        proxies: dict[str, str],
        pay: Callable[[FinishedRequest, Usage], Awaitable[None]],
    ) -> None:
        assert config.keepalive is not None
        self._settings = config.keepalive
        self._client = client
        self._held = held
        self._proxies = proxies
        self._pay = pay
        self._reply_bytes = config.limits.reply_bytes
        self._kept: OrderedDict[str, _KeptConversation] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(self._settings.at_once)
        self._is_closed = False
        self.count = 0
        self.cost_usd = 0.0
        self.notice: Notice | None = None
        self.is_elsewhere: Callable[[str, float], Awaitable[bool]] | None = (
            None
        )

    # ── what requests say ────────────────────────────────────────────────────────────

    def begin(self, conversation: str) -> None:
        """A request of a conversation is under way: nothing is sent beside it.

        Args:
            conversation: the key of its session.
        """
        now_s = time.monotonic()
        kept = self._kept.pop(conversation, None) or _KeptConversation()
        self._kept[conversation] = kept
        if kept.began_s and not kept.in_flight:
            kept.gaps_s = [*kept.gaps_s, now_s - kept.began_s][-_MOST_GAPS:]
        kept.began_s = now_s
        kept.sent = 0
        kept.in_flight += 1
        self._let_go(kept)
        if len(self._kept) > _MOST_KEPT:
            _, oldest = self._kept.popitem(last=False)
            self._let_go(oldest)

    def end(self, conversation: str, last: FinishedRequest | None) -> None:
        """A request of a conversation is over.

        Args:
            conversation: the key of its session.
            last: the request; None: its cache is not to be kept, because the client hung up, was
                refused or said that it closes its connection.
        """
        kept = self._kept.get(conversation)
        if kept is None:
            return
        kept.in_flight = max(kept.in_flight - 1, 0)
        if kept.in_flight or last is None or self._is_closed:
            return
        lives_s = wire_named(last.route.wire).http.cache_life_s
        if lives_s is None or not cached_tokens(last.usage):
            return
        if self._held.take(len(last.body)):
            kept.last = last
            kept.held_bytes = len(last.body)
            kept.lives_s = lives_s
            self._wait(kept, last.began_s + lives_s, lives_s)

    def last_use_s(self, conversation: str) -> float | None:
        """When a request of a conversation came here last, in seconds since 1970.

        None where none came.
        """
        kept = self._kept.get(conversation)
        if kept is None:
            return None
        since_s = 0.0 if kept.in_flight else time.monotonic() - kept.began_s
        return time.time() - since_s

    async def close(self) -> None:
        """Forget all of them, and give up what is under way. Nothing is kept from now on."""
        self._is_closed = True
        for kept in self._kept.values():
            self._let_go(kept)
        self._kept.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _let_go(self, kept: _KeptConversation) -> None:
        """Forget a conversation's last request."""
        if kept.timer is not None:
            kept.timer.cancel()
        self._held.give(kept.held_bytes)
        kept.last = None
        kept.timer = None
        kept.held_bytes = 0

    # ── before a cache expires ───────────────────────────────────────────────────────

    def _wait(
        self, kept: _KeptConversation, expires_s: float, lives_s: float
    ) -> None:
        """Wait until shortly before the cache expires, unless it was read often enough."""
        last = kept.last
        margin_s = min(lives_s * _MARGIN_SHARE, _MOST_MARGIN_S)
        wait_s = expires_s - margin_s - time.monotonic()
        # a reply may have taken longer than the cache lives
        if last is None or kept.sent >= self._settings.most or wait_s <= 0:
            self._let_go(kept)
            return
        loop = asyncio.get_running_loop()
        kept.timer = loop.call_later(wait_s, self._wake, kept, last)

    def _wake(self, kept: _KeptConversation, last: FinishedRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._keep(kept, last))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(
        self, kept: _KeptConversation, last: FinishedRequest
    ) -> None:
        """Read a cache again, if it pays; whatever goes wrong ends this one alone."""
        refresh = await asyncio.to_thread(_refresh_of, last)
        if kept.last is not last:
            return  # a request came meanwhile
        if refresh is None:
            self._let_go(kept)
            return
        lives_s = refresh.lives_s
        now_s = time.monotonic()
        if kept.lives_s != lives_s:  # the request says that it lives longer
            kept.lives_s = lives_s
            self._wait(kept, last.began_s + lives_s, lives_s)
            return
        try:
            usage = await self._kept_alive(kept, last, refresh)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            usage = None
        if kept.last is not last:
            return
        if usage is None:
            self._let_go(kept)
        else:
            self._wait(kept, now_s + lives_s, lives_s)

    async def _kept_alive(
        self, kept: _KeptConversation, last: FinishedRequest, refresh: Any
    ) -> Usage | None:
        """The usage of what read the cache; None: it is not worth it, or did not read it."""
        if await self._is_used_elsewhere(last):
            return None
        waited_s = time.monotonic() - kept.began_s
        chance = chance_of(kept.gaps_s, waited_s, refresh.lives_s)
        worth = worth_of(
            last.usage, last.model, is_long=refresh.is_long, chance=chance
        )
        if worth is None or not worth.pays:
            return None
        async with self._places:
            if kept.last is not last:
                return None
            usage = await self._sent(last, refresh.body)
        if usage is None:
            return None
        kept.sent += 1
        await self._count(last, usage, worth)
        return usage if usage.cache_read_tokens else None

    async def _is_used_elsewhere(self, last: FinishedRequest) -> bool:
        if self.is_elsewhere is None:
            return False
        since_s = time.time() - (time.monotonic() - last.began_s)
        return await self.is_elsewhere(last.conversation, since_s)

    async def _sent(
        self, last: FinishedRequest, body: dict[str, Any]
    ) -> Usage | None:
        """Send the request for one token, and give the usage that is reported for it."""
        headers = last.headers.copy()
        for name in _NOT_SENT:
            headers.popall(name, None)
        headers["Content-Type"] = "application/json"
        async with self._client.post(
            URL(last.url, encoded=True),
            data=bodies.write(body),
            headers=headers,
            allow_redirects=False,
            proxy=self._proxies.get(last.upstream),
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
        ) as response:
            data = await HttpReply(response, self._reply_bytes).read()
        if response.status != 200:
            return None
        return FORMATS[last.route.wire].usage(bodies.read(data))

    async def _count(
        self, last: FinishedRequest, usage: Usage, worth: Worth
    ) -> None:
        """Count what it cost, and tell of it."""
        spent_usd = cost_of(usage, last.model, last.route.wire) or 0.0
        self.count += 1
        self.cost_usd += spent_usd
        with contextlib.suppress(
            Exception
        ):  # it is paid for, whatever that meets
            await self._pay(last, usage)
        if self.notice is not None:
            event = Event(
                kind="kept_alive",
                where="beside the turns",
                why=f"the prompt cache was about to expire; {worth.words}",
                tokens_before=usage.cache_read_tokens,
                tokens_after=usage.cache_read_tokens,
            )
            self.notice(last.conversation, event, spent_usd)


def _refresh_of(last: FinishedRequest) -> Any:
    """What reads the cache of a request again (`ullage.wires.http`); None: nothing does."""
    body = bodies.read(last.body)
    if not isinstance(body, dict):
        return None
    return wire_named(last.route.wire).http.refresh(body)


class WatchedRequest:
    """One request of a client, as far as its prompt cache is concerned.

    Args:
        keepalive: what keeps caches; None: nothing does.
        request: as it came.
        tenant: the owner.

    Attributes:
        exchange: what fits it, once there is one.
    """

    def __init__(
        self,
        keepalive: KeepAlive | None,
        request: web.BaseRequest,
        tenant: str,
    ) -> None:
        self._keepalive = keepalive
        self._tenant = tenant
        closes = request.headers.get("Connection", "").lower()
        self._says_goodbye = "close" in closes
        self.exchange: Exchange | None = None
        self._conversation = ""
        self._body = b""

    def sending(self, body: bytes) -> None:
        """Note what is sent: nothing of ours is sent beside it.

        Args:
            body: of the request, as it goes on.
        """
        if self._keepalive is None or self.exchange is None:
            return
        self._body = body
        if not self._conversation and self.exchange.report.conversation:
            self._conversation = self.exchange.report.conversation
            self._keepalive.begin(self._conversation)

    def end(
        self,
        upstream: HttpUpstream | None,
        route: UpstreamRoute,
        *,
        is_whole: bool,
    ) -> None:
        """The request is over.

        Args:
            upstream: what sent it.
            route: where it went.
            is_whole: whether the client has the whole reply.
        """
        if self._keepalive is not None and self._conversation:
            is_kept = is_whole and not self._says_goodbye
            last = self._finished(upstream, route) if is_kept else None
            self._keepalive.end(self._conversation, last)

    def _finished(
        self, upstream: HttpUpstream | None, route: UpstreamRoute
    ) -> FinishedRequest | None:
        """The request, if its cache is one that can be kept: it was answered at the first try."""
        exchange = self.exchange
        assert exchange is not None
        report = exchange.report
        asked = exchange.route
        if report.tries != 1 or report.passed is not None:
            return None
        if report.status != 200 or report.usage is None:
            return None
        if upstream is None or asked is None:
            return None
        return FinishedRequest(
            conversation=self._conversation,
            tenant=self._tenant,
            upstream=route.upstream,
            url=route.url,
            route=asked,
            headers=upstream.headers,
            body=self._body,
            model=report.model,
            usage=report.usage,
            began_s=upstream.began_s,
        )
