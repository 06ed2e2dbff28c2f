"""What the session and the session for an event loop share: everything that does no I/O.

The laws:

- Everything a session knows is one frozen value, `SessionState`, replaced by a single assignment
  when a call is over. So wherever a call is interrupted, the session is as before it or as after.
- Calls run one at a time, under the session's lock. What they write to in place is the cache, and
  with it the working window: it is out of the state while it is worked on, and dropped where that
  is interrupted.
- Whatever reads a session takes no lock: it reads the state, in which all is frozen.
- Beside calls others write to the state too (`emit`, `refused`, a host). Each of them changes what
  the state is then, under a second lock that is held for no I/O and no function of a caller's.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.errors import (
    BudgetExceeded,
    ConfigError,
    FormatError,
    OverLimitError,
)
from ullage.core.history.window import Window
from ullage.core.redaction import Redact
from ullage.core.tokens.models import preload
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.filling import Asking
from ullage.core.turn.observing import observe
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State, TurnResult, wire_of
from ullage.core.turn.turn import turn
from ullage.core.values.authors import named_tools
from ullage.core.values.effects import Commit, Record, Steps, Summarise
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits, ServedWindow
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import SAFEGUARDS, SUMMARISED
from ullage.policy.stages.fingerprints import fingerprint
from ullage.policy.stages.named import PolicyName, preset
from ullage.session.answering import RecallMixin
from ullage.session.arguments import check_arguments
from ullage.session.copies import CopyMixin
from ullage.session.decisions.deciding import DecisionMixin
from ullage.session.drivers import Actions
from ullage.session.host import HostMixin
from ullage.session.prompt_cache.breaks import answered, look_back
from ullage.session.provider import reports
from ullage.session.provider.refusals import (
    SHORT_REPLIES,
    after_refusal,
    learn_from,
)
from ullage.session.provider.unfitted import (
    Unfitted,
    fit_or_pass,
    went_as_it_came,
)
from ullage.session.reading import ReadMixin
from ullage.session.spend.allowance import Claim
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Spent
from ullage.session.state import SessionState
from ullage.session.summarise import Summariser, of
from ullage.session.telling import OnEvent, tell
from ullage.session.view import RequestInfo
from ullage.stores import AsyncStore, Store, with_files
from ullage.stores.objects.opening import beside
from ullage.wires import (
    ALL_FORMATS,
    MODEL_FIELDS,
    Format,
    FormatName,
    format_of,
    recognise,
)
from ullage.wires.overflow import Overflow, is_overflow
from ullage.wires.reported import Unreadable

V = TypeVar("V")
Change: TypeAlias = tuple[SessionState, Sequence[Event]]
"""The next state, and the events that it causes."""


_OURS: dict[str, Any] = {"safeguards": SAFEGUARDS, "formats": ALL_FORMATS}
"""What every session has of ours."""


class SessionCore(
    RecallMixin, CopyMixin, DecisionMixin, HostMixin, ReadMixin, ABC
):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

    store: Any
    bytes_beside = (
        0  # how much others keep of its conversation as long as it is there
    )

    def __init__(
        self,
        model: str,
        *,
        policy: PolicyName | str | Policy = "default",
        limits: Limits | None = None,
        format: FormatName | str | Format | None = None,
        store: str | os.PathLike[str] | Store | AsyncStore | None = None,
        blobs: str | None = None,
        cache: str | None = None,
        tenant: str = "",
        recall: bool | Literal["auto", "host"] = "auto",
        joins: bool = True,
        repair: bool = False,
        state: State | None = None,
        budget: Budget | None = None,
        agent: str = "",
        summariser: Summariser | Callable[[Summarise], Any] | None = None,
        redact: Redact | None = None,
        user_tools: Iterable[str] = (),
        on_event: OnEvent | None = None,
        outline: bool = True,
    ) -> None:
        check_arguments(model, limits, recall, budget)
        chosen = _policy(policy, summarised=summariser is not None)
        self.settings = Settings(
            model=model,
            policy=chosen,
            **_OURS,
            limits=limits,
            format=None if format is None else format_of(format),
            tenant=tenant,
            recall=recall,
            joins=joins,
            repair=repair,
            redact=redact,
            user_tools=(asking := named_tools(user_tools)),
            outlines=outline,
            agent=agent,
            policy_fingerprint=fingerprint(chosen, redact, asking),
        )
        self._state = SessionState(state or State(), cache=SessionCache())
        self._begin(
            budget=Budget(tokens=0) if budget is None else budget,
            agent=agent,
            summariser=None if summariser is None else of(summariser),
            on_event=on_event,
            has_limits=limits is not None,
        )
        self._hold(beside(store, blobs, cache))
        preload(model)

    @abstractmethod
    def _hold(self, store: Any) -> None:
        """Open the store and make the lock; sync and async sessions differ."""

    def _with_files(self, store: Store) -> Store:
        """The store with the spill files that the policy wants; tells the policy their place."""
        policy = self.settings.policy
        store, directory = with_files(
            store, policy.spill_directory, self.settings.tenant
        )
        self._place_files(directory)
        return store

    def _place_files(self, directory: str | None) -> None:
        policy = replace(self.settings.policy, spill_directory=directory)
        self.settings = replace(self.settings, policy=policy)

    # ── a host's own state ───────────────────────────────────────────────────────────

    def news(self) -> tuple[Record, ...]:
        """The records decided and observed since the last call, for a host's own checkpoints.

        A host that carries the conversation's ledger adds them to its state. Records are small,
        frozen, and go through JSON (``msgspec.json``) and pickle. A session that has taken all of
        them (`take`) shows the views of the one they came from.

        Returns:
            The records, in order; each is returned once.
        """
        with self._state_lock:
            self._state, records = self._state.with_news()
        return records

    def _take(self, records: Iterable[Record]) -> Steps[None]:
        records = tuple(records)
        self._change(lambda state: (state.with_records(records), ()))
        yield from ()

    # ── accounts ─────────────────────────────────────────────────────────────────────

    def serve_with(self, served: ServedWindow) -> Event | None:
        """Take in the context window that the model's server reports.

        It holds from the next `fit` on, unless the session was made with limits of its own.

        Args:
            served: the window in tokens, and the event that tells of it.

        Returns:
            The event; None if it was told before, or nothing changes.
        """
        if self._has_limits or served is self._served:
            return None
        self._served = served
        if served.window_tokens is not None:
            limits = Limits(window_tokens=served.window_tokens)
            self.settings = replace(self.settings, limits=limits)
        self.emit(served.event)
        return served.event

    def release(self) -> None:
        """Give back what the last view reserved of the budget: its call was not made."""
        self.budget.release(self._account)

    def refused(self, error: Any) -> Overflow | None:
        """Take in that the provider refused the newest view because it was too long.

        The next `fit` cuts deeper, until a reply reports usage. A smaller window that the
        provider names holds from now on in this conversation. Where one text was over a limit
        of its own, that text is cut. What the call had claimed of a budget is given back.

        No limit falls below what the provider accepted before in this conversation, nor below a
        quarter of the window; see `ullage.session.provider.refusals`.

        Args:
            error: what the provider call raised, or a reply that says so.

        Returns:
            What was too long. None if the error says anything else, or if no shorter view is
            left to be sent: then raise it.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        return self._refused(error, None)

    def _refused(
        self, error: Any, info: RequestInfo | None
    ) -> Overflow | None:
        overflow = is_overflow(error)
        if overflow is None:
            return None
        # several views may be in flight; without a handle the newest is meant
        view, is_shorter = info or self._newest, False

        def learn(state: SessionState) -> Change:
            nonlocal is_shorter
            ledger = state.persisted.ledger
            verdict = after_refusal(state.learnt, overflow, view, ledger)
            is_shorter = verdict.helps
            return replace(state, learnt=verdict.learnt), (verdict.event,)

        self._change(learn)
        self.release()
        return overflow if is_shorter else None

    def fit_or_pass(
        self, request: Mapping[str, Any], refusal: BaseException | None = None
    ) -> Actions[Any]:
        """Steps to a view of a request, or to the request itself where no view can be made.

        A door never ends a run that would go on without it: what cannot be fitted is sent as it
        came, and an event says why. Where others have reserved what is left of a budget, it waits
        for them (`Budget`, ``wait_s``).

        Args:
            request: as for `Session.fit`.
            refusal: what the provider said of a longer view of it, if anything.

        Returns:
            Steps for `ullage.doors.host.drive` or `adrive`, which end in a `View` or an `Unfitted`.

        Raises:
            BudgetExceeded: the budget is spent, or others keep what is left of it.
            ConfigError: see `Session.fit`.
            BaseException: the refusal, where nothing shorter can be made.
        """
        return fit_or_pass(self, request, refusal)

    def leave_uncounted(self, error: Exception) -> None:
        """Report that the usage of a reply, which is paid for, could not be taken in.

        Args:
            error: what `View.observe` raised.
        """
        self.emit(reports.unkept_usage(error))

    def pass_on(
        self, request: Mapping[str, Any], error: Exception
    ) -> Unfitted:
        """A request that cannot be fitted, to be sent as it came.

        Args:
            request: as it was given to `fit`.
            error: what `fit` raised; an event tells of it.

        Raises:
            BudgetExceeded: the budget is spent.
            BudgetExceeded, ConfigError: ``error``, where it is one: the caller asked for these.
        """
        if isinstance(error, (BudgetExceeded, ConfigError)):
            raise error
        self.budget.check(self._account)
        self.emit(went_as_it_came(error))
        return Unfitted(request, self, self.wire_of(request))

    def wire_of(self, request: Mapping[str, Any]) -> Format | None:
        """The format of a request of this conversation; None if it cannot be told.

        Args:
            request: as for `Session.fit`.
        """
        wire = wire_of(self.state, self.settings)
        if wire is not None:
            return wire
        with suppress(FormatError):
            return recognise(request, self.settings.model)
        return None

    def _count(self, usage: Usage, model: str, wire: str) -> None:
        """Count the usage of a request that was sent as it came."""
        agent = self._account.agent
        call = self.budget.charge(usage, model, agent=agent, wire=wire)
        self._change(lambda state: (state.with_spent(call.spent), ()))
        self._receipts.paid_as_it_came(usage, model, wire)

    # ── a turn ───────────────────────────────────────────────────────────────────────

    def _fit(
        self,
        request: Mapping[str, Any],
        kind: Callable[..., V],
        *,
        may_add_tools: bool = True,
    ) -> Steps[V]:
        """A view within the budget; once that is spent, the view that asks the model to sum up."""
        self.budget.begin(self._account)
        yield from self.budget.synced()
        make_view = partial(
            self._make_view, request, kind, may_add_tools=may_add_tools
        )
        view, info = yield from make_view()
        # the budget is spent: the view is made once more, with the request to sum up
        if not self.budget.claim(
            self._account, partial(self._largest_claim, info)
        ):
            wording = self.budget.allowance.words
            added_tokens = info.frozen.meter.message(wording)
            view, info = yield from make_view(
                words=wording, added_tokens=added_tokens
            )
            self.budget.claim_wrap_up(
                self._account, self._largest_claim(info), added_tokens
            )
        self.budget.send(self._account, partial(reports.under_way, info))
        return view

    def _make_view(
        self,
        request: Mapping[str, Any],
        kind: Callable[..., V],
        *,
        may_add_tools: bool,
        words: str = "",
        added_tokens: int = 0,
    ) -> Steps[tuple[V, RequestInfo]]:
        """The view of one turn; with ``words``, the request to sum up is added to it."""
        result = yield from self._turn(
            request, added_tokens, may_add_tools=may_add_tools
        )
        body = (
            result.wire.wrap_up(result.request, words)
            if words
            else result.request
        )
        info, ledger = RequestInfo(result), result.state.ledger
        view = kind(body, info, self)
        yield from look_back(info, ledger, self._state.recent, time.time())
        return view, self._finish(result, info)

    def _largest_claim(self, info: RequestInfo) -> Claim:
        """The most tokens and money that the call of a view can use."""
        self._count_view(info)
        most_tokens = self.largest_call(info)
        return self.budget.most(*most_tokens, info.model, info.wire.wire)

    def _count_view(self, info: RequestInfo) -> Window | None:
        """Count a view on the working window, if that still shows it; under the session's lock.

        So a text is counted once in the conversation, and not once a view. Returns that window.
        """
        state = self._state
        working = (
            info.working
            if state.newest is info and state.cache is not None
            else None
        )
        if working is not None and not info.frozen.is_counted:
            info.frozen.take_count(working.tokens)
        return working

    def _take_cache(self) -> SessionState:
        """The state; its cache belongs to this call from now on."""
        with self._state_lock:
            state = self._state
            self._state = replace(state, cache=None)
        return state

    def _turn(
        self,
        request: Mapping[str, Any],
        added_tokens: int = 0,
        *,
        now: bool = False,
        may_add_tools: bool = True,
    ) -> Steps[TurnResult]:
        """One turn; the session has its result once `_finish` took it."""
        self._keep_count()
        state = self._take_cache()
        cache = state.cache or SessionCache()
        # a request that is no mapping is refused by the turn, with a FormatError
        fields = MODEL_FIELDS if isinstance(request, Mapping) else ()
        model = next(
            (request[name] for name in fields if request.get(name)), None
        )
        model_name = (
            model if isinstance(model, str) and model else self.settings.model
        )
        settings = replace(
            self.settings,
            lessons=state.learnt,
            asking=self._summary_request(model_name),
            policy=self._policy_now(),
            outlines=self._outlines,
            may_add_tools=may_add_tools,
        )
        try:
            persisted = state.persisted
            return (
                yield from turn(
                    request, persisted, cache, settings, added_tokens, now=now
                )
            )
        except OverLimitError as over:
            limit_tokens = over.limit_tokens
            # nothing fits what a refusal left: it must not stand in the way of the next request
            self._change(
                lambda state: (
                    state.without_room(limit_tokens, model_name),
                    (),
                )
            )
            raise

    def _keep_count(self) -> None:
        """Have the working window count what a reader of the newest view has counted.

        So a reader of every view counts what is new in each, and nothing twice.
        """
        state = self._state
        newest = state.newest
        if newest is None or newest.working is None or state.cache is None:
            return
        if newest.frozen.is_counted:
            newest.working.count()

    def _finish(
        self, result: TurnResult, view: RequestInfo | None = None
    ) -> RequestInfo:
        """Make the result of a turn the session's newest state."""
        info, spent = view or RequestInfo(result), Spent()
        if self._summaries is not None:
            is_refused = any(
                event.kind == "summary_refused" for event in result.events
            )
            spent = self._summaries.take(is_refused=is_refused)

        info.is_undercounted = result.lesson.short_replies >= SHORT_REPLIES

        def finish(state: SessionState) -> Change:
            next_state = state.with_persisted(result.state).with_spent(spent)
            return replace(
                next_state, cache=result.cache, newest=info
            ), result.events

        self._change(finish)
        if spent.usage.total_tokens:
            self._receipts.paid_beside(spent, info.model)
        return info

    def _summary_request(self, model: str) -> Asking | None:
        """How summaries are asked for in this model's conversation; None without a summariser."""
        if self._summaries is None:
            return None
        return Asking(
            partial(self._summaries.summariser.window_for, caller=model), model
        )

    def _policy_now(self) -> Policy:
        return self.settings.policy

    def _compact(self, request: Mapping[str, Any]) -> Steps[bool]:
        if self.settings.policy.on_request is None:
            raise ConfigError(
                "policy", "it has no compaction", "Use a policy that compacts."
            )
        if self._summaries is not None:
            self._summaries.try_again()
        info = self._finish((yield from self._turn(request, now=True)))
        return any(event.kind == "compacted" for event in info.events)

    def _flush(self, request: Mapping[str, Any]) -> Steps[None]:
        self._finish((yield from self._turn(request)))

    # ── a reply ──────────────────────────────────────────────────────────────────────

    def _observe(self, info: RequestInfo, reply: Any) -> Steps[None]:
        payer, window = self._receipts, self._count_view(info)
        payer.look_at(info, window)
        report = reports.report_of(reply, info, self.settings.limits)
        thread = reports.thread_record(
            reply, report, info, self.settings.tenant
        )
        if thread is not None:
            yield Commit((), (thread,))
        if isinstance(report, Unreadable):
            yield from self._leave_unreported(info, report, window)
            return
        earlier = (
            None
            if self.budget.is_new(report)
            else self._state.observed_before(report)
        )
        if (earlier and earlier.is_full(report)) or self.budget.knows(
            report, self._account
        ):
            return  # the very reply that was observed before, here or by another (F104)
        prior = self._take_cache()  # what is observed is written to it
        transcript = (info.working or info).transcript
        sent = answered(
            info, window, report.usage, prior.persisted.ledger, time.time()
        )
        persisted = yield from observe(
            report.usage,
            report.cost_usd,
            prior.persisted,
            transcript,
            info.size,
            model=info.model,
            estimated_tokens=info.tokens,
            raw_tokens=payer.raw_tokens(info, report.usage),
            outlining=self._outlining(info),
            beside=sent.records,
        )
        spent = reports.spent_by(report, instead_of=earlier)
        self.budget.settle(self._account, report, info.model, info.estimate)
        yield from self.budget.synced()
        if prior.cache is not None:
            prior.cache.observed(transcript, info.key)

        def count(state: SessionState) -> Change:
            next_state, warnings = learn_from(
                state, info, report.usage.sent_tokens or None
            )
            next_state = next_state.with_persisted(persisted).with_spent(spent)
            info.reply_usage = report.usage
            info.broken, info.reply_events = sent.broken, warnings
            if earlier is None:  # a fuller report tells nothing anew
                info.reply_events += sent.events
            reported = reports.reported_in(reply, report.usage)
            next_state = next_state.with_observed(report, earlier)
            next_state = replace(next_state, cache=prior.cache)
            return next_state.with_sent(sent), (*reported, *info.reply_events)

        caches = self._state.caches
        self._change(count)
        counted = None if earlier is None else earlier.usage
        yield from payer.paid(info, report.usage, counted, caches=caches)

    def _leave_unreported(
        self, info: RequestInfo, report: Unreadable, window: Window | None
    ) -> Steps[None]:
        """Count our estimate for a reply whose usage nobody reported."""
        output_tokens = report.output_tokens
        self.budget.leave_unreported(
            self._account, reports.under_way(info, output_tokens)
        )

        def leave_uncounted(state: SessionState) -> Change:
            next_state, warnings = learn_from(
                state, info, report.input_tokens or None
            )
            info.reply_events = (*warnings, *sent.events)
            events = (reports.unreported(report, info), *info.reply_events)
            return next_state.with_sent(sent), events

        estimate = Usage(
            fresh_tokens=info.estimate, output_tokens=output_tokens
        )
        ledger, now_s = self._state.persisted.ledger, time.time()
        sent = answered(
            info, window, estimate, ledger, now_s, is_reported=False
        )
        self._change(leave_uncounted)
        yield from self._receipts.paid(info, estimate, is_reported=False)

    def _latest_view(
        self, request: Mapping[str, Any] | None
    ) -> Steps[RequestInfo]:
        """The newest view; decided now from ``request`` if there is none yet."""
        if request is not None and self._state.newest is None:
            yield from self._flush(request)
        return self._newest

    def emit(self, event: Event) -> None:
        """Add an event to `events`, the log and ``on_event``.

        Args:
            event: what happened.
        """
        self._change(lambda state: (state, (event,)))

    def _change(self, change: Callable[[SessionState], Change]) -> None:
        """Replace the state by what a function makes of it, in one assignment, and emit its events.

        The function is given the state as it is then, so that nothing of what another thread
        changed meanwhile is lost. It does no I/O.
        """
        with self._state_lock:
            earlier_events = self._state.events
            state, events = change(self._state)
            self._state = state.with_events(*events)
        tell(events, self._on_event, earlier_events)


def _policy(policy: str | Policy, *, summarised: bool) -> Policy:
    """The policy of a name; with a summariser the default is the one that compacts."""
    if not isinstance(policy, str):
        return policy
    return SUMMARISED if policy == "default" and summarised else preset(policy)
