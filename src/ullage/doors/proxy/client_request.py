"""One request at the proxy, from its head until its reply is over.

    body ─▶ exchange ─▶ upstream ─▶ reply, as it comes ─▶ client
      └── passed on as it is, with a reason

What an exchange does with a request that holds a history is `ullage.doors.exchange`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from ullage.doors.exchange import ClientAnswer, Exchange, Passed
from ullage.doors.exchange import route_of as asked_at
from ullage.doors.exchange.values import ExchangeReport
from ullage.doors.host import adrive, to_its_end
from ullage.doors.proxy.answers import failure
from ullage.doors.proxy.bodies import Body, decoded, read_body
from ullage.doors.proxy.headers import (
    TREATMENT_HEADER,
    client_session_of,
    passed_down,
    passed_up,
    program_of,
    subagent_of,
)
from ullage.doors.proxy.keepalive import WatchedRequest
from ullage.doors.proxy.relayed import Relayed, treatment_of
from ullage.doors.proxy.routes import UpstreamRoute
from ullage.doors.proxy.spending import RequestSpending
from ullage.doors.proxy.summarising import BackgroundCaller, called_by
from ullage.doors.proxy.unsent import (
    DryRun,
    NowhereUpstream,
    Unsent,
    sent,
    unreached,
)
from ullage.doors.proxy.upstream import HttpReply, HttpUpstream

if TYPE_CHECKING:
    from ullage.doors.proxy.relay import RequestRelay

_TRACEPARENT_CHARS = 256


class ClientRequest:
    """One request of a client, until its reply is over.

    Args:
        relay: of the worker.
        request: as it came.
        route: where it goes.

    Attributes:
        tenant: whose content it is.
    """

    def __init__(
        self,
        relay: RequestRelay,
        request: web.BaseRequest,
        route: UpstreamRoute,
    ) -> None:
        self._relay = relay
        self._request = request
        self._route = route
        self._config = relay.config
        self.tenant = relay.tenant_of(request, route.url)
        budgets = relay.budgets
        self._spending = RequestSpending(
            None if budgets is None else budgets.call(self.tenant),
            request,
            route,
        )
        self._last_exchange: Exchange | None = None
        # where it is not that of the exchange
        self._report: ExchangeReport | None = None
        self._began = time.time()
        self._read_s = time.monotonic()
        self._began_s = self._read_s
        self._head_s = 0.0
        self._upstream: HttpUpstream | None = None
        self._came_bytes = 0
        self._is_dry = self._is_broken = self._is_whole = False
        self._own_status = 0
        self._watched = WatchedRequest(relay.keepalive, request, self.tenant)

    async def reply(self) -> web.StreamResponse:
        """Pass it on, and give the client its reply."""
        request = self._request
        limits = self._config.limits
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        passed = self._unread()
        body = Body(b"", None, limits.idle_s)
        if (request.content_length or 0) > limits.body_bytes:
            # it is not to be held, so none of it is: it goes on as it comes
            passed = passed or "body"
        try:
            if passed is None or self._spending.counts:
                body = await read_body(
                    request.content,
                    limits.body_bytes,
                    self._relay.held,
                    limits.idle_s,
                )
                self._read_s = time.monotonic()
                self._came_bytes = len(body.data)
            elif request.body_exists:
                body = Body(b"", request.content, limits.idle_s)
            return await self._given(body, passed)
        except TimeoutError:
            return self._silent()
        except web.RequestPayloadError:
            return self._broken(
                failure(
                    400,
                    "the request's body cannot be read.",
                    Connection="close",
                )
            )
        finally:
            self._relay.held.give(len(body.data) if body.is_whole else 0)
            report = self._completed(passed)
            self._tell(report)
            self._pay(report)
            self._watched.end(
                self._upstream,
                self._route,
                is_whole=self._is_whole and not self._is_broken,
            )

    def _silent(self) -> web.Response:
        return self._broken(
            failure(
                408,
                "the request's body did not come to its end.",
                Connection="close",
            )
        )

    def _broken(self, answer: web.Response) -> web.Response:
        """An answer of the proxy's own, where no reply came."""
        self._is_broken = True
        self._own_status = answer.status
        return answer

    def _unread(self) -> Passed | None:
        """Why a request passes whatever is in it, or None."""
        if asked_at(self._request.method, self._route.url) is None:
            return "path"
        if self._request.headers.get("Authorization", "").startswith("AWS4-"):
            # Amazon's signature 4 holds for these bytes alone
            return "signature"
        wish = self._request.headers.get(self._config.opt_out_header, "")
        return "asked" if wish.strip().lower() == "off" else None

    async def _given(
        self, body: Body, passed: Passed | None
    ) -> web.StreamResponse:
        """The reply to a request, by an exchange or as it is."""
        try:
            plain = None
            if passed is None and body.is_whole:
                encoding = self._request.headers.get("Content-Encoding", "")
                plain = decoded(
                    body.data, encoding, self._config.limits.body_bytes
                )
            if plain is None:
                return await self._as_it_is(body, passed or "body")
            self._came_bytes = len(plain)
            if self._config.dry_run:
                await self._tried(plain)
                return await self._as_it_is(body, None)
            return await self._exchanged(body, plain)
        except (aiohttp.ClientError, Unsent, OSError) as error:
            if body.is_silent:
                return self._silent()
            return self._broken(unreached(self._route, error))

    # ── as it is ─────────────────────────────────────────────────────────────────────

    async def _as_it_is(
        self, body: Body, passed: Passed | None
    ) -> web.StreamResponse:
        spending = self._spending
        limit = self._config.limits.body_bytes
        refused = await spending.claim_unread(body, limit)
        if spending.refusal is not None and refused is not None:
            self._report = spending.refusal
            self._relay.exchanges.over(self._report)
            return refused
        headers = passed_up(
            self._request.headers, without=self._config.own_headers
        )
        data: bytes | AsyncIterator[bytes] | None = body.data or None
        if not body.is_whole:
            data = body.parts()
        self._upstream = self._to(headers, data)
        reply = await sent(self._upstream.pass_on())
        self._head_s = time.monotonic()
        if passed is not None:
            self._report = ExchangeReport(
                path=self._route.path,
                passed=passed,
                status=reply.status,
                budget=spending.use,
            )
            self._relay.exchanges.over(self._report)
        async with reply.response:
            return await self._down_as_it_is(
                reply,
                treatment_of(passed, is_dry=self._is_dry, report=self._report),
            )

    async def _down_as_it_is(
        self, reply: HttpReply, treatment: str
    ) -> web.StreamResponse:
        """Pass a reply on as it comes."""
        response = self._response(reply, treatment)
        spending = self._spending
        await response.prepare(self._request)
        try:
            with self._unbroken():
                async for part in reply.parts():
                    spending.look_at(part)
                    await self._write(response, part)
                await response.write_eof()
                self._is_whole = True
        finally:
            # also of a reply whose client went away: what came of it is paid for
            spending.read(reply)
        return response

    # ── by an exchange ───────────────────────────────────────────────────────────────

    async def _tried(self, plain: bytes) -> None:
        """Fit a request and count it, and send nothing."""
        self._is_dry = True
        with contextlib.suppress(DryRun):
            await adrive(self._exchange(plain, NowhereUpstream()).steps())

    async def _exchanged(self, body: Body, plain: bytes) -> web.StreamResponse:
        headers = passed_up(
            self._request.headers,
            without=[*self._config.own_headers, "accept-encoding"],
        )
        self._upstream = self._to(headers, body.data, plain)
        try:
            exchange = self._exchange(plain, self._upstream)
            caller = self._caller(headers)
            with called_by(caller):
                answer = await sent(adrive(exchange.steps()))
        except (aiohttp.ClientError, Unsent, OSError):
            raise
        except Exception:
            # a mistake of ours: what came goes on, if nothing did yet
            if self._upstream.began_s:
                raise
            return await self._as_it_is(body, "error")
        self._head_s = time.monotonic()
        try:
            treatment = treatment_of(
                exchange.passed,
                is_changed=self._upstream.is_changed,
                report=exchange.report,
            )
            if answer.is_untouched:
                return await self._down_as_it_is(answer.reply, treatment)
            return await self._down(answer, treatment)
        finally:
            # what came is taken in whole, also where its client is gone once it has it
            try:
                await to_its_end(adrive(answer.close()))
            finally:
                self._relay.counting.consider(exchange, caller)

    def _caller(self, headers: CIMultiDict[str]) -> BackgroundCaller:
        """This request, for what it begins beside it."""
        route = self._route
        asked = asked_at(self._request.method, route.url)
        assert asked is not None, "it would have been passed on unread"
        return BackgroundCaller(
            self._identity,
            self.tenant,
            route.upstream,
            route.url,
            asked,
            headers,
        )

    @cached_property
    def _identity(self) -> str:
        """What names the credential of this request; ``""`` where nothing is asked beside it."""
        if not self._relay.asks_beside:
            return ""
        url = self._route.url
        headers = self._request.headers
        return self._relay.identities.of(url, headers)

    async def _judge(self, status: int) -> None:
        """Take in how an upstream answers the credential of this request."""
        self._relay.answered.judge(self._identity, status)
        await self._relay.judge(self.tenant, status)

    def _exchange(self, plain: bytes, upstream: Any) -> Exchange:
        target = self._route.url
        self._last_exchange = self._relay.exchanges.of(
            self._request.method,
            target,
            plain,
            upstream,
            tenant=self.tenant,
            served=partial(
                self._relay.discovery.of, self._route, self._request.headers
            ),
            client=program_of(self._request.headers),
            client_session=client_session_of(self._request.headers),
            subagent=subagent_of(self._request.headers),
            spending=self._spending.call,
        )
        self._watched.exchange = self._last_exchange
        return self._last_exchange

    async def _down(
        self, answer: ClientAnswer, treatment: str
    ) -> web.StreamResponse:
        """Give an answer that an exchange has read."""
        reply: HttpReply | None = answer.reply
        if reply is None or "Content-Length" in reply.response.headers:
            parts = []
            while data := await adrive(answer.next()):
                parts.append(data)
            headers = {
                "Content-Type": answer.content_type,
                TREATMENT_HEADER: treatment,
                **answer.headers,
            }
            if reply is not None:
                headers = self._headers(reply, treatment, is_read=True)
            whole_response = web.Response(
                status=answer.status, headers=headers, body=b"".join(parts)
            )
            await whole_response.prepare(self._request)
            # before the answer is closed, and observed
            await whole_response.write_eof()
            self._is_whole = True
            return whole_response
        response = self._response(reply, treatment, is_read=True)
        await response.prepare(self._request)
        with self._unbroken():
            while data := await adrive(answer.next()):
                await self._write(response, data)
            await response.write_eof()
            self._is_whole = True
        return response

    # ── both ─────────────────────────────────────────────────────────────────────────

    def _to(
        self, headers: Any, data: Any, plain: bytes | None = None
    ) -> HttpUpstream:
        method = self._request.method
        url = self._route.url
        proxy = self._relay.proxies.get(self._route.upstream)
        most = self._config.limits.reply_bytes
        return HttpUpstream(
            self._relay.client,
            method,
            url,
            headers,
            data,
            plain,
            proxy=proxy,
            reply_bytes=most,
            judged=self._judge,
            sending=self._watched.sending,
        )

    def _headers(
        self, reply: HttpReply, treatment: str, *, is_read: bool
    ) -> Any:
        """The reply's headers; those about its body only where that is passed on unchanged."""
        without = ["content-length"] if is_read else []
        without += ["content-encoding"] if is_read and reply.is_decoded else []
        headers = passed_down(reply.response.headers, without=without)
        headers[TREATMENT_HEADER] = treatment
        return headers

    def _response(
        self, reply: HttpReply, treatment: str, *, is_read: bool = False
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            status=reply.status,
            reason=reply.response.reason,
            headers=self._headers(reply, treatment, is_read=is_read),
        )
        if self._relay.is_stopping:
            response.force_close()
        return response

    async def _write(self, response: web.StreamResponse, part: bytes) -> None:
        async with asyncio.timeout(self._config.limits.idle_s):
            await response.write(part)

    @contextlib.contextmanager
    def _unbroken(self) -> Any:
        """A reply that ends early must not look like one that is whole."""
        try:
            yield
        except Exception as error:
            self._is_broken = True
            transport: Any = self._request.transport
            if transport is not None:
                transport.abort()
            if not isinstance(
                error, aiohttp.ClientError | TimeoutError | OSError
            ):
                raise

    def _completed(self, passed: Passed | None) -> ExchangeReport:
        """The report of it, with the usage in a reply that went through."""
        exchange = self._last_exchange
        report = self._report
        if report is None:
            report = (
                exchange.report
                if exchange
                else ExchangeReport(path=self._route.path, passed=passed)
            )
        return self._spending.completed(report)

    def _pay(self, report: ExchangeReport) -> None:
        """Count what it came to: in the receipts, and towards the budgets of its team."""
        sessions: Any = self._relay.exchanges.sessions
        self._spending.pay(
            sessions,
            report,
            self._came_bytes,
            tenant=self.tenant,
            client=program_of(self._request.headers),
        )
        self._spending.settle(report, self._came_bytes)

    def _tell(self, report: ExchangeReport) -> None:
        """Tell what came of it; whatever that meets, the client has its reply."""
        now = time.monotonic()
        upstream = self._upstream
        sent_s = (
            upstream.began_s
            if upstream is not None and upstream.began_s
            else now
        )
        self._relay.tell(
            Relayed(
                report=report,
                upstream=self._route.upstream,
                tenant=self.tenant,
                client=program_of(self._request.headers),
                traceparent=self._request.headers.get("traceparent", "")[
                    :_TRACEPARENT_CHARS
                ],
                began_s=self._began,
                came_bytes=self._came_bytes,
                sent_bytes=upstream.sent_bytes if upstream is not None else 0,
                fit_s=sent_s - self._read_s,
                head_s=max(self._head_s - sent_s, 0.0),
                whole_s=now - self._began_s,
                is_dry=self._is_dry,
                is_broken=self._is_broken,
                own_status=self._own_status,
            )
        )
