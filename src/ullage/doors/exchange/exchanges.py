"""What all exchanges of one door share: the sessions, and the count of their outcomes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from blake3 import blake3

from ullage import AsyncSessions, Sessions, TeamCall
from ullage.core.locks import Lock
from ullage.doors.exchange.body_cache import ParsedBodyCache
from ullage.doors.exchange.exchange import Exchange
from ullage.doors.exchange.headers import SharedHeaders
from ullage.doors.exchange.refusals import KnownRefusals
from ullage.doors.exchange.requests import HistoryStart
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.values import (
    ExchangeCounts,
    ExchangeReport,
    Passed,
    Upstream,
)
from ullage.doors.hidden_turns import ParsedHistory
from ullage.doors.host import ServedWindow, Steps
from ullage.stores import owner_of
from ullage.wires import model_in

T = TypeVar("T")

_NAME: ContextVar[str | None] = ContextVar("ullage_conversation", default=None)
_MOST_BEGINNINGS = 10_000
_PART = "\x1f"
_UNATTENDED = "unattended"
"""Where nobody can answer a recall call, no tool is offered; so that history is another one."""


@contextmanager
def conversation(name: str) -> Iterator[None]:
    """Name the conversation of every request made inside, in this thread or task.

    Without it conversations are told apart by their histories alone, and what one of them set aside
    opens in another of the same tenant, for a model that knows its ref. A conversation with a name
    is a tenant of its own.

    Args:
        name: what its host keeps it under; the same one in every request of it.
    """
    token = _NAME.set(name)
    try:
        yield
    finally:
        _NAME.reset(token)


class Exchanges:
    """The exchanges of one door.

    Args:
        sessions: the sessions of its conversations: `Sessions` where the steps are run with
            `drive`, `AsyncSessions` where they are run with `adrive`.
        tell: called with the `ExchangeReport` of each exchange when it is over.
        recalls: whether requests that have tools are offered the recall tools, and the model's
            calls of them answered here, unseen by the client.
        marks_cache: whether requests get cache markers (`ullage.doors.exchange.markers`).
        refusals: what is known of the additions that upstreams refuse, where doors share it.

    Attributes:
        sessions: the same.
        counts: the outcome of all exchanges so far.
        histories: those with hidden turns as they were parsed, by session.
        body_cache: the newest body of each conversation, parsed.
        now_s: a clock, for what may not take longer than a time.
        headers: what stood around the newest histories, for those that begin.
        refusals: which additions upstreams refused (`ullage.doors.exchange.additions`).

    The session that serves a request is found by its model, its first message, its first reply
    and its client's session: which one it is decides about speed alone, as what was decided in a
    conversation is found by its history. The first reply tells apart what begins alike; whoever was
    first with it here, and who has none yet, shares the session of the beginning.
    """

    def __init__(
        self,
        sessions: Sessions | AsyncSessions,
        tell: Callable[[ExchangeReport], None] | None = None,
        *,
        recalls: bool = True,
        marks_cache: bool = False,
        refusals: KnownRefusals | None = None,
    ) -> None:
        self.sessions = sessions
        self.recalls = recalls
        self.marks_cache = marks_cache
        self.counts = ExchangeCounts()
        self.histories: WeakKeyDictionary[Any, ParsedHistory] = (
            WeakKeyDictionary()
        )
        self.headers = SharedHeaders()
        self.body_cache = ParsedBodyCache()
        self.now_s = time.monotonic
        self.refusals = refusals or KnownRefusals(time.monotonic)
        self._tell = tell
        self._lock = Lock()
        # the first reply that was met to a beginning
        self._first_replies: dict[str, bytes] = {}

    def of(
        self,
        method: str,
        path: str,
        body: bytes,
        upstream: Upstream,
        *,
        tenant: str = "",
        passed: Passed | None = None,
        served: Callable[[str], ServedWindow | None] | None = None,
        origin: str = "",
        client: str = "",
        client_session: str = "",
        subagent: str = "",
        spending: TeamCall | None = None,
    ) -> Exchange:
        """The exchange of one request.

        Args:
            method: the HTTP method.
            path: the path of its URL with the query, quoted.
            body: the body, decoded where it came compressed.
            upstream: sends it.
            tenant: whose content this is; a ref opens only what the same tenant put there.
            passed: why the door wants it sent as it came; None: it is to be fitted.
            served: gives the window that a model is served with, as far as its server told it.
            origin: of its URL, where the path does not begin with it.
            client: the program that asks, for receipts.
            client_session: its own name of the session, where a header says so.
            subagent: its own name of the sub-agent that asks, where a header says so.
            spending: reserves what the request may come to; None: nothing limits it.
        """
        return Exchange(
            self,
            method,
            path,
            body,
            upstream,
            tenant=tenant,
            name=_NAME.get(),
            passed=passed,
            served=served,
            origin=origin,
            client=client,
            client_session=client_session,
            subagent=subagent,
            spending=spending,
        )

    def tenant(self, tenant: str, name: str | None) -> str:
        """The owner of a conversation's content: the tenant, or a named conversation of it."""
        return tenant if name is None else owner_of(tenant, name)

    def session(
        self,
        route: Route,
        request: Mapping[str, Any],
        tenant: str,
        name: str | None,
        start: HistoryStart,
        *,
        can_recall: bool,
        client: str = "",
        client_session: str = "",
    ) -> tuple[str, Any]:
        """The session that serves a request, and the key that it is kept under.

        Args:
            route: what is asked.
            request: as the client sent it, with its model.
            tenant: whose content it is.
            name: of the conversation, if it was named.
            start: how its history begins.
            can_recall: whether recall calls can be answered here.
            client: the program that asks.
            client_session: its own name of the session.
        """
        owner = self.tenant(tenant, name)
        if not can_recall:
            owner = owner_of(owner, _UNATTENDED)
        if name is not None:
            start = HistoryStart(name.encode("utf-8", "surrogatepass"))
        begins = [str(model_in(request)), start.opening.hex()]
        if client_session:
            begins.append(client_session)
        key = _key(owner, route.wire, *begins)
        if start.reply and self._first_to(key, start.reply) != start.reply:
            key = _key(key, start.reply.hex())
        recall = "auto" if can_recall and self.recalls else False
        # held out or not: whatever model it is asked of, and whoever answered it first
        draw_key = _key(self.tenant(tenant, name), start.opening.hex())
        session = self.sessions.of(
            key,
            conversation=draw_key,
            tenant=owner,
            format=route.wire,
            recall=recall,
            agent=client,
        )
        return key, session

    def _first_to(self, key: str, reply: bytes) -> bytes:
        """The first reply that was seen to this beginning; ``reply`` itself if there was none."""
        with self._lock:
            first_reply = self._first_replies.setdefault(key, reply)
            if len(self._first_replies) > _MOST_BEGINNINGS:
                del self._first_replies[next(iter(self._first_replies))]
            return first_reply

    def do(self, steps: Steps[T], tenant: str) -> T | Awaitable[T]:
        """Run steps of the core on the store."""
        return self.sessions.run(steps, tenant)

    def over(self, report: ExchangeReport) -> None:
        """Count an exchange that is over, and report it."""
        with self._lock:
            self.counts = self.counts.plus(report)
        if self._tell is not None:
            self._tell(report)


def _key(*parts: str) -> str:
    return blake3(
        _PART.join(parts).encode("utf-8", "surrogatepass")
    ).hexdigest(16)
