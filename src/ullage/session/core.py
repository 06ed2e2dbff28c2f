"""What the session and the session for an event loop share: everything that does no I/O.

Everything a session knows is one frozen value, `Kept`, replaced by a single assignment when a
call is over; the memo is out of it while it is worked on, and dropped where that is interrupted.
So wherever a call is interrupted, the session is as before the call or as after it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar
from weakref import ref

from msgspec.structs import replace

from ullage.errors import BudgetExceeded, ConfigError, FormatError, OverLimitError, RefNotFound
from ullage.history.snapshots import snapshot_at
from ullage.history.window import Window
from ullage.picture import Drawn, OneWindow
from ullage.presets import PolicyName, preset
from ullage.recall.dispatch import Answer, answer
from ullage.recall.found import ToolOutputRef, output_ref
from ullage.recall.history import find_in_history
from ullage.recall.tools import call_of
from ullage.redaction import Redact
from ullage.session import reports
from ullage.session.copies import Copied
from ullage.session.kept import Kept
from ullage.session.refusals import SHORT_REPLIES, after_refusal, after_reply, short_event
from ullage.session.telling import OnEvent, tell
from ullage.session.unfitted import Unfitted, went_as_it_came
from ullage.session.view import Sent
from ullage.spend.allowance import Claim
from ullage.spend.budget import Budget
from ullage.spend.calls import Call
from ullage.stages.default import SUMMARISED
from ullage.stages.policy import Policy
from ullage.stores import AsyncStore, Store, with_files
from ullage.stores.objects.opening import beside
from ullage.summarise import Summariser, of
from ullage.tokens.catalog import lookup
from ullage.tokens.models import preload
from ullage.turn.filling import Asking
from ullage.turn.learnt import Learnt, limits_for
from ullage.turn.memo import Memo
from ullage.turn.terms import Settings, what_decides
from ullage.turn.turn import State, Turned, observe, turn, wire_of
from ullage.values.authors import named_tools
from ullage.values.effects import Commit, Output, Record, Steps, Summarise
from ullage.values.events import Event
from ullage.values.limits import Limits, ServedWindow
from ullage.values.toolset import ToolSpec
from ullage.values.usage import Usage
from ullage.wires import Format, FormatName, format_of, recognise
from ullage.wires.overflow import Overflow, is_overflow
from ullage.wires.reported import Unreadable

V = TypeVar("V")


class SessionCore(Copied, Drawn, ABC):
    """What both sessions share: settings, state, and everything that does no I/O.

    The arguments are those of `Session`.
    """

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
    ) -> None:
        chosen = _policy(policy, summarised=summariser is not None)
        asking = named_tools(user_tools)
        self.settings = Settings(
            model=model,
            policy=chosen,
            limits=limits,
            format=None if format is None else format_of(format),
            tenant=tenant,
            recall=recall,
            joins=joins,
            repair=repair,
            redact=redact,
            user_tools=asking,
            decides=what_decides(chosen, redact, asking),
        )
        self._kept = Kept(state or State(), memo=Memo())
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
        store, directory = with_files(store, policy.spill_directory, self.settings.tenant)
        self._place_files(directory)
        return store

    def _place_files(self, directory: str | None) -> None:
        policy = replace(self.settings.policy, spill_directory=directory)
        self.settings = replace(self.settings, policy=policy)

    # ── reading ──────────────────────────────────────────────────────────────────────

    def __repr__(self) -> str:
        newest = self._kept.newest
        said = "nothing was fitted yet" if newest is None else newest.told
        return f"<{type(self).__name__} {self.settings.policy.name}: {said}>"

    def _picture(self) -> OneWindow | None:
        return None if self._kept.newest is None else self._kept.newest.picture()

    @property
    def state(self) -> State:
        """What lasts between two turns: one frozen value, to go on from elsewhere."""
        return self._kept.state

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, in order; of a long session the newest 4,096."""
        return self._kept.events

    @property
    def usage(self) -> Usage:
        """The sum of everything reported so far."""
        return self.state.usage

    @property
    def cost_usd(self) -> float | None:
        """What the reported usage cost at list price, or None if a price is not known."""
        return self.state.cost_usd

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was observed: its tokens, its cost, and our estimate of its prompt."""
        return self.budget.calls_of(self._account)

    @property
    def window(self) -> Window:
        """The newest window: how much is shown, of what limit, and every edit.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        return self._newest.window

    def owns(self, call: Any) -> bool:
        """Whether a tool call of the model is for `recall` and not for the caller's tools.

        A call is ours if its name and our definition are in the newest request.

        Args:
            call: a tool call as it is in the reply, a dict or the SDK's object.
        """
        newest = self._kept.newest
        return newest is not None and newest.owns(call)

    # ── a host's own state ───────────────────────────────────────────────────────────

    def news(self) -> tuple[Record, ...]:
        """What was decided and observed since the last call: what a host's state is to add.

        For a host that carries the conversation's ledger in its own checkpoints. Records are
        small, frozen, and go through JSON (``msgspec.json``) and pickle. A session that has
        taken all of them (`take`) shows the views of the one they came from.
        """
        self._kept, found = self._kept.with_news()
        return found

    def _take(self, records: Iterable[Record]) -> Steps[None]:
        self._kept = self._kept.with_records(records)
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
        found = is_overflow(error)
        if found is None:
            return None
        sent, kept = sent or self._newest, self._kept
        verdict = after_refusal(kept.learnt, found, sent, self.state.ledger, self.settings.limits)
        self._know(replace(kept, learnt=verdict.learnt), verdict.event)
        self.release()
        return found if verdict.helps else None

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
        return Unfitted(request, self, self._wire_of(request))

    def _wire_of(self, request: Mapping[str, Any]) -> Format | None:
        """The format of a request, None if it cannot be told."""
        known = wire_of(self.state, self.settings)
        if known is not None:
            return known
        with suppress(FormatError):
            return recognise(request, self.settings.model)
        return None

    def _count(self, usage: Usage, model: str) -> None:
        """Count what a request came to that was sent as it came."""
        call = self.budget.charge(usage, model, agent=self._account.agent)
        self._know(replace(self._kept, state=reports.with_more(self.state, call.spent)))

    # ── a turn ───────────────────────────────────────────────────────────────────────

    def _fit(self, request: Mapping[str, Any], kind: Callable[..., V]) -> Steps[V]:
        """A view the budget allows; once that is spent, the view with the request to sum up."""
        self.budget.begin(self._account)
        yield from self.budget.synced()
        view, sent = yield from self._shown(request, kind)
        if not self.budget.claim(self._account, partial(self._most, sent.window)):
            words = self.budget.allowance.words
            added_tokens = sent.window.meter.message(words)
            view, sent = yield from self._shown(request, kind, words, added_tokens)
            self.budget.claim_wrap_up(self._account, self._most(sent.window), added_tokens)
        self.budget.send(self._account, partial(reports.under_way, sent))
        return view

    def _shown(
        self, request: Mapping[str, Any], kind: Callable[..., V], words: str = "", tokens: int = 0
    ) -> Steps[tuple[V, Sent]]:
        """The view that a turn comes to, with the request to sum up if there are words for it."""
        turned = yield from self._turn(request, tokens)
        made = turned.wire.wrap_up(turned.request, words) if words else turned.request
        view = kind(made, sent := Sent(turned), self)
        return view, self._finish(turned, sent, ref(view))

    def _most(self, window: Window) -> Claim:
        """The most that the call of a view can come to."""
        info = lookup(model := window.meter.model)
        lesson = self._kept.learnt.of(window.transcript, model)
        limits = limits_for(model, self.settings.limits, lesson)
        reserve = limits.window_tokens - window.limit_tokens
        output = min(reserve, info.max_output_tokens or reserve)
        return self.budget.most(window.calibration.upper(window.tokens), output, info.id)

    def _turn(
        self, request: Mapping[str, Any], added_tokens: int = 0, *, now: bool = False
    ) -> Steps[Turned]:
        """One turn. What it comes to is the session's once it is taken (`_finish`)."""
        kept = self._kept
        memo = kept.memo or Memo()
        self._kept = replace(kept, memo=None)
        if kept.newest is not None and kept.view() is not None:
            kept.newest.hold()
        model = request.get("model") if isinstance(request, Mapping) else None
        named = model if isinstance(model, str) and model else self.settings.model
        settings = replace(
            self.settings,
            learnt=kept.learnt,
            asking=self._asking(named),
            policy=self._policy_now(),
        )
        try:
            return (yield from turn(request, kept.state, memo, settings, added_tokens, now=now))
        except OverLimitError as over:
            # nothing fits what a refusal left: it must not stand in the way of the next request
            learnt = self._kept.learnt.without_room(over.limit_tokens, named)
            self._kept = replace(self._kept, learnt=learnt)
            raise

    def _finish(
        self, turned: Turned, sent: Sent | None = None, view: Callable[[], object] | None = None
    ) -> Sent:
        """Know what a turn came to from now on, and the view that was made of it, if one was."""
        state, sent, kept = turned.state, sent or Sent(turned), self._kept
        if self._summaries is not None:
            is_refused = any(event.kind == "summary_refused" for event in turned.events)
            state = reports.with_more(state, self._summaries.take(is_refused=is_refused))
        sent.is_undercounted = turned.lesson.short_replies >= SHORT_REPLIES
        kept = replace(kept, state=state, memo=turned.memo, newest=sent, view=view or kept.view)
        self._know(kept, *turned.events)
        return sent

    def _asking(self, model: str) -> Asking | None:
        """Who is asked for summaries of this model's conversation."""
        if self._summaries is None:
            return None
        return Asking(partial(self._summaries.summariser.window_for, caller=model), model)

    def _policy_now(self) -> Policy:
        return self.settings.policy

    def _compact(self, request: Mapping[str, Any]) -> Steps[bool]:
        if self.settings.policy.on_request is None:
            raise ConfigError("policy", "it has no compaction", "Use a policy that compacts.")
        if self._summaries is not None:
            self._summaries.try_again()
        sent = self._finish((yield from self._turn(request, now=True)))
        return any(event.kind == "compacted" for event in sent.events)

    def _flush(self, request: Mapping[str, Any]) -> Steps[None]:
        self._finish((yield from self._turn(request)))

    # ── a reply ──────────────────────────────────────────────────────────────────────

    def _observe(self, sent: Sent, reply: Any) -> Steps[None]:
        kept = self._kept
        report = reports.report_of(reply, sent, self.settings.limits)
        thread = reports.thread_record(reply, report, sent, self.settings.tenant)
        if thread is not None:
            yield Commit((), (thread,))
        if isinstance(report, Unreadable):
            self.budget.leave_unreported(
                self._account, reports.under_way(sent, report.output_tokens)
            )
            learnt, told = self._learnt_from(sent, report.input_tokens or None)
            kept = replace(self._kept, learnt=learnt)
            self._know(kept, reports.unreported(report, sent), *told)
            return
        known = None if self.budget.is_new(report) else kept.observed_before(report)
        if (known and known.is_full(report)) or self.budget.knows(report, self._account):
            return  # the very reply that was observed before, here or by another (F104)
        self._kept = replace(kept, memo=None)  # counting works on it
        state = yield from observe(
            report,
            kept.state,
            sent.window.transcript,
            sent.size,
            model=sent.model,
            estimated_tokens=sent.tokens,
        )
        if known is not None:
            state = reports.without(known, state)
        self.budget.settle(self._account, report, sent.model, sent.estimate)
        yield from self.budget.synced()
        if kept.memo is not None:
            kept.memo.observed(sent.window.transcript, sent.key)
        learnt, told = self._learnt_from(sent, report.usage.sent_tokens or None)
        kept = replace(self._kept, state=state, memo=kept.memo, learnt=learnt)
        sent.reported = report.usage
        events = *reports.reported_in(reply, report.usage), *told
        self._know(kept.with_observed(report, known), *events)

    def _learnt_from(
        self, sent: Sent, reported_tokens: int | None
    ) -> tuple[Learnt, tuple[Event, ...]]:
        """What is known of the provider's limits once a view was answered, and what to tell."""
        learnt, transcript = self._kept.learnt, sent.window.transcript
        before = learnt.of(transcript, sent.model)
        lesson = after_reply(before, reported_tokens, sent)
        sent.warning = short_event(before, lesson, sent)
        told = () if sent.warning is None else (sent.warning,)
        return learnt.with_lesson(lesson, before, transcript, sent.size), told

    def _opened(self, request: Mapping[str, Any] | None) -> Steps[Sent]:
        """The newest view, decided now if there is none and its request is there."""
        if request is not None and self._kept.newest is None:
            yield from self._flush(request)
        return self._newest

    def _recall(
        self, call: Any, sent: Sent | None = None, request: Mapping[str, Any] | None = None
    ) -> Steps[dict[str, Any]]:
        sent = sent or (yield from self._opened(request))
        snapshot_at(call, "call")
        parsed = sent.wire.call(call)
        given: Answer = yield from answer(parsed, sent.words, partial(self._from_history, sent))
        why = "the call could not be answered" if given.is_error else "the model asked"
        tokens = sent.window.meter.text(given.text)
        event = Event(
            kind="recalled", where=parsed.name, why=why, tokens_after=tokens, ref=given.ref
        )
        self.emit(event)
        return sent.wire.result(parsed, given.text, is_error=given.is_error, block=given.block)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The recall tools as this session's notices name them; see `ullage.recall_tools`."""
        opened, tools = self.state.opened, self.settings.policy.toolset.tools
        if opened is None or not opened.prefix:
            return tools
        return tuple(replace(spec, name=opened.prefix + spec.name) for spec in tools)

    def _open(
        self, name: str, arguments: Any, call_id: str, request: Mapping[str, Any] | None
    ) -> Steps[Answer]:
        sent = yield from self._opened(request)
        call = call_of(name, arguments, call_id)
        return (yield from answer(call, sent.words, partial(self._from_history, sent)))

    def _output_ref(self, wanted: str) -> Steps[ToolOutputRef]:
        found = yield from output_ref(wanted, partial(self._from_history, self._newest))
        if found is None:
            raise RefNotFound("the history and the store", wanted)
        return found

    def _from_history(self, sent: Sent, wanted: str, thorough: bool) -> Output | None:
        found = find_in_history(sent.window, wanted, sent.size, thorough=thorough)
        if found is None and thorough and self._kept.memo is not None:
            return self._kept.memo.set_aside(wanted)
        return found

    def emit(self, event: Event) -> None:
        """List an event with the others."""
        self._know(self._kept, event)

    def _know(self, kept: Kept, *events: Event) -> None:
        """Know what a call came to, all at once; then tell what happened in it."""
        before = kept.events
        self._kept = kept.with_events(*events)
        tell(events, self._on_event, before)

    @property
    def _newest(self) -> Sent:
        if self._kept.newest is None:
            raise ConfigError("session", "nothing was fitted yet", "Call fit(request) first.")
        return self._kept.newest


def _policy(policy: str | Policy, *, summarised: bool) -> Policy:
    """The policy of this name; the default has a compaction if somebody writes summaries."""
    if not isinstance(policy, str):
        return policy
    return SUMMARISED if policy == "default" and summarised else preset(policy)
