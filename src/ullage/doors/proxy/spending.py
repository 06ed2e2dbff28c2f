"""What one request of a client costs: for the budgets of teams, for receipts and for metrics.

Whatever is asked for a reply counts, also what goes through unread: a client that asks not to be
fitted spends money anyway. Of such a request the usage is read from its reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from msgspec.structs import replace

from ullage import Usage
from ullage.core.errors import BudgetExceeded, StoreError
from ullage.doors.exchange import route_of as asked_at
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.spending import (
    SPENDING_KINDS,
    UnreadRequest,
    refused_request,
    unread_request,
    usage_in,
)
from ullage.doors.exchange.values import ExchangeReport
from ullage.doors.host import adrive
from ullage.doors.proxy.bodies import Body, decoded
from ullage.doors.proxy.headers import TREATMENT_HEADER
from ullage.doors.proxy.relayed import treatment_of
from ullage.doors.proxy.routes import UpstreamRoute
from ullage.doors.proxy.upstream import HttpReply
from ullage.stores import spending_of

if TYPE_CHECKING:
    from ullage import AsyncSessions, BudgetUse, TeamBudgets, TeamCall

_COUNTED_BYTES = 8 << 20
"""So much of a reply that goes through as it comes is looked through for its usage."""
_BYTES_PER_TOKEN = 4
_RENEWED_S = 30.0
"""A third of the time after which a reservation lapses."""


@contextlib.asynccontextmanager
async def renewed(
    budgets: TeamBudgets | None, store: object
) -> AsyncIterator[None]:
    """Keep what calls reserve from lapsing, while the block lasts.

    A worker that takes the place of a dead one goes on from what that one booked, and gives back
    what it had reserved.

    Args:
        budgets: of the worker; None: there are none.
        store: where they are kept.
    """
    if budgets is None:
        yield
        return
    keeper: Any = spending_of(getattr(store, "blocking", store))
    with contextlib.suppress(StoreError):
        rows = await asyncio.to_thread(keeper.spending, int(time.time()))
        budgets.resume(rows)
        await adrive(budgets.flush())
    task = asyncio.create_task(_renew(budgets))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _renew(budgets: TeamBudgets) -> None:
    while True:
        await asyncio.sleep(_RENEWED_S)
        await adrive(budgets.renew())


class RequestSpending:
    """What one request reserves, and what it came to.

    Args:
        call: of its tenant, for which nothing is reserved yet; None: nothing limits it.
        request: as it came.
        route: where it goes.

    Attributes:
        call: the same.
        refusal: the report of a request that a budget refused unread, or None.
    """

    def __init__(
        self,
        call: TeamCall | None,
        request: web.BaseRequest,
        route: UpstreamRoute,
    ) -> None:
        self.call = call
        self.refusal: ExchangeReport | None = None
        self._headers = request.headers
        self._path = route.path
        self._asked = asked_at(request.method, route.url)
        self._copy = bytearray()
        self._down_bytes = 0
        self._read_request: Callable[[], UnreadRequest] | None = None
        self._usage: Usage | None = None
        self._is_read = False

    @property
    def counts(self) -> bool:
        """Whether the request costs something, by its path."""
        return self._asked is not None and self._asked.kind in SPENDING_KINDS

    @property
    def use(self) -> BudgetUse | None:
        """How far the budget is used that is nearest its end; None: none covers the request."""
        return None if self.call is None else self.call.use

    async def claim_unread(
        self, body: Body, most_bytes: int
    ) -> web.Response | None:
        """Reserve what a request may come to that no exchange has read.

        Args:
            body: its body, or what brings it.
            most_bytes: of a body that is decoded.

        Returns:
            An answer where it may not be sent; else None.
        """
        asked = self._asked
        if asked is None or not self.counts:
            return None
        if self.call is not None and self.call.is_claimed:
            return None
        self._read_request = partial(
            self._unread_request, asked, body, most_bytes
        )
        if self.call is None:
            return None
        try:
            await adrive(self.call.claim(*self._read_request()))
        except BudgetExceeded as error:
            return self._refused(asked.wire, error, self.call)
        return None

    def _unread_request(
        self, asked: Route, body: Body, most_bytes: int
    ) -> UnreadRequest:
        """What is known of a request that no exchange has read."""
        encoding = self._headers.get("Content-Encoding", "")
        plain = (
            decoded(body.data, encoding, most_bytes) if body.is_whole else None
        )
        length = self._headers.get("Content-Length", "")
        size = int(length) if not plain and length.isdecimal() else None
        return unread_request(asked, plain or b"", size)

    def _refused(
        self, wire: str, error: BudgetExceeded, call: TeamCall
    ) -> web.Response:
        refused = refused_request(wire, error)
        self.refusal = ExchangeReport(
            path=self._path,
            wire=wire,
            model=call.model,
            status=refused.status,
            is_stopped=True,
            budget=call.use,
        )
        treatment = treatment_of(None, report=self.refusal)
        return web.Response(
            status=refused.status,
            body=refused.body,
            content_type="application/json",
            headers={**refused.headers, TREATMENT_HEADER: treatment},
        )

    def look_at(self, part: bytes) -> None:
        """Keep a part of a reply that goes through as it comes."""
        self._down_bytes += len(part)
        if self.counts and self._down_bytes <= _COUNTED_BYTES:
            self._copy += part

    def read(self, reply: HttpReply) -> None:
        """Read the usage in what was kept of a reply, which is over."""
        data = bytes(self._copy)
        self._copy = bytearray()
        self._is_read = self.counts and 200 <= reply.status < 300
        if self._asked is None or self._down_bytes > _COUNTED_BYTES:
            return
        encoding = reply.response.headers.get("Content-Encoding", "")
        plain = decoded(data, encoding, _COUNTED_BYTES)
        with contextlib.suppress(Exception):  # it is the provider's to word
            if plain:
                self._usage = usage_in(
                    self._asked.wire, reply.content_type, plain
                )

    def completed(self, report: ExchangeReport) -> ExchangeReport:
        """The report of a request with what was read of a reply that went through.

        Args:
            report: of the request, without that.
        """
        if not self._is_read or self._asked is None:
            return report
        usage = report.usage
        if self._usage is not None:
            usage = self._usage if usage is None else usage + self._usage
        return replace(
            report,
            wire=report.wire or self._asked.wire,
            model=report.model or self._model(),
            usage=usage,
        )

    def _model(self) -> str:
        """The model that a request names which no exchange has read."""
        if self.call is not None and self.call.model:
            return self.call.model
        return "" if self._read_request is None else self._read_request().model

    def pay(
        self,
        sessions: AsyncSessions,
        report: ExchangeReport,
        came_bytes: int,
        *,
        tenant: str,
        client: str,
    ) -> None:
        """Put a request into the receipts that no session has: it saved nothing.

        Args:
            sessions: of the door.
            report: of the request, completed.
            came_bytes: of its body.
            tenant: whose request it was.
            client: the program that asked.
        """
        usage = self._usage
        if not self._is_read or self._asked is None:
            return
        if usage is None and self._asked.kind != "create":
            return  # a batch is answered later
        sessions.pay_as_it_came(
            usage or self._estimate(came_bytes),
            report.model,
            report.wire,
            tenant=tenant,
            client=client,
            is_reported=usage is not None,
        )

    def _estimate(self, came_bytes: int) -> Usage:
        """What a request came to whose provider reports nothing, by what went both ways."""
        return Usage(
            fresh_tokens=came_bytes // _BYTES_PER_TOKEN,
            output_tokens=self._down_bytes // _BYTES_PER_TOKEN,
        )

    def settle(self, report: ExchangeReport | None, came_bytes: int) -> None:
        """Count what the request came to: by its provider's report, else by our estimate.

        Args:
            report: of the request, completed.
            came_bytes: of its body.
        """
        if self.call is None:
            return
        if report is None or not 200 <= report.status < 300:
            self.call.settle(None)
            return
        size_bytes = came_bytes + self._down_bytes
        estimate = report.view_tokens or size_bytes // _BYTES_PER_TOKEN
        self.call.settle(report.usage, max(estimate, 1))
