"""What a provider tells a session beside its replies, and what it gets as it came."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ullage.core.errors import BudgetExceeded, ConfigError, FormatError
from ullage.core.turn.state import wire_of
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits, ServedWindow
from ullage.core.values.usage import Usage
from ullage.session.changes import ChangeMixin, Transition
from ullage.session.copies import CopyMixin
from ullage.session.drivers import Actions
from ullage.session.provider import reports
from ullage.session.provider.refusals import after_refusal
from ullage.session.provider.unfitted import (
    Unfitted,
    fit_or_pass,
    went_as_it_came,
)
from ullage.session.reading import ReadMixin
from ullage.session.state import SessionState
from ullage.session.view import RequestInfo
from ullage.wires import Format, recognise
from ullage.wires.overflow import Overflow, is_overflow


class PassMixin(ChangeMixin, CopyMixin, ReadMixin):
    """The part of a session that stands between a view and its provider."""

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
        view = info or self._newest
        is_shorter = False

        def learn(state: SessionState) -> Transition:
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
