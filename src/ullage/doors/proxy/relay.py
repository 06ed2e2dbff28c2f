"""Passes requests on: what all requests of one worker share.

    request ─▶ guard ─▶ route ─▶ `ClientRequest` ─▶ reply

Everything passes byte for byte where no history is fitted: method, path, query, headers but a hop's
own, body, and the reply in the same way. The upstream's errors are the client's to see. A client
that goes away cancels the upstream's work. Nothing is sent twice here: only an exchange does, once,
before a byte of a reply was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Sized
from typing import Any

import aiohttp
from aiohttp import web
from msgspec.structs import replace

from ullage import Usage
from ullage.core.errors import BudgetExceeded, StoreError
from ullage.doors.exchange import Exchanges
from ullage.doors.host import adrive, to_its_end
from ullage.doors.proxy.acceptance import Acceptance
from ullage.doors.proxy.answers import failure
from ullage.doors.proxy.bodies import BodyBudget
from ullage.doors.proxy.client_request import ClientRequest
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.counting import Counting
from ullage.doors.proxy.discovery import Discovery
from ullage.doors.proxy.fitting import budgets_of, exchanges_of
from ullage.doors.proxy.guard import Guard
from ullage.doors.proxy.keepalive import (
    KEPT_ALIVE,
    FinishedRequest,
    KeepAlive,
)
from ullage.doors.proxy.relayed import Relayed
from ullage.doors.proxy.routes import route_of
from ullage.doors.proxy.summarising import (
    AnsweredCredentials,
    summariser_of,
)
from ullage.doors.proxy.tenants import Tenants
from ullage.doors.proxy.upstream import proxies_of

_REFUSES = (401, 403)


class RequestRelay:
    """Passes requests on. One for each worker.

    Args:
        config: the proxy's settings.
        client: who speaks to the upstreams.
        tenants: who says whose content a request is.
        tell: is called with each request that is over.
        writer: names the worker, also when it is started again; None: it has no name.

    Attributes:
        exchanges: what fits them.
        budgets: what may be spent; None: nothing limits it.
        acceptance: what is held of tenants that no upstream has accepted; None: all are accepted.
        counting: who asks providers to count requests as they came.
        discovery: what upstreams tell of their models.
        guard: who says which requests are passed on.
        refused: how many were not.
        refuse: takes the status and the reason of each that is answered here, unsent.
        connections: those of this worker, once it listens.
        identities: who names the credentials of requests.
        asks_beside: whether upstreams are asked anything beside requests.
        answered: the credentials that an upstream answered.
        keepalive: the prompt caches that are kept from expiring; None: none is.
        held: how much of bodies is held.
        in_flight: requests whose reply is not over.
        idle: set while there is none.
        is_stopping: whether no more are to come.
    """

    def __init__(
        self,
        config: Config,
        client: aiohttp.ClientSession,
        tenants: Tenants,
        tell: Callable[[Relayed], None],
        writer: str | None = None,
    ) -> None:
        self.config = config
        self.client = client
        self.tenants = tenants
        self.tell = tell
        # one tenant for all is the choice of who runs it: there is nobody to be told apart
        has_tenants = config.tenant is None and not config.dry_run
        self.acceptance = Acceptance() if has_tenants else None
        self.proxies = proxies_of(config)
        # names credentials where one tenant is given to all of them, and in no other process
        everybody = replace(config, tenant=None, tenants={}, budgets=[])
        self.identities = Tenants(everybody, os.urandom(32))
        self.answered = AnsweredCredentials()
        summariser = summariser_of(
            config, client, self.answered, self.proxies, lambda: self.budgets
        )
        self.asks_beside = summariser is not None or config.count_sample > 0
        self.exchanges: Exchanges = exchanges_of(
            config, self.acceptance, summariser
        )
        self.budgets = budgets_of(
            config, self.exchanges, self.acceptance, writer
        )
        self.guard = Guard(config)
        self.refused = 0
        self.refuse: Callable[[int, str], None] = _tell_nobody
        self.connections: Sized | None = None
        self.counting = Counting(config, client, self.answered, self.proxies)
        self.discovery = Discovery(config, client, self.proxies)
        self.held = BodyBudget(config.limits.held_bytes)
        self.keepalive: KeepAlive | None = None
        if config.keepalive is not None and not config.dry_run:
            self.keepalive = KeepAlive(
                config, client, self.held, self.proxies, self._pay_beside
            )
        self.in_flight = 0
        self.is_stopping = False
        self.idle = asyncio.Event()
        self.idle.set()

    def tenant_of(self, request: web.BaseRequest, url: str) -> str:
        """Whose content a request is that `guard` lets through.

        Args:
            request: as it came.
            url: where it goes.
        """
        is_trusted = self.guard.comes_from_proxy(request)
        return self.tenants.of(url, request.headers, is_trusted=is_trusted)

    async def _pay_beside(self, last: FinishedRequest, usage: Usage) -> None:
        """Count what kept a prompt cache alive: in the receipts, and towards budgets of teams."""
        self.exchanges.sessions.pay_beside(
            usage, last.model, tenant=last.tenant, client=KEPT_ALIVE
        )
        if self.budgets is not None:
            call = self.budgets.call(last.tenant)
            with contextlib.suppress(BudgetExceeded):
                await adrive(call.claim(last.model, usage.sent_tokens, 1))
            call.settle(usage)
            await self._book()

    async def close(self) -> None:
        """Close the store, and give up what upstreams are asked."""
        await self.counting.close()
        await self.discovery.close()
        await self._book()
        closing: Any = self.exchanges.sessions.close()
        await closing

    async def __call__(
        self, request: web.BaseRequest, target: str
    ) -> web.StreamResponse:
        """Answer a request.

        Args:
            request: the request.
            target: the path and the query that it asks for, still encoded.
        """
        problem = self.guard.problem(request)
        if problem is not None:
            self.refused += 1
            return self.refusal(
                403,
                f"this request is not passed on: {problem}",
                Connection="close",
            )
        if self.is_full:
            return self.refusal(
                503,
                "too many requests are in flight. Try again.",
                Retry_After="1",
            )
        if "upgrade" in request.headers.get("Connection", "").lower():
            return self.refusal(
                426,
                "websockets are not passed on. Use HTTP.",
                Upgrade="HTTP/1.1",
            )
        route = route_of(target, request.headers, self.config.upstreams)
        if route is None:
            return self.refusal(
                400,
                "no upstream has this address. Begin the path with the name of a configured"
                " upstream, or with /v1/, and leave .. out of it.",
            )
        with self.under_way():
            return await self._relayed(ClientRequest(self, request, route))

    def refusal(
        self, status: int, problem: str, **headers: str
    ) -> web.Response:
        """The answer to a request that goes no further; `refuse` takes it.

        Args:
            status: of the answer.
            problem: why, in words of ours alone.
            headers: more of its headers.
        """
        self.refuse(status, problem)
        return failure(status, problem, **headers)

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as may be."""
        return self.in_flight >= self.config.limits.exchanges

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Count a request among those in flight while the block lasts."""
        self.in_flight += 1
        self.idle.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.idle.set()

    async def _relayed(self, request: ClientRequest) -> web.StreamResponse:
        """The reply to a request. What no upstream accepted of it is forgotten."""
        over: list[str] = []
        try:
            if self.acceptance is None:
                return await request.reply()
            with self.acceptance.request(request.tenant, over):
                return await request.reply()
        finally:
            for tenant in over:
                self.exchanges.sessions.drop_tenant(tenant)
            await self._book()

    async def _book(self) -> None:
        """Write what was spent, also where the client is gone."""
        if self.budgets is not None:
            await to_its_end(adrive(self.budgets.flush()))

    async def judge(self, tenant: str, status: int) -> None:
        """Whether an upstream accepts a tenant's credential, by the status of its reply."""
        if self.acceptance is None:
            return
        if status in _REFUSES:
            self.acceptance.refuse(tenant)
        elif 200 <= status < 300 and not self.acceptance.is_accepted(tenant):
            sessions: Any = self.exchanges.sessions
            with contextlib.suppress(StoreError):
                if not await to_its_end(
                    asyncio.to_thread(sessions.store.store.accept, tenant)
                ):
                    sessions.drop_tenant(tenant)


def _tell_nobody(status: int, problem: str) -> None:
    """Nobody asked to be told."""
