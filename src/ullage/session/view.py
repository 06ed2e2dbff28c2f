"""The view: the request that fits, and the handle of that request.

    view = session.fit(request)
    reply = client.messages.create(**view)
    view.observe(reply)
    for call in tool_calls(reply):
        result = view.recall(call) if view.owns(call) else run(call)

A view is a plain dict for whoever sends it. Several views of one session may be in flight at
once, in threads and tasks, of one conversation or of many: each speaks of itself alone.
"""

from __future__ import annotations

from copy import copy, deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from ullage.core.history.frozen import FrozenWindow
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn.standing import Standing
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.notices import Words
from ullage.core.values.usage import Usage
from ullage.session.picture import Drawn, OneWindow, one_window
from ullage.wires import Format
from ullage.wires.base import name_of_call
from ullage.wires.overflow import Overflow

if TYPE_CHECKING:
    from ullage.core.turn import TurnResult
    from ullage.core.turn.caches import FrozenRequest
    from ullage.core.values.decisions import Verb
    from ullage.session.aio import AsyncSession
    from ullage.session.core import SessionCore
    from ullage.session.preview import Preview
    from ullage.session.reckoning import Request
    from ullage.session.session import Session

_NUMBERS = count()


class Sent:
    """What one view was made of: enough to take in its reply after later views were made.

    It is read from any thread, and without a lock: the window behind it is frozen.

    Attributes:
        frozen: the window behind the view, as it was then.
        working: the window that the turns move on, for the session that made the view, under its
            lock alone. None of a session that was copied.
        raw: the request that the view was made from, as it came.
        wire: the format of the request.
        size: how many messages the view was made of.
        key: where in the chain it was made.
        model: the model it was made for.
        limit_tokens: the most it was allowed to hold.
        limits: those that held when it was made, before anything was learnt; None: the model's own.
        words: the wording of its notices.
        offers: whether the recall tools stand in it.
        is_thread: whether the next request may go on from the reply by its id alone.
        events: what happened when it was made.
        standing: why nothing of the conversation is cut at first sight; None: it is.
        number: of the view, in this process.
        reported: what its reply reported, as it was observed last; None: nothing yet.
        noted: what was noted of its reply for the ledger of receipts; None: nothing yet.
        counted: the view as receipts count it; None: nothing is to be noted, or not yet.
        is_undercounted: whether the provider counted far less than was sent of the views before
            it, again and again.
        warning: what the reply gave reason to warn of, or None.
    """

    def __init__(self, turned: TurnResult) -> None:
        window = turned.window
        self.frozen: FrozenWindow = turned.frozen
        self.working: Window | None = window
        self.raw: FrozenRequest = turned.raw
        self.wire: Format = turned.wire
        self.size: int = window.size
        self.key: bytes = window.transcript.decision_key(window.size)
        self.model: str = window.meter.model
        self.limit_tokens: int = window.limit_tokens
        self.limits: Limits | None = turned.limits
        self.words: Words = window.words
        self.offers: bool = turned.offers
        self.is_thread: bool = turned.is_thread
        self.events: tuple[Event, ...] = turned.events
        self.standing: Standing | None = turned.standing
        self.number: int = next(_NUMBERS)
        self.reported: Usage | None = None
        self.noted: Usage | None = None
        self.counted: Request | None = None
        self.is_undercounted: bool = False
        self.warning: Event | None = None

    def apart(self) -> Sent:
        """The same for another session, which shares no lock with the one that made the view."""
        other = copy(self)
        other.working = None
        return other

    @property
    def window(self) -> Window:
        """All that the view shows. The first reader has it made, in time proportional to it."""
        return self.frozen.window

    @property
    def transcript(self) -> Transcript:
        """The history that the view was made of."""
        return self.frozen.transcript

    @property
    def tokens(self) -> int:
        """Uncalibrated tokens of the view."""
        return self.frozen.tokens

    @property
    def estimate(self) -> int:
        """Tokens of the view as the provider is expected to count them."""
        return self.frozen.estimate

    def owns(self, call: Any) -> bool:
        """Whether a tool call in the reply is for `recall`; see `View.owns`."""
        return self.offers and self.words.is_recall(name_of_call(call))

    @property
    def told(self) -> str:
        """How large the view is, against its limit."""
        share = (
            f" ({self.estimate / self.limit_tokens:.0%})"
            if self.limit_tokens > 0
            else ""
        )
        size = f"{self.estimate:,} of {self.limit_tokens:,} tokens{share}"
        return f"{self.size:,} messages for {self.model or 'an unnamed model'}: {size}"

    def picture(self) -> OneWindow:
        """What of the history is shown."""
        return one_window(self.window, self.told)

    def explain(self) -> str:
        """What was done to make the view, in words; see `View.explain`."""
        lines = [self.told]
        lines += [_line(event) for event in self.events]
        if not self.events:
            lines.append("nothing was changed for this request")
        if self.standing is not None:
            lines.append(f"standing: {self.standing.why}")
        return "\n".join(lines)


def _line(event: Event) -> str:
    """An event as one line."""
    sizes = f", {event.tokens_before:,} → {event.tokens_after:,} tokens"
    ref = f", ref={event.ref}" if event.ref else ""
    return f"{event.kind}: {event.where}{sizes if event.tokens_before else ''}{ref}: {event.why}"


class _Handle(Drawn, dict[str, Any]):
    """What both views share: a dict to be sent, and what is known of it without waiting."""

    __slots__ = ("__weakref__", "_sent", "_session")

    def __init__(
        self, request: dict[str, Any], sent: Sent, session: SessionCore
    ) -> None:
        super().__init__(request)
        self._sent = sent
        self._session = session

    def __copy__(self) -> Self:
        return type(self)(dict(self), self._sent, self._session)

    def __deepcopy__(self, memo: Any) -> Self:
        """A view of its own messages, of the same session."""
        return type(self)(deepcopy(dict(self), memo), self._sent, self._session)

    def __reduce__(self) -> Any:
        """Pickled, it is the request and no handle: its session is in this process."""
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """How large it is: error reports show this, and what a view says is the user's."""
        return f"<{type(self).__name__}: {self._sent.told}>"

    __str__ = dict.__repr__

    def _picture(self) -> OneWindow:
        return self._sent.picture()

    @property
    def wire(self) -> Format:
        """The format of the request."""
        return self._sent.wire

    @property
    def sent(self) -> Sent:
        """What is known of what is sent: its size, its limit, its place in the history."""
        return self._sent

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened when this view was made, in order."""
        return self._sent.events

    def owns(self, call: Any) -> bool:
        """Whether a tool call in the reply is for `recall`; see `Session.owns`."""
        return self._sent.owns(call)

    def reports(self, event: Any) -> bool:
        """Whether an event of a stream that answers this view speaks of usage."""
        return self.wire.usage_of_stream((event,)) is not None

    def refused(self, error: Any) -> Overflow | None:
        """Take in that the provider refused this view as too long; see `Session.refused`."""
        return self._session._refused(error, self._sent)

    def explain(self) -> str:
        """What was done to make this view: its size against the limit, then each decision.

        Each line has its numbers and its reason; the first is the size. Where nothing is cut in
        this conversation, the last says why. No content.
        """
        return self._sent.explain()


class View(_Handle):
    """A request that fits, as `Session.fit` gives it: a dict, and the handle of that request."""

    __slots__ = ()
    _session: Session

    def observe(self, reply: Any) -> None:
        """Take in the reply to this view; see `Session.observe`. The same one counts once."""
        self._session._run(self._session._observe(self._sent, reply))

    def recall(self, call: Any) -> dict[str, Any]:
        """Answer a call that `owns` said is ours; see `Session.recall`."""
        return self._session._run(self._session._recall(call, self._sent))

    def preview(self, verb: Verb, target: Any = None, **given: Any) -> Preview:
        """What a decision about this view would change and cost; see `Session.preview`."""
        session = self._session
        return session._run(session._previewed(verb, target, None, self._sent, **given))


class AsyncView(_Handle):
    """A request that fits, as `AsyncSession.fit` gives it; `observe` and `recall` are awaited."""

    __slots__ = ()
    _session: AsyncSession

    async def observe(self, reply: Any) -> None:
        """See `View.observe`."""
        await self._session._run(self._session._observe(self._sent, reply))

    async def recall(self, call: Any) -> dict[str, Any]:
        """See `View.recall`."""
        return await self._session._recalling(self._session._recall(call, self._sent))

    async def preview(self, verb: Verb, target: Any = None, **given: Any) -> Preview:
        """See `View.preview`."""
        session = self._session
        return await session._run(
            session._previewed(verb, target, None, self._sent, **given)
        )
