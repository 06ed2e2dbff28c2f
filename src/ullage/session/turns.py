"""A turn of a session: a view within its budget, and the state that follows from it.

In this order:

    begin        the session's account in its budget
    turn         on the cache, which is out of the state meanwhile
    look back    at the breaks of the prompt cache
    finish       one assignment: what was decided, and the events of it
    claim        what the call can cost at most; where the budget is spent, the view is made once
                 more, with the request to sum up
    send         the claim is under way
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError, OverLimitError, StoreError
from ullage.core.history.window import Window
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.filling import Asking
from ullage.core.turn.state import TurnResult
from ullage.core.turn.turn import turn
from ullage.core.values.effects import Steps
from ullage.session.changes import Transition
from ullage.session.copies import CopyMixin
from ullage.session.decisions.deciding import DecisionMixin, with_records
from ullage.session.decisions.successor import following_of, go_along
from ullage.session.host import HostMixin
from ullage.session.prompt_cache.breaks import look_back
from ullage.session.provider import reports
from ullage.session.provider.refusals import SHORT_REPLIES
from ullage.session.reading import ReadMixin
from ullage.session.spend.allowance import Claim
from ullage.session.spend.calls import Spent
from ullage.session.state import SessionState
from ullage.session.view import RequestInfo
from ullage.wires import MODEL_FIELDS

V = TypeVar("V")


class TurnMixin(DecisionMixin, CopyMixin, HostMixin, ReadMixin):
    """The part of a session that makes its views."""

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
        # what a user decided before the client compacted its history is shown at once
        if (yield from self._bring_along(info)):
            view, info = yield from make_view()
        claim = partial(self._largest_claim, info)
        has_room = self.budget.claim(self._account, claim)
        # the budget is spent: the view is made once more, with the request to sum up
        if not has_room:
            wording = self.budget.allowance.words
            added_tokens = info.frozen.meter.message(wording)
            view, info = yield from make_view(
                words=wording, added_tokens=added_tokens
            )
            last_claim = self._largest_claim(info)
            self.budget.claim_wrap_up(self._account, last_claim, added_tokens)
        self.budget.send(self._account, partial(reports.under_way, info))
        return view

    def _bring_along(self, info: RequestInfo) -> Steps[bool]:
        """Take over what a user decided in the conversation that this one follows.

        Returns:
            Whether the view is to be made again, to show it.
        """
        if not self.settings.client_session or self._outlining(info) is None:
            return False
        following = following_of(info, self.settings)
        # a session asks its store once which conversation its own one follows
        if following is None or following == self._state.following:
            return False
        ledger = self._state.persisted.ledger
        try:
            records = yield from go_along(info, ledger, following)
        except StoreError:
            return False  # nothing hangs on it: it is tried with the next view

        def follow(state: SessionState) -> Transition:
            return replace(
                with_records(state, records), following=following
            ), ()

        self._change(follow)
        return any(record.kind == "decision" for record in records)

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
        body = result.request
        if words:
            body = result.wire.wrap_up(body, words)
        info = RequestInfo(result)
        view = kind(body, info, self)
        ledger = result.state.ledger
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
        if state.newest is not info or state.cache is None:
            return None
        working = info.working
        if working is not None and not info.frozen.is_counted:
            info.frozen.take_count(working.tokens)
        return working

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
        model_name = self._model_named_in(request)
        settings = replace(
            self.settings,
            lessons=state.learnt,
            asking=self._summary_request(model_name),
            policy=self._policy_now(),
            outlines=self._outlines,
            may_add_tools=may_add_tools,
        )
        steps = turn(
            request, state.persisted, cache, settings, added_tokens, now=now
        )
        try:
            return (yield from steps)
        except OverLimitError as error:
            limit_tokens = error.limit_tokens

            # nothing fits what a refusal left: it must not stand in the way of the next request
            def forget(state: SessionState) -> Transition:
                return state.without_room(limit_tokens, model_name), ()

            self._change(forget)
            raise

    def _model_named_in(self, request: Mapping[str, Any]) -> str:
        """The model that a request names; where it names none, the session's."""
        # a request that is no mapping is refused by the turn, with a FormatError
        if isinstance(request, Mapping):
            for field in MODEL_FIELDS:
                model = request.get(field)
                if model:
                    return (
                        model
                        if isinstance(model, str)
                        else self.settings.model
                    )
        return self.settings.model

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
        self, result: TurnResult, info: RequestInfo | None = None
    ) -> RequestInfo:
        """Make the result of a turn the session's newest state."""
        info = info or RequestInfo(result)
        spent = Spent()
        if self._summaries is not None:
            kinds = [event.kind for event in result.events]
            is_refused = "summary_refused" in kinds
            spent = self._summaries.take(is_refused=is_refused)
        info.is_undercounted = result.lesson.short_replies >= SHORT_REPLIES

        def finish(state: SessionState) -> Transition:
            next_state = state.with_persisted(result.state).with_spent(spent)
            next_state = replace(next_state, cache=result.cache, newest=info)
            return next_state, result.events

        self._change(finish)
        if spent.usage.total_tokens:
            self._receipts.paid_beside(spent, info.model)
        return info

    def _summary_request(self, model: str) -> Asking | None:
        """How summaries are asked for in this model's conversation; None without a summariser."""
        if self._summaries is None:
            return None
        summariser = self._summaries.summariser
        return Asking(partial(summariser.window_for, caller=model), model)

    def _policy_now(self) -> Policy:
        return self.settings.policy

    def _compact(self, request: Mapping[str, Any]) -> Steps[bool]:
        if self.settings.policy.on_request is None:
            raise ConfigError(
                "policy", "it has no compaction", "Use a policy that compacts."
            )
        if self._summaries is not None:
            self._summaries.try_again()
        result = yield from self._turn(request, now=True)
        info = self._finish(result)
        return any(event.kind == "compacted" for event in info.events)

    def _flush(self, request: Mapping[str, Any]) -> Steps[None]:
        result = yield from self._turn(request)
        self._finish(result)

    def _latest_view(
        self, request: Mapping[str, Any] | None
    ) -> Steps[RequestInfo]:
        """The newest view; decided now from ``request`` if there is none yet."""
        if request is not None and self._state.newest is None:
            yield from self._flush(request)
        return self._newest
