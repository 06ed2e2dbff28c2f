"""What an exchange reports, once, when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ullage.doors.exchange.values import ExchangeReport, Passed
from ullage.doors.host import Actions

if TYPE_CHECKING:
    from ullage.doors.exchange.exchanges import Exchanges


class Reporting:
    """An exchange, as far as it reports the outcome.

    Attributes:
        passed: why the request is sent as it came; None: it is fitted.
        view: the view that was sent last, the handle of it; None if nothing was fitted.
        report: the outcome so far.
    """

    def __init__(
        self, exchanges: Exchanges, path: str, passed: Passed | None
    ) -> None:
        self.passed: Passed | None = passed
        self.view: Any = None
        self.report = ExchangeReport(path=path.partition("?")[0])
        self._exchanges = exchanges
        self._is_over = False

    def _note(self, **fields: Any) -> None:
        self.report = replace(self.report, **fields)

    def _attempt(self, act: Callable[[], Any]) -> Actions[Any]:
        """What a function returns; None, and a note of it, where it fails."""
        try:
            return (yield act)
        except Exception as error:  # noqa: BLE001 - the reply is there, and goes on without it
            self.note_problem(error)
            return None

    def note_problem(self, error: Exception) -> None:
        """Note that something of ours failed, and the exchange went on without it."""
        self._note(problem=type(error).__name__)

    def note_stream(self) -> None:
        """Note that its answer comes as events."""
        self._note(is_streamed=True)

    def over(self, status: int) -> None:
        """Report and count the exchange, once.

        Args:
            status: the HTTP status of its answer; 0 if there was none.
        """
        if self._is_over:
            return
        self._is_over = True
        if self.view is not None:
            request_info = self.view.sent
            self._note(
                messages=request_info.size,
                view_tokens=request_info.estimate,
                limit_tokens=request_info.limit_tokens,
                is_shortened=request_info.frozen.is_edited,
                has_recall_tools=request_info.offers,
            )
        self._note(status=status, passed=self.passed)
        self._exchanges.over(self.report)
