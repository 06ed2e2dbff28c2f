"""What the session and the session for an event loop share: everything that does no I/O.

The laws:

- Everything a session knows is one frozen value, `SessionState`, replaced by a single assignment
  when a call is over. So wherever a call is interrupted, the session is as before it or as after.
- Calls run one at a time, under the session's lock. What they write to in place is the memo, and
  with it the working window: it is out of the state while it is worked on, and dropped where that
  is interrupted.
- Whatever reads a session takes no lock: it reads the state, in which all is frozen.
- Beside calls others write to the state too (`emit`, `refused`, a host). Each of them changes what
  the state is then, under a second lock that is held for no I/O and no function of a caller's.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.errors import BudgetExceeded, ConfigError, FormatError, OverLimitError
from ullage.core.history.window import Window
from ullage.core.redaction import Redact
from ullage.core.tokens.catalog import lookup
from ullage.core.tokens.models import preload
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.filling import Asking
from ullage.core.turn.lessons import limits_for
from ullage.core.turn.observing import observe
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State, TurnResult, wire_of
from ullage.core.turn.turn import turn
from ullage.core.values.authors import named_tools
from ullage.core.values.effects import Commit, Record, Steps, Summarise
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits, ServedWindow
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import HELD_OUT, SAFEGUARDS, SUMMARISED
from ullage.policy.stages.named import PolicyName, preset
from ullage.policy.stages.prints import fingerprint
from ullage.session import reports
from ullage.session.answering import Answering
from ullage.session.arguments import check_arguments
from ullage.session.copies import Copied
from ullage.session.deciding import Deciding
from ullage.session.drivers import Actions
from ullage.session.host import Hosted
from ullage.session.reading import Readable
from ullage.session.receipts import Payer
from ullage.session.refusals import (
    SHORT_REPLIES,
    after_refusal,
    after_reply,
    short_event,
)
from ullage.session.spend.allowance import Claim
from ullage.session.spend.budget import Budget
from ullage.session.spend.calls import Spent
from ullage.session.state import SessionState
from ullage.session.summarise import Summariser, of
from ullage.session.telling import OnEvent, tell
from ullage.session.unfitted import Unfitted, fit_or_pass, went_as_it_came
from ullage.session.view import Sent
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
"""The next state, and the events that are told of it."""


_OURS: dict[str, Any] = {"safeguards": SAFEGUARDS, "formats": ALL_FORMATS}
"""What every session has of ours."""


class SessionCore(Answering, Copied, Deciding, Hosted, Readable, ABC):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

    store: Any
    bytes_beside = 0  # how much others keep of its conversation as long as it is there

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
        """Open the store and make the lock; each session its own kind."""

    def _with_files(self, store: Store) -> Store:
        """The store as the policy wants it; the policy then knows where its files are."""
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
        """What was decided and observed since the last call: what a host's state is to add.

        For a host that carries the conversation's ledger in its own checkpoints. Records are
        small, frozen, and go through JSON (``msgspec.json``) and pickle. A session that has
        taken all of them (`take`) shows the views of the one they came from.
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
        """Take in the window that the model's server tells.

        It holds from the next `fit` on, unless the session was made with limits of its own.

        Returns:
            The event that was told of it; None if that was told before, or nothing changes.
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
        """The call that the last view was for was not made: give back what it had reserved."""
        self.budget.release(self._account)

    def refused(self, error: Any) -> Overflow | None:
        """Take in that the provider refused the newest view because it was too long.

        The next `fit` cuts deeper, until a reply reports usage. A smaller window that the
        provider names holds from now on in this conversation. Where one text was over a limit
        of its own, that text is cut. What the call had claimed of a budget is given back.

        No limit falls below what the provider accepted before in this conversation, nor below a
        quarter of the window; see `ullage.session.refusals`.

        Args:
            error: what the provider call raised, or a reply that says so.

        Returns:
            What was too long. None if the error says anything else, or if no shorter view is
            left to be sent: then raise it.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        return self._refused(error, None)

    def _refused(self, error: Any, sent: Sent | None) -> Overflow | None:
        overflow = is_overflow(error)
        if overflow is None:
            return None
        refused, is_shorter = sent or self._newest, False

        def learn(state: SessionState) -> Change:
            nonlocal is_shorter
            ledger = state.persisted.ledger
            verdict = after_refusal(state.learnt, overflow, refused, ledger)
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
        """Tell that a reply's usage could not be taken in. The reply is there, and paid for.

        Args:
            error: what `View.observe` raised.
        """
        self.emit(reports.unkept_usage(error))

    def pass_on(self, request: Mapping[str, Any], error: Exception) -> Unfitted:
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
        """The format of a request of this conversation; None if it cannot be told."""
        wire = wire_of(self.state, self.settings)
        if wire is not None:
            return wire
        with suppress(FormatError):
            return recognise(request, self.settings.model)
        return None

    def _count(self, usage: Usage, model: str) -> None:
        """Count what a request came to that was sent as it came."""
        call = self.budget.charge(usage, model, agent=self._account.agent)
        self._change(lambda state: (state.with_spent(call.spent), ()))
        self._payer.paid_as_it_came(usage, model)

    # ── a turn ───────────────────────────────────────────────────────────────────────

    def _fit(
        self,
        request: Mapping[str, Any],
        kind: Callable[..., V],
        *,
        may_add_tools: bool = True,
    ) -> Steps[V]:
        """A view the budget allows; once that is spent, the view with the request to sum up."""
        self.budget.begin(self._account)
        yield from self.budget.synced()
        shown = partial(self._shown, request, kind, may_add_tools=may_add_tools)
        view, sent = yield from shown()
        if not self.budget.claim(self._account, partial(self._most, sent)):
            words = self.budget.allowance.words
            added_tokens = sent.frozen.meter.message(words)
            view, sent = yield from shown(words=words, added_tokens=added_tokens)
            self.budget.claim_wrap_up(self._account, self._most(sent), added_tokens)
        self.budget.send(self._account, partial(reports.under_way, sent))
        return view

    def _shown(
        self,
        request: Mapping[str, Any],
        kind: Callable[..., V],
        *,
        may_add_tools: bool,
        words: str = "",
        added_tokens: int = 0,
    ) -> Steps[tuple[V, Sent]]:
        """The view that a turn comes to, with the request to sum up if there are words for it."""
        turned = yield from self._turn(
            request, added_tokens, may_add_tools=may_add_tools
        )
        made = turned.wire.wrap_up(turned.request, words) if words else turned.request
        sent = Sent(turned)
        view = kind(made, sent, self)
        return view, self._finish(turned, sent)

    def _most(self, sent: Sent) -> Claim:
        """The most that the call of a view can come to."""
        self._count_view(sent)
        info = lookup(sent.model)
        lesson = self._state.learnt.of(sent.transcript, sent.model)
        limits = limits_for(sent.model, sent.limits, lesson)
        reserve = limits.window_tokens - sent.limit_tokens
        output = min(reserve, info.max_output_tokens or reserve)
        return self.budget.most(
            sent.frozen.calibration.upper(sent.tokens), output, info.id
        )

    def _count_view(self, sent: Sent) -> Window | None:
        """Count a view on the working window, if that has not moved on; under the session's lock.

        So a text is counted once in the conversation, and not once a view. Returns that window.
        """
        state = self._state
        working = (
            sent.working if state.newest is sent and state.cache is not None else None
        )
        if working is not None and not sent.frozen.is_counted:
            sent.frozen.take_count(working.tokens)
        return working

    def _take_memo(self) -> SessionState:
        """The state, whose memo is this call's from now on."""
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
        """One turn. What it comes to is the session's once it is taken (`_finish`)."""
        self._keep_count()
        state = self._take_memo()
        cache = state.cache or SessionCache()
        fields = MODEL_FIELDS if isinstance(request, Mapping) else ()
        model = next((request[name] for name in fields if request.get(name)), None)
        named = model if isinstance(model, str) and model else self.settings.model
        settings = replace(
            self.settings,
            lessons=state.learnt,
            asking=self._asking(named),
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
            self._change(lambda state: (state.without_room(limit_tokens, named), ()))
            raise

    def _keep_count(self) -> None:
        """Have the working window count what a reader of the newest view has counted.

        Whoever looks at each view finds it counted but for what is new then.
        """
        state = self._state
        newest = state.newest
        if newest is None or newest.working is None or state.cache is None:
            return
        if newest.frozen.is_counted:
            newest.working.count()

    def _finish(self, turned: TurnResult, view: Sent | None = None) -> Sent:
        """Know what a turn came to from now on."""
        sent, spent = view or Sent(turned), Spent()
        if self._summaries is not None:
            is_refused = any(event.kind == "summary_refused" for event in turned.events)
            spent = self._summaries.take(is_refused=is_refused)

        sent.is_undercounted = turned.lesson.short_replies >= SHORT_REPLIES

        def finish(state: SessionState) -> Change:
            new = state.with_persisted(turned.state).with_spent(spent)
            return replace(new, cache=turned.cache, newest=sent), turned.events

        self._change(finish)
        if spent.usage.total_tokens:
            self._payer.paid_beside(spent, sent.model)
        return sent

    def _asking(self, model: str) -> Asking | None:
        """Who is asked for summaries of this model's conversation."""
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
        sent = self._finish((yield from self._turn(request, now=True)))
        return any(event.kind == "compacted" for event in sent.events)

    def _flush(self, request: Mapping[str, Any]) -> Steps[None]:
        self._finish((yield from self._turn(request)))

    # ── a reply ──────────────────────────────────────────────────────────────────────

    def _observe(self, sent: Sent, reply: Any) -> Steps[None]:
        payer = self._payer
        payer.look_at(sent, self._count_view(sent))
        report = reports.report_of(reply, sent, self.settings.limits)
        thread = reports.thread_record(reply, report, sent, self.settings.tenant)
        if thread is not None:
            yield Commit((), (thread,))
        if isinstance(report, Unreadable):
            yield from self._leave_unreported(sent, report)
            return
        earlier = (
            None if self.budget.is_new(report) else self._state.observed_before(report)
        )
        if (earlier and earlier.is_full(report)) or self.budget.knows(
            report, self._account
        ):
            return  # the very reply that was observed before, here or by another (F104)
        before = self._take_memo()  # what is observed is written to it
        transcript = (
            sent.transcript if sent.working is None else sent.working.transcript
        )
        persisted = yield from observe(
            report.usage,
            report.cost_usd,
            before.persisted,
            transcript,
            sent.size,
            model=sent.model,
            estimated_tokens=sent.tokens,
            outlining=self._outlining(sent),
        )
        spent = reports.spent_by(report, instead_of=earlier)
        self.budget.settle(self._account, report, sent.model, sent.estimate)
        yield from self.budget.synced()
        if before.cache is not None:
            before.cache.observed(transcript, sent.key)

        def count(state: SessionState) -> Change:
            new, warnings = _learnt_from(state, sent, report.usage.sent_tokens or None)
            new = new.with_persisted(persisted).with_spent(spent)
            sent.reported = report.usage
            events = (*reports.reported_in(reply, report.usage), *warnings)
            return replace(
                new.with_observed(report, earlier), cache=before.cache
            ), events

        caches = _caches(self._state.persisted.usage)
        self._change(count)
        counted = None if earlier is None else earlier.usage
        yield from payer.paid(sent, report.usage, counted, caches=caches)

    def _leave_unreported(self, sent: Sent, report: Unreadable) -> Steps[None]:
        """Count our estimate for a reply of which nobody knows what it came to."""
        output_tokens = report.output_tokens
        self.budget.leave_unreported(
            self._account, reports.under_way(sent, output_tokens)
        )

        def leave_uncounted(state: SessionState) -> Change:
            new, warnings = _learnt_from(state, sent, report.input_tokens or None)
            return new, (reports.unreported(report, sent), *warnings)

        self._change(leave_uncounted)
        estimate = Usage(fresh_tokens=sent.estimate, output_tokens=output_tokens)
        yield from self._payer.paid(sent, estimate, is_reported=False)

    @property
    def _payer(self) -> Payer:
        """Whose receipts this session's are."""
        adds_tools = self.settings.recall != "host"
        is_held_out = self.settings.policy.name == HELD_OUT.name
        tenant, agent = self.settings.tenant, self._account.agent
        return Payer(self.store, tenant, agent, adds_tools, is_held_out)

    def _opened(self, request: Mapping[str, Any] | None) -> Steps[Sent]:
        """The newest view, decided now if there is none and its request is there."""
        if request is not None and self._state.newest is None:
            yield from self._flush(request)
        return self._newest

    def emit(self, event: Event) -> None:
        """List an event with the others."""
        self._change(lambda state: (state, (event,)))

    def _change(self, change: Callable[[SessionState], Change]) -> None:
        """Have a function make the next state of this one, all at once; then tell what happened.

        The function is given the state as it is then, so that nothing of what another thread
        changed meanwhile is lost. It does no I/O.
        """
        with self._state_lock:
            before = self._state.events
            state, events = change(self._state)
            self._state = state.with_events(*events)
        tell(events, self._on_event, before)


def _caches(usage: Usage) -> bool:
    """Whether a prompt cache was seen at work."""
    return bool(usage.cache_read_tokens or usage.cache_write_tokens)


def _learnt_from(
    state: SessionState, sent: Sent, reported_tokens: int | None
) -> tuple[SessionState, tuple[Event, ...]]:
    """What is known of the provider's limits once a view was answered, and what to warn of."""
    lesson = state.learnt.of(sent.transcript, sent.model)
    new = after_reply(lesson, reported_tokens, sent)
    sent.warning = short_event(lesson, new, sent)
    warnings = () if sent.warning is None else (sent.warning,)
    learnt = state.learnt.with_lesson(new, lesson, sent.transcript, sent.size)
    return replace(state, learnt=learnt), warnings


def _policy(policy: str | Policy, *, summarised: bool) -> Policy:
    """The policy of this name; the default has a compaction if somebody writes summaries."""
    if not isinstance(policy, str):
        return policy
    return SUMMARISED if policy == "default" and summarised else preset(policy)
