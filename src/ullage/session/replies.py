"""A reply that is taken in: what it used, what it teaches, and what the ledger keeps of it."""

from __future__ import annotations

import time
from typing import Any

from msgspec.structs import replace

from ullage.core.history.window import Window
from ullage.core.turn.observing import observe
from ullage.core.values.effects import Commit, Record, Steps
from ullage.core.values.receipts import ReceiptTotals
from ullage.core.values.usage import Usage
from ullage.session.changes import Transition
from ullage.session.decisions.successor import rows_of
from ullage.session.prompt_cache.breaks import answered
from ullage.session.provider import reports
from ullage.session.provider.refusals import learn_from
from ullage.session.state import SessionState
from ullage.session.turns import TurnMixin
from ullage.session.view import RequestInfo
from ullage.wires.reported import Unreadable


class ReplyMixin(TurnMixin):
    """The part of a session that takes in what the model answered."""

    def _observe(self, info: RequestInfo, reply: Any) -> Steps[None]:
        receipts = self._receipts
        window = self._count_view(info)
        receipts.look_at(info, window)
        report = reports.report_of(reply, info, self.settings.limits)
        thread = reports.thread_record(
            reply, report, info, self.settings.tenant
        )
        if thread is not None:
            yield Commit((), (thread,))
        if isinstance(report, Unreadable):
            yield from self._leave_unreported(info, report, window)
            return
        earlier = None
        if not self.budget.is_new(report):
            earlier = self._state.observed_before(report)
        # the very reply that was observed before, here or by another (F104)
        if earlier is not None and earlier.is_full(report):
            return
        if self.budget.knows(report, self._account):
            return
        # what is observed is written to the cache
        prior = self._take_cache()
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
            raw_tokens=receipts.raw_tokens(info, report.usage),
            outlining=self._outlining(info),
            beside=(*sent.records, *self._session_rows(info)),
        )
        spent = reports.spent_by(report, instead_of=earlier)
        self.budget.settle(self._account, report, info.model, info.estimate)
        yield from self.budget.synced()
        if prior.cache is not None:
            prior.cache.observed(transcript, info.key)

        def count(state: SessionState) -> Transition:
            next_state, warnings = learn_from(
                state, info, report.usage.sent_tokens or None
            )
            next_state = next_state.with_persisted(persisted).with_spent(spent)
            info.reply_usage = report.usage
            info.broken = sent.broken
            info.reply_events = warnings
            # a fuller report of the same reply tells nothing anew
            if earlier is None:
                info.reply_events += sent.events
            reported = reports.reported_in(reply, report.usage)
            next_state = next_state.with_observed(report, earlier)
            next_state = replace(next_state, cache=prior.cache)
            return next_state.with_sent(sent), (*reported, *info.reply_events)

        caches = self._state.caches
        self._change(count)
        counted = None if earlier is None else earlier.usage
        yield from receipts.paid(info, report.usage, counted, caches=caches)

    def take_new_savings(self) -> ReceiptTotals:
        """What `saved` has grown by since this was last called, for sums kept elsewhere."""
        return self._saved.take_new()

    def _session_rows(self, info: RequestInfo) -> tuple[Record, ...]:
        """The row of a conversation in its client session, where one is known."""
        if self._outlining(info) is None:
            return ()
        return rows_of(info, self.settings, time.time())

    def _leave_unreported(
        self, info: RequestInfo, report: Unreadable, window: Window | None
    ) -> Steps[None]:
        """Count our estimate for a reply whose usage nobody reported."""
        output_tokens = report.output_tokens
        pending = reports.under_way(info, output_tokens)
        self.budget.leave_unreported(self._account, pending)

        estimate = Usage(
            fresh_tokens=info.estimate, output_tokens=output_tokens
        )
        ledger = self._state.persisted.ledger
        now_s = time.time()
        sent = answered(
            info, window, estimate, ledger, now_s, is_reported=False
        )

        def leave_uncounted(state: SessionState) -> Transition:
            next_state, warnings = learn_from(
                state, info, report.input_tokens or None
            )
            info.reply_events = (*warnings, *sent.events)
            events = (reports.unreported(report, info), *info.reply_events)
            return next_state.with_sent(sent), events

        self._change(leave_uncounted)
        yield from self._receipts.paid(info, estimate, is_reported=False)
