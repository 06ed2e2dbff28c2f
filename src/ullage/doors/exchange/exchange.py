"""The steps of one exchange: from the bytes of a request to the answer's head.

    body ─▶ JSON ─▶ request ─▶ fit ─▶ view ─▶ bytes ─▶ upstream ─▶ reply
      │                │                                   │
      └── passed on, with a reason                         ├▶ too long: a shorter view, once
      └── passed on, with a reason                         ├▶ 400, 422: without our additions
                                                           ├▶ JSON: observed, given
                                                           └▶ events:
                                                           `ullage.doors.exchange.streamed`

Whatever goes wrong here, and is not the upstream's word, ends with the bytes that came being sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ullage.core.errors import BudgetExceeded
from ullage.doors.exchange import bodies, requests
from ullage.doors.exchange.additions import RequestTarget
from ullage.doors.exchange.answers import (
    TeedAnswer,
    UntouchedAnswer,
    WholeAnswer,
)
from ullage.doors.exchange.parsed_body import ParsedBody
from ullage.doors.exchange.problems import problem_of, reason_of
from ullage.doors.exchange.replies import is_error, refusal
from ullage.doors.exchange.requests import HistoryStart
from ullage.doors.exchange.routes import Route, route_of
from ullage.doors.exchange.splices import MessageBytes
from ullage.doors.exchange.stored_exchange import StoredExchange
from ullage.doors.exchange.streamed import StreamedAnswer, framing_of
from ullage.doors.exchange.trials import (
    Trial,
    is_bad_request,
    may_fit,
    with_additions,
    words_of,
)
from ullage.doors.exchange.values import (
    ClientAnswer,
    Passed,
    TooLong,
    Upstream,
    UpstreamReply,
)
from ullage.doors.hidden_turns import (
    FinishedReply,
    NextRound,
    PrivateCalls,
    RestoredRequest,
    Rounds,
    is_thread,
    restore_hidden_turns,
    takes_rounds,
)
from ullage.doors.host import Actions, ServedWindow
from ullage.wires import FORMATS, Format, model_in

if TYPE_CHECKING:
    from ullage import TeamCall
    from ullage.doors.exchange.exchanges import Exchanges

_ELSEWHERE = ("conversation", "cachedContent", "cached_content")
"""What names a history to which a round more than the client asked for would be added, or tools."""

MOST_RECALLS = 32
"""So many private calls of a reply, in all its rounds, are answered."""

MOST_RECALL_S = 4.0
"""After so many seconds of answering them, the others of the reply are not."""


class Exchange(StoredExchange):
    """One request and its answer. Made by `Exchanges.of`.

    Attributes, beside those of `StoredExchange`:
        request: what it was fitted from.
        rounds: what becomes of the reply (`ullage.doors.hidden_turns`); None if none is asked for.
        hides_usage: whether the client did not ask for the chunk of usage that it would get.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        method: str,
        path: str,
        body: bytes,
        upstream: Upstream,
        *,
        tenant: str,
        name: str | None,
        passed: Passed | None,
        served: Callable[[str], ServedWindow | None] | None = None,
        origin: str = "",
        client: str = "",
        client_session: str = "",
        subagent: str = "",
        spending: TeamCall | None = None,
    ) -> None:
        route = None if passed else route_of(method, path)
        super().__init__(
            exchanges,
            path,
            passed or (None if route else "path"),
            route=route,
            body=body,
            spending=spending,
        )
        self.request: Mapping[str, Any] = {}
        self.rounds: Rounds | None = None
        self.hides_usage = False
        self._upstream = upstream
        self._tenant = tenant
        self._name = name  # of the conversation, where it has one
        self._served = served
        self._program = client
        self._client_session = client_session
        self._subagent = subagent
        self._sent = body  # as it goes to the upstream
        self._fields: Collection[str] = ()  # of the body
        self._write: bodies.Write = bodies.write
        self._parsed: ParsedBody | None = None
        self._message_bytes: MessageBytes | None = None  # of its body
        # the body as a request, with its model
        self._client: Mapping[str, Any] = {}
        self._takes = True  # whether recall calls in the reply can be answered
        self._is_refused = False  # for its length, once
        self._trial: Trial | None = None  # of what is added to it
        self._folder = f"{origin}{path.partition('?')[0].rpartition('/')[0]}"
        self._recall_s = 0.0  # how long its private calls took

    @property
    def as_it_came(self) -> Mapping[str, Any]:
        """The client's own request, with its model."""
        return self._client

    def steps(self) -> Actions[ClientAnswer]:
        """Fit the request, send it, and give the answer once its head is there.

        A request refused as too long is made shorter and sent once more. What cannot be fitted is
        sent as it came. Whoever gets the answer closes it.
        """
        try:
            if self.route is not None and self.route.is_stored:
                return (yield from self._stored(self.route))
            refused = yield from self._fit_or_pass()
            if refused is not None:
                return refused
            return (yield from self._answer(*(yield from self.send())))
        except BaseException:
            self.over(0)
            raise

    # ── the request ──────────────────────────────────────────────────────────────────

    def _fit_or_pass(self) -> Actions[ClientAnswer | None]:
        """Fit the request, or note why it is sent as it came.

        Returns:
            An answer of ours where it may not be sent; else None.
        """
        if self.route is None:
            return None
        try:
            yield from self._fit()
        except Exception as error:  # noqa: BLE001 - ours, and no reason to break the client's run
            refused = self._pass(error)
            if refused is not None:
                return refused
        try:
            yield from self._claim_unread(self.route)
        except BudgetExceeded as error:
            return self._refuse(error)
        return None

    def _pass(self, error: Exception) -> ClientAnswer | None:
        """Send what came, because of an error; an answer of ours where it may not be sent."""
        if isinstance(error, BudgetExceeded):
            return self._refuse(error)
        self.passed = reason_of(error)
        self._note(problem=problem_of(error))
        self.view = None
        self._sent = self._body
        return None

    def _fit(self) -> Actions[None]:
        assert self.route is not None
        body = self._read(self.route)
        self._note(wire=self.route.wire)
        if not isinstance(body, dict):
            self.passed = "body"
            return
        self._fields = frozenset(body)
        field = next((key for key in _ELSEWHERE if body.get(key)), None)
        if field is not None:
            model = self.route.model or model_in(body) or ""
            self._note(problem=field, model=str(model))
            self.passed = "elsewhere"
        elif self.route.kind == "batch":
            yield from self._fit_batch(body)
        else:
            self._client = requests.request_of(self.route, body)
            yield from self._fit_history(FORMATS[self.route.wire])

    def _read(self, route: Route) -> Any:
        """The body as JSON; of one that goes on from an earlier body only the new end is parsed."""
        if route.kind != "batch":
            tenant = self._exchanges.tenant(self._tenant, self._name)
            self._owner = f"{route.wire} {tenant}"
            key = FORMATS[route.wire].key
            self._parsed = self._exchanges.body_cache.read(
                self._body, key, self._owner
            )
        if self._parsed is not None:
            self._message_bytes = self._parsed.message_bytes(self._body)
            return self._parsed.value
        body, self._write = bodies.read_to_write(self._body)
        return body

    def _fit_history(self, wire: Format) -> Actions[None]:
        """Fit a request with the turns that its client never saw."""
        assert self.route is not None
        self._takes = (
            takes_rounds(self._client, wire) and not self.route.is_array
        )
        parsed = self._parsed
        start = parsed.beginning if parsed else None
        if start is None:
            start = requests.beginning(wire.name, self._client)
        key, session = self._session_from(start, self.route)
        self.is_thread = is_thread(self._client, wire)
        # where the provider holds the history, each request begins a conversation of its own
        is_held = bool(wire.previous(self._client))
        model = str(model_in(self._client) or "")
        self._note(conversation="" if is_held else key, model=model)
        self._take_window(session, self._client)
        target = RequestTarget(
            self._tenant, self._folder, wire.name, self.report.model
        )
        self._trial = Trial(
            self._exchanges.refusals, target, len(wire.tools(self._client))
        )
        self._session = session
        tenant = self._exchanges.tenant(self._tenant, self._name)
        self._exchanges.headers.give(session, tenant, wire.name)
        self._client = session.intern(self._client)
        steps = restore_hidden_turns(
            self._client, wire, tenant, self._exchanges.histories.get(session)
        )
        restored: RestoredRequest = yield partial(
            self._exchanges.do, steps, tenant
        )
        if restored.history is not None:
            self._exchanges.histories[session] = restored.history
        if is_held:
            # the provider expects the deferred results, whatever else becomes of the request
            self._body = self._written(restored.request, restored.request)
        yield from self.prepare(restored.request)
        self._exchanges.headers.take(session, tenant, wire.name)
        if parsed is not None and not is_held:
            # the session has the new messages too
            interned = session.intern(self._client)
            parsed = replace(
                parsed, messages=interned[wire.key], beginning=start
            )
            self._exchanges.body_cache.keep(
                session, self._owner, self._body, parsed
            )
        if self.route.kind == "create" and self._takes:
            self.rounds = Rounds(
                self.view.wire,
                restored,
                self.view.owns,
                redact=session.settings.redact,
                offers=self.view.sent.offers,
            )

    def _session_from(
        self, start: HistoryStart, route: Route
    ) -> tuple[str, Any]:
        """The session of a history that begins so, with its key; it is told who asks."""
        client_session = self._client_session or requests.client_session_in(
            self._client
        )
        key, session = self._exchanges.session(
            route,
            self._client,
            self._tenant,
            self._name,
            start,
            can_recall=self._takes,
            client=self._program,
            client_session=client_session,
        )
        session.asked_in(client_session, self._subagent)
        return key, session

    def _take_window(self, session: Any, request: Mapping[str, Any]) -> None:
        """Fit for the window that the upstream serves the model with, where it reports one.

        A request that asks its server for a window has that one.
        """
        assert self.route is not None
        if self._served is None:
            return
        if FORMATS[self.route.wire].window_tokens(request) is not None:
            return
        served = self._served(self.report.model)
        event = None if served is None else session.serve_with(served)
        if event is not None:
            self._note(events=(*self.report.events, event))

    def prepare(self, request: Mapping[str, Any]) -> Actions[None]:
        """Fit a request: make its view, and the bytes to send for it."""
        assert self.route is not None
        assert self._trial is not None
        trial = self._trial
        marks_cache = self._exchanges.marks_cache
        self.request = (
            request
            if request is self._client
            else self._session.intern(request)
        )
        may_add = trial.takes("tools")
        self.view = yield partial(
            self._session.fit, self.request, may_add_tools=may_add
        )
        sentence = yield from self._claim()
        added = with_additions(
            self.view,
            self.request,
            self.route,
            trial,
            marks_cache=marks_cache,
            sentence=sentence,
        )
        trial.added = added.names
        self.hides_usage = "stream_options" in added.names
        self._note(
            events=(*self.report.events, *self.view.events),
            is_undercounted=self.view.sent.is_undercounted,
            standing=self.view.sent.standing,
            is_held_out=self._session.is_held_out,
            without=added.without,
        )
        self._sent = self._written(added.view, added.request)

    def _written(
        self, view: Mapping[str, Any], outgoing: Mapping[str, Any]
    ) -> bytes:
        """The bytes to send for a view: the client's own, where they say the same."""
        is_same = requests.is_same(self._client, view)
        self._note(is_changed=not is_same)
        if is_same and outgoing is view:
            return self._body
        assert self.route is not None
        body = requests.body_of(self.route, self._fields, outgoing)
        if self._message_bytes is None:
            return self._write(body)
        key = FORMATS[self.route.wire].key
        return self._message_bytes.written(body, key, self._client[key])

    def _fit_batch(self, body: Mapping[str, Any]) -> Actions[None]:
        """Fit each request of a batch by itself, without recall: nobody could answer it."""
        assert self.route is not None
        originals = requests.requests_of_batch(self.route, body)
        views = []
        for request in originals:
            views.append((yield from self._fitted_alone(request)))
        fitted = iter(views)
        changed = requests.with_changed_requests(
            self.route, body, lambda _: next(fitted)
        )
        if any(
            view is not original
            for view, original in zip(views, originals, strict=True)
        ):
            self._note(is_changed=True, is_shortened=True)
            self._sent = self._write(changed)

    def _fitted_alone(
        self, request: dict[str, Any]
    ) -> Actions[dict[str, Any]]:
        """A request of a batch, fitted; itself where it cannot be."""
        assert self.route is not None
        try:
            whole = requests.request_of(self.route, request)
            begins = requests.beginning(self.route.wire, whole)
            key, session = self._exchanges.session(
                self.route,
                whole,
                self._tenant,
                self._name,
                begins,
                can_recall=False,
                client=self._program,
            )
            session.asked_in(
                self._client_session or requests.client_session_in(whole)
            )
            self._note(model=str(model_in(whole) or ""))
            self._take_window(session, whole)
            view = yield partial(session.fit, whole)
            session.release()
        except BudgetExceeded:
            raise
        except Exception as error:  # noqa: BLE001 - the others of the batch are fitted all the same
            self.note_problem(error)
            return request
        self._note(conversation=key, model=str(model_in(whole) or ""))
        if requests.is_same(whole, view):
            return request
        return requests.body_of(self.route, request, view)

    # ── upstream ─────────────────────────────────────────────────────────────────────

    def send(self) -> Actions[tuple[UpstreamReply, bytes | None]]:
        """Send the request.

        Returns:
            The reply, and its body if it is a refusal, as that had to be read.
        """
        while True:
            self._note(tries=self.report.tries + 1)
            try:
                reply: UpstreamReply = yield partial(
                    self._upstream.send, self._sent
                )
                if reply.status < 400:
                    self._accept()
                if reply.status < 400 or self.view is None:
                    return reply, None
                body: bytes = yield reply.read
            except TooLong:
                self._release()
                return reply, None
            except BaseException:
                self._release()
                raise
            if not (yield from self.may_retry(refusal(reply.status, body))):
                return reply, body
            yield reply.close

    def may_retry(self, error: Any) -> Actions[bool]:
        """Whether a refusal leaves something else to send now: shorter, or with fewer additions."""
        if (yield from self._is_shorter(error)):
            return True
        return is_bad_request(error) and (
            yield from self._has_less(words_of(error))
        )

    def _has_less(self, words: bytes) -> Actions[bool]:
        """Whether there is something else to send, with fewer additions, after a refusal."""
        trial = self._trial
        if trial is None:
            return False
        if not trial.leave_out(words):
            return trial.is_refused and self._may_go_as_it_came()
        refused_body = self._sent
        try:
            yield from self.prepare(self.request)
        except Exception:  # noqa: BLE001 - nothing else can be sent: the provider's word holds
            return False
        return self._sent is not refused_body

    def _may_go_as_it_came(self) -> bool:
        """Whether the client's own body is sent now, because the fitted one is refused in any form.

        It has to be what the client asked for just now, and to fit: so it is not the history of a
        further round, and no stream has begun.
        """
        if self.view is None:
            return False
        if self.report.recalled or self.report.is_streamed:
            return False
        if self._sent is self._body or not may_fit(
            self.view, self._sent, self._body
        ):
            return False
        self._release()
        self.passed = "refused"
        self.view = None
        self.rounds = None
        self._sent = self._body
        self._note(is_changed=False, without=())
        return True

    def _accept(self) -> None:
        """The upstream took what was sent: remember and report what was left out for that."""
        if self._trial is None or self.view is None:
            return
        events = tuple(self._trial.accept())
        for event in events:
            self._session.emit(event)
        self._note(events=(*self.report.events, *events))

    def _is_shorter(self, error: Any) -> Actions[bool]:
        """Whether a refusal is for length, and there is a shorter view to be sent now."""
        try:
            if self.view.refused(error) is None:
                self._release()
                return False
            if self._is_refused:
                return False
            self._is_refused = True
            yield from self.prepare(self.request)
        except Exception:  # noqa: BLE001 - nothing shorter can be sent: the provider's word holds
            return False
        self._note(is_retried=True)
        return True

    # ── the reply ────────────────────────────────────────────────────────────────────

    def _answer(
        self, reply: UpstreamReply, body: bytes | None
    ) -> Actions[ClientAnswer]:
        if body is not None:
            return WholeAnswer(self, reply, reply.status, body)
        if self.view is None or self.route is None or reply.status >= 400:
            return UntouchedAnswer(self, reply)
        if self.route.kind in ("count", "compact"):
            self._release()
            return UntouchedAnswer(self, reply)
        framing = framing_of(self.route.wire, reply.content_type)
        if framing is not None:
            return StreamedAnswer(self, reply, framing)
        if self.route.streams:
            return TeedAnswer(self, reply)
        try:
            body = yield reply.read
        except TooLong:
            self._release()
            return UntouchedAnswer(self, reply)
        except BaseException:
            self._release()
            raise
        return (yield from self._observed(reply, body))

    def _observed(
        self, reply: UpstreamReply, body: bytes
    ) -> Actions[ClientAnswer]:
        """A reply in one piece, taken in; one that is an error under status 200, asked again."""
        wire = self.view.wire.wire
        value = bodies.read(body)
        if is_error(wire, value) and (yield from self.may_retry(value)):
            yield reply.close
            return (yield from self._answer(*(yield from self.send())))
        observe = partial(self.observe, value)
        if (
            not isinstance(value, dict)
            or is_error(self.view.wire.wire, value)
            or self.rounds is None
        ):
            return WholeAnswer(self, reply, reply.status, body, observe)
        try:
            step = self.rounds.take(value)
            is_last = isinstance(step, FinishedReply)
            if not is_last:
                yield from observe()
            step = yield from self.settle(step, self.rounds.answer)
            if isinstance(step, FinishedReply):
                same = step.reply in (value, None)
                content = body if same else bodies.write(step.reply or {})
                if is_last and self.is_thread:
                    yield from observe()
                    is_last = False
                return WholeAnswer(
                    self,
                    reply,
                    reply.status,
                    content,
                    observe if is_last else None,
                )
            yield from self.prepare(step.request)
        except Exception as error:  # noqa: BLE001 - ours; nothing was given, so all can begin anew
            refused = self._pass(error)
            if refused is not None:
                return refused
        yield reply.close
        return (yield from self._answer(*(yield from self.send())))

    def settle(
        self,
        step: PrivateCalls | NextRound | FinishedReply,
        answer: Callable[[list[Any]], NextRound | FinishedReply],
    ) -> Actions[NextRound | FinishedReply]:
        """What follows a round, once its private calls are answered and its records committed."""
        if isinstance(step, PrivateCalls):
            results = []
            for call in step.calls:
                results.append((yield from self._result_of(call)))
            step = answer(results)
        if isinstance(step, FinishedReply) and step.records:
            tenant = self._exchanges.tenant(self._tenant, self._name)
            store = self._exchanges.sessions.store
            yield from self._attempt(
                partial(store.commit, tenant, (), step.records)
            )
        return step

    def _result_of(self, call: Any) -> Actions[Any]:
        """The result of a private call, as long as the reply may have more of them.

        None if it cannot be had.
        """
        assert self.rounds is not None
        if (
            self.report.recalled >= MOST_RECALLS
            or self._recall_s > MOST_RECALL_S
        ):
            return self.rounds.limit_reached(call)
        began_s = self._exchanges.now_s()
        result = yield from self._recalled(call)
        self._recall_s += self._exchanges.now_s() - began_s
        return result

    def _recalled(self, call: Any) -> Actions[Any]:
        """The result of a private call; None if it cannot be had."""
        self._note(recalled=self.report.recalled + 1)
        return (yield from self._attempt(partial(self.view.recall, call)))

    def observe(self, reply: Any) -> Actions[None]:
        """Take in a reply, or those events of it that report usage. It never raises."""
        yield from self._attempt(partial(self.view.observe, reply))
        usage = self.view.sent.reply_usage
        earlier_usage = self.report.usage
        # also of an estimate, which is in no sum of what providers reported
        new = self._session.take_new_savings()
        if (
            reply
            and self._trial is not None
            and not is_error(self.view.wire.wire, reply)
        ):
            self._trial.confirm()
        if usage is not None:
            self._note(
                usage=usage
                if earlier_usage is None
                else earlier_usage + usage,
                raw_usd=(self.report.raw_usd or 0.0) + new.raw_usd,
            )
        for event in self.view.sent.reply_events:
            if event not in self.report.events:
                self._note(events=(*self.report.events, event))
