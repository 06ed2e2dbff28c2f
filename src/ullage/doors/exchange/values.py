"""The interface of an exchange: the upstream and its reply, the answer, the report, counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from ullage import BudgetUse, Event, Usage
from ullage.doors.exchange.additions import Addition
from ullage.doors.host import Actions, Standing

Passed: TypeAlias = Literal[
    "path",
    "body",
    "elsewhere",
    "content",
    "limit",
    "settings",
    "store",
    "signature",
    "refused",
    "error",
    "asked",
]
"""Why a request was sent as it came.

    path        its path is none that has a history in it
    body        its body is no JSON object that can be read
    elsewhere   it adds to what the provider keeps (``conversation``, ``cachedContent``)
    content     there is something in it that is not known
    limit       what may not be touched is over the limit: the provider decides
    settings    they cannot be meant for it: its policy wants a window, and none is known
    store       what would have been set aside could not be kept
    signature   it is signed, and cannot be signed again
    refused     what was made of it was refused, and sent without additions refused again
    error       a bug in ullage
    asked       the door was asked not to touch it
"""


class Upstream(Protocol):
    """Sends a request of which all but the body is settled. A door's own.

    Each method may be a coroutine function, for a door that drives the steps with `adrive`. What
    it raises goes through the steps to whoever runs them, as it is.
    """

    def send(self, body: bytes) -> Any:
        """Send the request with this body, and give the `UpstreamReply` once its head is there."""

    def delete(self, reply_id: str, hidden_id: str) -> Any:
        """Send the request, which is a DELETE, with another id in the place of ``reply_id``."""


class TooLong(Exception):
    """A reply is longer than its door reads: it goes on as it came."""


class UpstreamReply(Protocol):
    """What an upstream answered: the head, and the body to be read, decoded. A door's own.

    Attributes:
        status: the HTTP status.
        content_type: the header of that name, ``""`` if there is none.
    """

    status: int
    content_type: str

    def read(self) -> Any:
        """The whole of the body.

        It may raise `TooLong`. Then the door has all of it still to give, by its own means.
        """

    def next(self) -> Any:
        """The next bytes of the body, as they come; ``b""`` at its end."""

    def close(self) -> Any:
        """Let go of the connection; the body need not have been read."""


class ClientAnswer(ABC):
    """What the client gets.

    Attributes:
        reply: the upstream's reply whose status and headers it has; None: it is ours.
        status: its HTTP status.
        content_type: of its body.
        body: the whole of the body, where it is there already; ``reply`` may hold the same one.
        headers: of ours, where there is no ``reply``.
        is_untouched: whether it is ``reply``, unread: a door may give that on by its own means, and
            need not call `next` or `close`.
    """

    reply: Any
    status: int
    content_type: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    is_untouched: bool = False

    @abstractmethod
    def next(self) -> Actions[bytes]:
        """The next bytes of the body; ``b""`` at its end."""

    @abstractmethod
    def close(self) -> Actions[None]:
        """The client has all of it, or went away: take in what came, and close the upstream."""


class ExchangeReport(Struct, frozen=True, kw_only=True):
    """The outcome of one exchange. No content.

    Attributes:
        path: as in the request, without the query.
        wire: the name of the wire, ``""`` where the path has none.
        model: the model that was asked, ``""`` if none is named.
        conversation: the key of its session in `Exchanges.sessions`; ``""`` if nothing was fitted.
        passed: why it was sent as it came; None: it was fitted.
        problem: what was wrong where it was passed on: its kind, place and numbers, and nothing
            of the request (`ullage.doors.exchange.problems`).
        is_streamed: whether its answer came as events.
        is_changed: whether what was sent is other than what came.
        is_shortened: whether any of its history was shortened or left out.
        has_recall_tools: whether its model was offered tools that open what was left out.
        is_retried: whether it was refused as too long, and sent once more.
        is_undercounted: whether the provider counts far less of this conversation's prompts than is
            sent, again and again: it may cut them without saying so.
        tries: how often something was sent for it.
        recalled: how many calls of the model were answered here, unseen by the client.
        messages: how many the history has.
        view_tokens: about how many tokens were sent; 0 if nothing was fitted.
        limit_tokens: the most they were allowed to be.
        status: the HTTP status of the answer; 0 if there was none.
        usage: what the provider reported of it, or None.
        raw_usd: what it would have cost without ullage, in dollars at list price: reckoned, as
            for a receipt; None: nothing was reckoned.
        events: what was decided for it, in every round of it.
        standing: why nothing of its conversation is cut on arrival; None: it is.
        without: what it was sent without, because the upstream refused it, in this exchange or
            before (`ullage.doors.exchange.additions`).
        budget: how far the team's budget is used that is nearest its end; None: none covers it.
        is_stopped: whether it was not sent, because a budget leaves no room.
        is_held_out: whether its conversation passes unfitted, to be compared with.
    """

    path: str
    wire: str = ""
    model: str = ""
    conversation: str = ""
    passed: Passed | None = None
    problem: str = ""
    is_streamed: bool = False
    is_changed: bool = False
    is_shortened: bool = False
    has_recall_tools: bool = False
    is_retried: bool = False
    is_undercounted: bool = False
    tries: int = 0
    recalled: int = 0
    messages: int = 0
    view_tokens: int = 0
    limit_tokens: int = 0
    status: int = 0
    usage: Usage | None = None
    raw_usd: float | None = None
    events: tuple[Event, ...] = ()
    standing: Standing | None = None
    without: tuple[Addition, ...] = ()
    budget: BudgetUse | None = None
    is_stopped: bool = False
    is_held_out: bool = False


class ExchangeCounts(Struct, frozen=True):
    """How many exchanges there were, and their outcomes. A value.

    Attributes:
        requests: all of them.
        fitted: those whose history was fitted.
        changed: those that were sent other than they came.
        refused: those that a provider refused as too long, and that were sent once more.
        recalled: calls of the models that were answered here.
        passed: those that were sent as they came, by reason.
        usage: the sum of what was reported.
    """

    requests: int = 0
    fitted: int = 0
    changed: int = 0
    refused: int = 0
    recalled: int = 0
    passed: dict[Passed, int] = {}
    usage: Usage = Usage()

    def plus(self, report: ExchangeReport) -> ExchangeCounts:
        """These counts and one more report."""
        passed = dict(self.passed)
        if report.passed is not None:
            passed[report.passed] = passed.get(report.passed, 0) + 1
        return ExchangeCounts(
            self.requests + 1,
            self.fitted + (report.view_tokens > 0),
            self.changed + report.is_changed,
            self.refused + report.is_retried,
            self.recalled + report.recalled,
            passed,
            self.usage if report.usage is None else self.usage + report.usage,
        )
