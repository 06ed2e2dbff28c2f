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
from ullage.core.values.cache_breaks import CacheBreak
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.notices import Words
from ullage.core.values.usage import Usage
from ullage.session.picture import OneWindow, PictureMixin, one_window
from ullage.wires import Format
from ullage.wires.base import name_of_call
from ullage.wires.overflow import Overflow

if TYPE_CHECKING:
    from ullage.core.turn import TurnResult
    from ullage.core.turn.caches import FrozenRequest
    from ullage.core.values.decisions import Verb
    from ullage.session.aio import AsyncSession
    from ullage.session.core import SessionCore
    from ullage.session.decisions.preview import Preview
    from ullage.session.prompt_cache.heads import HeadPrint
    from ullage.session.prompt_cache.sent import RecentRequest
    from ullage.session.prompt_cache.view_changes import ViewChange
    from ullage.session.receipts.reckoning import RequestCounts
    from ullage.session.session import Session

_NUMBERS = count()


class RequestInfo:
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
        standing: why nothing of the conversation is cut on arrival; None: it is.
        number: of the view, in this process.
        reply_usage: what its reply reported, as it was observed last; None: nothing yet.
        noted_usage: what was noted of its reply for the ledger of receipts; None: nothing yet.
        counts: the view as receipts count it; None: nothing is to be noted, or not yet.
        is_undercounted: whether the provider counted far less than was sent of the views before
            it, again and again.
        warning: what the reply gave reason to warn of, or None.
        reply_events: what its reply gave reason to tell, its usage left out.
        before: the request before it in its conversation; None: it is the first, or not known.
        change: where it is first other than that one; None: it only goes on from it.
        broken: how it breaks the prompt cache, as the provider reports it, and until then as it is
            reckoned; None: it does not.
        head_print: the fingerprint of what stands before its messages; None: not made yet.
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
        self.reply_usage: Usage | None = None
        self.noted_usage: Usage | None = None
        self.counts: RequestCounts | None = None
        self.is_undercounted: bool = False
        self.warning: Event | None = None
        self.reply_events: tuple[Event, ...] = ()
        self.before: RecentRequest | None = None
        self.change: ViewChange | None = None
        self.broken: CacheBreak | None = None
        self.head_print: HeadPrint | None = None

    def apart(self) -> RequestInfo:
        """A copy for another session, which shares no lock with the one that made the view."""
        detached = copy(self)
        detached.working = None
        return detached

    @property
    def window(self) -> Window:
        """The window of the view; the first reader makes it, in time proportional to its size."""
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
    def raw_tokens(self) -> int:
        """Uncalibrated tokens of the request as it came: without our cuts and our tools."""
        from ullage.session.receipts.reckoning import counted

        counts = counted(self)
        return counts.head + counts.prefix.raw + counts.suffix.raw

    @property
    def estimate(self) -> int:
        """Tokens of the view as the provider is expected to count them."""
        return self.frozen.estimate

    def owns(self, call: Any) -> bool:
        """Whether a tool call in the reply is for `recall`; see `View.owns`."""
        return self.offers and self.words.is_recall(name_of_call(call))

    @property
    def summary(self) -> str:
        """The size of the view against its limit, in words."""
        share = (
            f" ({self.estimate / self.limit_tokens:.0%})"
            if self.limit_tokens > 0
            else ""
        )
        size = f"{self.estimate:,} of {self.limit_tokens:,} tokens{share}"
        return f"{self.size:,} messages for {self.model or 'an unnamed model'}: {size}"

    def picture(self) -> OneWindow:
        """The picture of what is shown of the history."""
        return one_window(self.window, self.summary)

    def explain(self) -> str:
        """What was done to make the view, in words; see `View.explain`."""
        lines = [self.summary]
        lines += [_line(event) for event in self.events]
        if self.broken is not None:
            lines.append(f"cache: {self.broken}")
        elif not self.events:
            lines.append("nothing was changed for this request")
        if self.standing is not None:
            lines.append(f"standing: {self.standing.why}")
        return "\n".join(lines)


def _line(event: Event) -> str:
    """An event as one line."""
    line = f"{event.kind}: {event.where}"
    if event.tokens_before:
        line += f", {event.tokens_before:,} → {event.tokens_after:,} tokens"
    if event.ref:
        line += f", ref={event.ref}"
    return f"{line}: {event.why}"


class _Handle(PictureMixin, dict[str, Any]):
    """The part both views share: a dict to be sent, and what may be read without waiting."""

    __slots__ = ("__weakref__", "_sent", "_session")

    def __init__(
        self, request: dict[str, Any], info: RequestInfo, session: SessionCore
    ) -> None:
        super().__init__(request)
        self._sent = info
        self._session = session

    def __copy__(self) -> Self:
        return type(self)(dict(self), self._sent, self._session)

    def __deepcopy__(self, memo: Any) -> Self:
        """A view with its own copies of the messages, of the same session."""
        return type(self)(
            deepcopy(dict(self), memo), self._sent, self._session
        )

    def __reduce__(self) -> Any:
        """Pickled, it is the request and no handle: its session is in this process."""
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """The size alone: error reports show this, and the content of a view is the user's."""
        return f"<{type(self).__name__}: {self._sent.summary}>"

    __str__ = dict.__repr__

    def _picture(self) -> OneWindow:
        return self._sent.picture()

    @property
    def wire(self) -> Format:
        """The format of the request."""
        return self._sent.wire

    @property
    def sent(self) -> RequestInfo:
        """Size, limit and place of this request in the history, as values."""
        return self._sent

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened when this view was made, in order."""
        return self._sent.events

    def owns(self, call: Any) -> bool:
        """Whether a tool call in the reply is for `recall` and not for the caller's tools.

        Args:
            call: a tool call as it is in the reply, a dict or the SDK's object.
        """
        return self._sent.owns(call)

    def reports(self, event: Any) -> bool:
        """Whether an event of a stream that answers this view reports usage.

        Args:
            event: one event, as the SDK gives it.
        """
        return self.wire.usage_of_stream((event,)) is not None

    def refused(self, error: Any) -> Overflow | None:
        """Take in that the provider refused this view as too long.

        Args:
            error: what the provider call raised, or a reply that says so.

        Returns:
            What was too long, if a shorter view can be sent; else None: then raise the error. See
            `Session.refused`.
        """
        return self._session._refused(error, self._sent)

    def counted(self, tokens: int) -> bool:
        """Take in what the provider counts for the request as it came, without ullage.

        It stands in the receipts beside what ullage reckons for the same request, so that a
        report says how far the two are apart. The reply has to be observed before.

        Args:
            tokens: the whole prompt, as the provider's own endpoint counts it.

        Returns:
            Whether it is noted. False: nothing is reckoned for this request, or the count is more
            than four times as much, or as little.
        """
        return self._session._receipts.counted(self._sent, tokens)

    def explain(self) -> str:
        """Explain how this view was made: its size against the limit, then each decision.

        Each line has its numbers and its reason; the first is the size. Where nothing is cut in
        this conversation, the last line says why. It shows no content.
        """
        return self._sent.explain()


class View(_Handle):
    """A request that fits, as `Session.fit` gives it: a dict, and the handle of that request."""

    __slots__ = ()
    _session: Session

    def observe(self, reply: Any) -> None:
        """Take in the reply to this view; the same one counts once.

        Args:
            reply: the provider's reply (a dict or the SDK's object), the list of a stream's
                events, a raw response, or a `Usage`; see `Session.observe`.

        Raises:
            StoreError: the usage could not be kept.
        """
        self._session._run(self._session._observe(self._sent, reply))

    def recall(self, call: Any) -> dict[str, Any]:
        """Answer a tool call of the reply that `owns` said is ours.

        Args:
            call: the tool call as it is in the reply, a dict or the SDK's object.

        Returns:
            The result in the format of the request, ready to append; see `Session.recall`.

        Raises:
            FormatError: this is not a tool call of the format.
            StoreError: the store failed.
        """
        return self._session._run(self._session._recall(call, self._sent))

    def preview(
        self, verb: Verb, target: Any = None, **options: Any
    ) -> Preview:
        """Work out what a decision about this view would change and cost. Nothing is kept.

        Args:
            verb: ``"pin"``, ``"drop"``, ``"restore"``, ``"undo"`` or ``"note"``.
            target: as for the method of `Session` of that name; of a note its text.
            options: the other arguments of that method.

        Raises:
            OverLimitError: no view would fit with the decision.
            RefNotFound, ConfigError: see `Session.pin`.
        """
        session = self._session
        return session._run(
            session._preview_decision(
                verb, target, None, self._sent, **options
            )
        )


class AsyncView(_Handle):
    """A request that fits, as `AsyncSession.fit` gives it; `observe` and `recall` are awaited."""

    __slots__ = ()
    _session: AsyncSession

    async def observe(self, reply: Any) -> None:
        """Take in the reply to this view; see `View.observe`."""
        await self._session._run(self._session._observe(self._sent, reply))

    async def recall(self, call: Any) -> dict[str, Any]:
        """Answer a tool call of the reply that `owns` said is ours; see `View.recall`."""
        return await self._session._run_recall(
            self._session._recall(call, self._sent)
        )

    async def preview(
        self, verb: Verb, target: Any = None, **options: Any
    ) -> Preview:
        """Work out what a decision about this view would change and cost; see `View.preview`."""
        session = self._session
        return await session._run_heavy(
            session._preview_decision(
                verb, target, None, self._sent, **options
            )
        )
