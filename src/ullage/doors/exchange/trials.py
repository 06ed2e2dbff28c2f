"""The additions of one request: what its next try leaves out, and what refusals have taught.

    sent with additions ─▶ 400 or 422
                             ├▶ sent without those that the words name, if they name some
                             ├▶ sent without any
                             └▶ sent as it came, where it was also cut and fits as it came

What is accepted first is what the client gets, and what was left out for it is remembered. If none
is accepted, the last refusal is the client's, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ullage import Event
from ullage.doors.exchange import bodies, requests
from ullage.doors.exchange.additions import (
    ADDITIONS,
    HOLDS_S,
    Addition,
    RequestTarget,
    named_in,
)
from ullage.doors.exchange.markers import marked
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.spending import with_sentence

if TYPE_CHECKING:
    from ullage import AsyncView, View
    from ullage.doors.exchange.refusals import KnownRefusals

_STATUSES = (400, 422)
_TYPES = ("invalid_request_error", "INVALID_ARGUMENT")
_WORDS: dict[Addition, str] = {
    "tools": "the recall tools",
    "stream_options": "a request for its usage",
    "cache_control": "cache markers",
    "budget": "a sentence on its budget",
}


class Trial:
    """The additions of one request.

    Args:
        known: what upstreams refused so far.
        target: where the request goes.
        own_tools: how many tools it has by itself.

    Attributes:
        left_out: the additions that it is sent without.
        added: those that stand in what was sent last.
        is_refused: whether it was refused with an addition.
    """

    def __init__(
        self, refusals: KnownRefusals, target: RequestTarget, own_tools: int
    ) -> None:
        self.own_tools = own_tools
        self.left_out: frozenset[Addition] = refusals.of(target, own_tools)
        self.added: frozenset[Addition] = frozenset()
        self.is_refused = False
        self._refusals = refusals
        self._target = target
        self._already_told = self.left_out
        self._named: frozenset[Addition] = frozenset()

    def takes(self, addition: Addition) -> bool:
        """Whether an addition may stand in the request."""
        return addition not in self.left_out

    def leave_out(self, words: bytes) -> bool:
        """Leave out of the next try what a refusal names, or everything where it names nothing.

        Args:
            words: the body of the refusal.

        Returns:
            Whether there is anything to be left out.
        """
        on_trial = self.added - self.left_out
        if not on_trial:
            return False
        named = named_in(words) & on_trial
        self.is_refused = True
        self._named |= named
        self.left_out |= named or on_trial
        return True

    def accept(self) -> Iterator[Event]:
        """Remember and report what was left out of a request that was accepted."""
        for addition in listed(self.left_out - self._already_told):
            is_named = addition in self._named
            holds = self._refusals.learn(
                self._target,
                addition,
                is_named=is_named,
                own_tools=self.own_tools,
            )
            yield _event(addition, holds=holds)
        self._already_told = self.left_out

    def confirm(self) -> None:
        """A reply came: what stood in the request was not refused."""
        if self.added:
            self._refusals.forget(self._target, self.added, self.own_tools)


class AugmentedView(NamedTuple):
    """A view and its additions.

    Attributes:
        view: the view, with cache markers if it gets some.
        request: what is sent: the view, and a request for its usage if it gets one.
        names: the additions in it, the recall tools among them.
        without: the additions that it would have, and was not given.
    """

    view: Mapping[str, Any]
    request: Mapping[str, Any]
    names: frozenset[Addition]
    without: tuple[Addition, ...]


def with_additions(
    view: View | AsyncView,
    request: Mapping[str, Any],
    route: Route,
    trial: Trial,
    *,
    marks_cache: bool,
    sentence: str = "",
) -> AugmentedView:
    """A view with what may be added to it.

    Args:
        view: what `Session.fit` gave, with the recall tools if it may have them.
        request: the request that it was made from.
        route: what is asked.
        trial: of the request's additions.
        marks_cache: whether it is to get cache markers.
        sentence: on its budget, for the model; empty: none.
    """
    names = set[Addition]()
    without = set[Addition]()
    if len(view.wire.tools(view)) > len(view.wire.tools(request)):
        names.add("tools")
    elif trial.own_tools and not trial.takes("tools"):
        without.add("tools")
    marked_view: Mapping[str, Any] = view
    with_markers = marked(view) if marks_cache else view
    if with_markers is not view:
        if trial.takes("cache_control"):
            names.add("cache_control")
            marked_view = with_markers
        else:
            without.add("cache_control")
    outgoing = marked_view
    with_usage = requests.with_usage(route, marked_view)
    if with_usage is not None:
        if trial.takes("stream_options"):
            names.add("stream_options")
            outgoing = with_usage
        else:
            without.add("stream_options")
    with_note = with_sentence(view, outgoing, sentence) if sentence else None
    if with_note is not None:
        if trial.takes("budget"):
            names.add("budget")
            outgoing = with_note
        else:
            without.add("budget")
    return AugmentedView(
        marked_view, outgoing, frozenset(names), listed(frozenset(without))
    )


def may_fit(
    view: View | AsyncView, sent_body: bytes, original_body: bytes
) -> bool:
    """Whether a request fits as it came, if it has as many tokens a byte as what was sent."""
    estimate = view.sent.estimate * len(original_body) / max(len(sent_body), 1)
    return estimate <= view.sent.limit_tokens


def listed(additions: frozenset[Addition]) -> tuple[Addition, ...]:
    """Additions in the order in which they are listed."""
    return tuple(addition for addition in ADDITIONS if addition in additions)


def _event(addition: Addition, *, holds: bool) -> Event:
    """The event of an addition that was refused."""
    refusal = f"the upstream refused the request with {_WORDS[addition]} and took it without"
    consequence = (
        "they are added to the next one, for the refusal did not name them"
    )
    if holds:
        consequence = f"requests for this model go without for {HOLDS_S / 60:.0f} minutes"
    return Event(
        kind="addition_refused",
        where=addition,
        why=f"{refusal}: {consequence}",
    )


def is_bad_request(error: Any) -> bool:
    """Whether a refusal says that the request is wrong, and not who sent it, or when.

    Args:
        error: as of `ullage.doors.exchange.replies.refusal`; or a body, or an event of a stream,
        that
            says so under status 200.
    """
    if not isinstance(error, dict):
        return False
    if "status_code" in error:
        return error["status_code"] in _STATUSES
    inner = error.get("error")
    if not isinstance(inner, dict):
        return False
    names = (inner.get("type"), inner.get("status"))
    return inner.get("code") in _STATUSES or any(
        name in _TYPES for name in names
    )


def words_of(error: Any) -> bytes:
    """The words of a refusal; see `is_bad_request`."""
    body = error.get("body")
    return body if isinstance(body, bytes) else bodies.write(error)
