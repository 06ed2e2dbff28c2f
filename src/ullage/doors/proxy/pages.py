"""What is answered here and not upstream: everything under ``/_ullage/``.

    /                         the live page                        who runs the proxy, or
    /state                    what it shows, as JSON               authenticates
    /conversations/K          one of them, turn by turn            (`ullage.doors.proxy.access`)
    /conversations/K/…        what its user decides (`ullage.doors.proxy.deciding`): the same
    /v1/compress, /v1/recall  a request made shorter, a call of a recall tool answered: the same
    /metrics                  counters, for Prometheus             whoever reaches the proxy
    /health, /ready           whether it lives, whether it serves  whoever reaches the proxy

A worker's counters and conversations are its own; whoever is asked asks the others too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote

from aiohttp import web

from ullage import AsyncSessions, Event
from ullage.core.errors import ConfigError, StoreError
from ullage.doors.proxy import deciding
from ullage.doors.proxy.access import Access
from ullage.doors.proxy.activity import (
    ConversationActivity,
    Totals,
    budgets_shown,
    joined,
)
from ullage.doors.proxy.answering import UNKNOWN_UPSTREAM
from ullage.doors.proxy.answers import failure, json_answer
from ullage.doors.proxy.compressing import COMPRESS, RECALL, Compressing
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.metrics import merged
from ullage.doors.proxy.observers import Observers
from ullage.doors.proxy.relay import RequestRelay
from ullage.doors.proxy.siblings import AUTHOR_HEADER, Siblings
from ullage.stores import SpendingRow

_ROOT = "/_ullage"
_CONVERSATIONS = "/conversations/"
_DRAWING = "ullage.tools.replay.report.live"
"""What draws the pages. It stands above the proxy, which knows it by its name alone."""
_REPORTING = "ullage.tools.cli.report"
"""What sums up receipts, and is known in the same way."""
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_NOT_GIVEN = (
    "pages are for a browser on this machine, of the user who runs the proxy, at the address it "
    "listens on. To look from elsewhere, or through a reverse proxy, set [access]: docs/proxy.md."
)
_STORE_TRIED_AGAIN_S = "5"
_NOT_AT_HAND = "this conversation is not at hand any more, or cannot be shown turn by turn."
_ASKED = 'Basic realm="ullage", Bearer'
_GUARDED = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


_WorkerState: TypeAlias = tuple[
    Totals, tuple[ConversationActivity, ...], list[SpendingRow]
]


class Pages:
    """Answers for one worker.

    Args:
        config: the proxy's settings.
        relay: of this worker.
        observers: what it has counted and seen.
        siblings: the other workers.
    """

    def __init__(
        self,
        config: Config,
        relay: RequestRelay,
        observers: Observers,
        siblings: Siblings,
    ) -> None:
        self._config = config
        self._relay = relay
        self._access = Access(config, relay.guard)
        self._compressing = Compressing(relay)
        self._observers = observers
        self._siblings = siblings

    def are_meant(self, target: str) -> bool:
        """Whether a request for this path is for a page."""
        path = _path_of(target)
        return path == _ROOT or path.startswith(f"{_ROOT}/")

    async def __call__(
        self, request: web.BaseRequest, target: str
    ) -> web.StreamResponse:
        """Answer a request.

        Args:
            request: the request.
            target: the path and the query that it asks for, still encoded.
        """
        path = _path_of(target).removeprefix(_ROOT)
        asked = deciding.part_of(path.removeprefix(_CONVERSATIONS))
        is_decision = asked is not None and asked[1] != "window"
        is_called = path in (COMPRESS, RECALL)
        methods = ("POST",) if is_decision else ("GET", "HEAD")
        if request.method not in methods and not is_called:
            words = "only a decision is sent here; pages are read."
            return failure(405, words, Allow=", ".join(methods))
        match path:
            case "/health":
                query = parse_qs(target.partition("?")[2])
                return self._health(query.get("upstream", ()))
            case "/ready" if self._relay.is_stopping:
                return json_answer({"status": "stopping"}, 503)
            case "/ready":
                return json_answer(
                    {"status": "ready", "in_flight": self._relay.in_flight}
                )
            case "/metrics":
                return await self._metrics(request)
        is_open = self._config.pages or is_called
        verdict = self._access.verdict(request) if is_open else "refused"
        if verdict == "refused":
            return self._relay.refusal(403, _NOT_GIVEN)
        if verdict == "unauthenticated":
            return self._relay.refusal(
                401, "pages ask for a token.", WWW_Authenticate=_ASKED
            )
        if is_called:
            return await self._compressing(request, path)
        return await self._given(request, path, target, asked)

    async def _given(
        self,
        request: web.BaseRequest,
        path: str,
        target: str,
        asked: tuple[str, deciding.Asked] | None,
    ) -> web.StreamResponse:
        """Answer somebody who may see the pages and decide on them."""
        problem = (
            deciding.problem(request) if request.method == "POST" else None
        )
        if problem is not None:
            return self._relay.refusal(403, problem)
        try:
            if asked is None:
                return await self._page(path, target)
            return await self._decided(request, *asked)
        except StoreError as error:
            return failure(503, str(error), Retry_After=_STORE_TRIED_AGAIN_S)

    # ── prompt caches that are kept alive ────────────────────────────────────────────

    def note_kept_alive(
        self, conversation: str, event: Event, cost_usd: float
    ) -> None:
        """Show on the page, and in the session, that a prompt cache was read again.

        Args:
            conversation: the key of its session.
            event: what was done, and why.
            cost_usd: what it cost.
        """
        self._observers.activity.note(conversation, event, cost_usd)
        sessions = self._relay.exchanges.sessions
        if conversation in sessions:
            sessions.of(conversation).emit(event)

    async def is_used_elsewhere(
        self, conversation: str, since_s: float
    ) -> bool:
        """Whether another worker has served a conversation since a time.

        Args:
            conversation: the key of its session.
            since_s: the time, in seconds since 1970.
        """
        times = await self._siblings.ask_as(
            f"/used/{conversation}", float | None
        )
        return any(used_s is not None and used_s > since_s for used_s in times)

    async def for_siblings(
        self, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Answer another worker: what is here, and nothing of the others."""
        keepalive = self._relay.keepalive
        if keepalive is not None and request.path.startswith("/used/"):
            conversation = request.path.removeprefix("/used/")
            return json_answer(keepalive.last_use_s(conversation))
        match request.path:
            case "/metrics":
                return json_answer(self._lines())
            case "/state":
                return json_answer(self._own_state())
        rest = request.path.removeprefix(_CONVERSATIONS)
        asked = deciding.part_of(rest)
        if asked is not None:
            author = unquote(request.headers.get(AUTHOR_HEADER, ""))
            answer = await self._own_decided(
                *asked, await request.read(), author
            )
            return answer or failure(404, "not here.")
        page = await self._own_conversation(rest)
        return failure(404, "not here.") if page is None else _html(page)

    async def _page(self, path: str, target: str) -> web.StreamResponse:
        if path == "/report":
            return await self._report(target)
        if path in ("", "/"):
            page: str = _drawing().live_page()
            return _html(page)
        if path == "/state":
            return await self._state()
        if path.startswith(_CONVERSATIONS):
            return await self._conversation(path.removeprefix(_CONVERSATIONS))
        return failure(404, "there is no such page.")

    # ── counters ─────────────────────────────────────────────────────────────────────

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        sibling_lines = await self._siblings.ask_as(
            "/metrics", dict[str, list[str]]
        )
        is_given = self._access.verdict(request) == "given"
        text = merged([self._lines(), *sibling_lines], with_teams=is_given)
        return web.Response(
            body=text.encode(), headers={"Content-Type": _PROMETHEUS}
        )

    def _lines(self) -> dict[str, list[str]]:
        sessions: Any = self._relay.exchanges.sessions
        gauges = {
            "in_flight": self._relay.in_flight,
            "held_body_bytes": self._relay.held.bytes,
            "conversations": len(sessions),
            "conversations_bytes": sessions.held_bytes,
            "mistakes_total": self._observers.mistakes,
            "connections": len(self._relay.connections or ()),
            "refused_total": self._relay.refused,
            **_resident(),
        }
        budgets = self._relay.budgets
        rows = self._budgets()
        if budgets is not None:
            gauges["budget_store_errors_total"] = budgets.store_errors
        keepalive = self._relay.keepalive
        if keepalive is not None:
            gauges["keepalive_requests_total"] = keepalive.count
            gauges["keepalive_cost_usd_total"] = keepalive.cost_usd
        several = self._siblings.folder is not None
        return self._observers.metrics.lines(
            gauges, str(self._siblings.number) if several else "", rows
        )

    def _health(self, upstreams: Iterable[str]) -> web.Response:
        """Whether the proxy lives, and has the upstreams that a client of it needs."""
        if any(name not in self._config.upstreams for name in upstreams):
            return json_answer(UNKNOWN_UPSTREAM, 404)
        return json_answer({"status": "ok"})

    def _budgets(self) -> list[SpendingRow]:
        """How far budgets are used, as this worker knows it."""
        budgets = self._relay.budgets
        return [] if budgets is None else budgets.totals()

    # ── conversations ────────────────────────────────────────────────────────────────

    async def _state(self) -> web.Response:
        workers: list[_WorkerState] = [
            self._own_state(),
            *await self._siblings.ask_as("/state", _WorkerState),
        ]
        totals = sum((worker[0] for worker in workers), Totals())
        conversations = joined([worker[1] for worker in workers])
        budgets = budgets_shown(row for worker in workers for row in worker[2])
        state = {
            "policy": self._config.policy,
            "dry_run": self._config.dry_run,
            "workers": self._config.workers,
            "totals": totals,
            "conversations": conversations,
            "budgets": budgets,
        }
        answer = json_answer(state)
        answer.headers.update(_GUARDED)
        return answer

    def _own_state(self) -> _WorkerState:
        """What this worker knows."""
        activity = self._observers.activity
        return activity.totals, activity.conversations, self._budgets()

    async def _report(self, target: str) -> web.Response:
        """What was spent, as ``ullage report --json`` tells it; with ``as=html`` as its page."""
        words = parse_qs(target.partition("?")[2])
        as_html = words.get("as", ["json"])[-1] == "html"
        sessions = self._relay.exchanges.sessions
        if isinstance(sessions, AsyncSessions):
            await sessions.write_receipts()
        store = sessions.store
        try:
            text: bytes = await asyncio.to_thread(
                import_module(_REPORTING).report_for_page,
                store,
                words.get("since", ["7d"])[-1],
                words.get("by", []),
                as_html=as_html,
            )
        except ConfigError as error:
            return failure(400, str(error))
        if as_html:
            return _html(text.decode())
        answer = web.Response(body=text, content_type="application/json")
        answer.headers.update(_GUARDED)
        return answer

    async def _conversation(self, key: str) -> web.Response:
        page = await self._own_conversation(key)
        if page is None:
            replies = (
                await self._siblings.ask(f"{_CONVERSATIONS}{key}")
                if key.isalnum()
                else []
            )
            page = next((reply.decode() for reply in replies), None)
        if page is None:
            return failure(404, _NOT_AT_HAND)
        return _html(page)

    async def _own_conversation(self, key: str) -> str | None:
        sessions = self._relay.exchanges.sessions
        if key not in sessions:
            return None
        return await asyncio.to_thread(
            _drawing().page_of_conversation, key, sessions.of(key)
        )

    # ── decisions ────────────────────────────────────────────────────────────────────

    async def _decided(
        self, request: web.BaseRequest, key: str, asked: deciding.Asked
    ) -> web.StreamResponse:
        """Answer what the page of a conversation asks, here or by the worker that has it."""
        body: bytes | web.Response = b""
        if request.method == "POST":
            body = await deciding.body_of(request)
        if isinstance(body, web.Response):
            return body
        author = self._access.name_of(request)
        answer = await self._own_decided(key, asked, body, author)
        if answer is None:
            path = f"{_CONVERSATIONS}{key}/{asked}"
            reply = await self._siblings.ask_one(path, body, author)
            if reply is None:
                return failure(404, _NOT_AT_HAND)
            status, data = reply
            answer = web.Response(
                body=data, status=status, content_type="application/json"
            )
        answer.headers.update(_GUARDED)
        return answer

    async def _own_decided(
        self, key: str, asked: deciding.Asked, body: bytes, author: str
    ) -> web.Response | None:
        """The same of a conversation that is here; None: it is not."""
        sessions: Any = self._relay.exchanges.sessions
        if key not in sessions:
            return None
        session = sessions.of(key)
        drawing = _drawing()

        async def look() -> Any:
            steps = drawing.current(session)
            stored = await sessions.run(steps, session.settings.tenant)
            return await asyncio.to_thread(drawing.window_of, session, stored)

        return await deciding.answered(session, asked, body, author, look)


def _drawing() -> Any:
    """What draws the pages: it replays and reports, so it loads for who looks."""
    return import_module(_DRAWING)


def _path_of(target: str) -> str:
    """The path of a request's target, decoded."""
    return unquote(target.partition("?")[0])


def _html(page: str) -> web.Response:
    headers = {**_GUARDED, "Content-Type": "text/html; charset=utf-8"}
    return web.Response(body=page.encode(), headers=headers)


def _resident() -> dict[str, float]:
    """Bytes of memory that this process holds, where the system tells it."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return {}
    import os

    return {"resident_bytes": int(pages) * os.sysconf("SC_PAGE_SIZE")}
