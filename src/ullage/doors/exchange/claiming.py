"""An exchange, as far as it reserves what its request may come to, and answers for a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ullage.core.errors import BudgetExceeded
from ullage.doors.exchange.answers import WholeAnswer
from ullage.doors.exchange.reporting import Reporting
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.spending import (
    SPENDING_KINDS,
    refused_request,
    unread_request,
)
from ullage.doors.exchange.values import ClientAnswer, Passed
from ullage.doors.host import Actions

if TYPE_CHECKING:
    from ullage import TeamCall
    from ullage.doors.exchange.exchange import Exchange
    from ullage.doors.exchange.exchanges import Exchanges


class Claiming(Reporting):
    """The part of an exchange that knows what may be spent.

    Attributes, beside those of `Reporting`:
        route: what is asked at its path, or None.
        is_thread: whether the client's next request goes on from the reply by its id alone. Then
            the reply is taken in before its end is given.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        path: str,
        passed: Passed | None,
        *,
        route: Route | None,
        body: bytes,
        spending: TeamCall | None,
    ) -> None:
        super().__init__(exchanges, path, passed)
        self.route = route
        self.is_thread = False
        self._body = body  # as the client sent it
        self._spending = spending
        self._session: Any = None

    def _claim(self) -> Actions[str]:
        """Reserve what the view may come to; what the model is told of its budget."""
        assert self.route is not None
        call = self._spending
        if call is None or self.route.kind not in SPENDING_KINDS:
            return ""
        prompt_tokens, output_tokens = self._session.largest_call(
            self.view.sent
        )
        call.wire = self.route.wire
        try:
            yield from call.claim(
                self.report.model,
                prompt_tokens,
                output_tokens,
                self.report.usage,
            )
        except BudgetExceeded:
            self._release()
            raise
        self._note_budget(call)
        return "" if self.is_thread else call.sentence

    def _claim_unread(self, route: Route) -> Actions[None]:
        """Reserve what a request may come to that is sent as it came.

        Raises:
            BudgetExceeded: it may not be sent.
        """
        call = self._spending
        if call is None or call.is_claimed or route.kind not in SPENDING_KINDS:
            return
        request = unread_request(route, self._body)
        call.wire = route.wire
        yield from call.claim(*request)
        self._note(model=self.report.model or request.model)
        self._note_budget(call)

    def _note_budget(self, call: TeamCall) -> None:
        """Report how far the budget is used, and once in a period that it is nearly spent."""
        events = self.report.events
        if call.event is not None and call.event not in events:
            events = (*events, call.event)
        self._note(budget=call.use, events=events)

    def _refuse(self, error: BudgetExceeded) -> ClientAnswer:
        """The answer to a request that may not be sent."""
        assert self.route is not None
        if self._spending is not None:
            self.view = None
            self._note(is_stopped=True, budget=self._spending.use)
        refused = refused_request(self.route.wire, error)
        exchange = cast("Exchange", self)
        answer = WholeAnswer(exchange, None, refused.status, refused.body)
        answer.headers = refused.headers
        return answer

    def _release(self) -> None:
        if self._session is not None:
            self._session.release()
