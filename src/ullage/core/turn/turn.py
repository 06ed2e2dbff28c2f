"""One turn: from a provider's request to a request that fits.

    request ──read──▶ line of history ──look up, agree──▶ terms ──engine──▶ window ──render──▶ view
                                          │                          │
                                    Find: the ledger           Commit: what was set aside,
                                                               and the edits

A turn is a generator of effects; `ullage.session.drivers` runs it. What lasts between turns is
one frozen `State`; the `Memo` beside it only saves time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.contract.format import Format
from ullage.core.contract.policy import Policy
from ullage.core.errors import OverLimitError, StoreError, StoreFull
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.frozen import FrozenWindow
from ullage.core.history.hand import Hand
from ullage.core.history.ledger import Ledger, Observed, Opened
from ullage.core.history.outline import outlined
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn import names
from ullage.core.turn.again import outline_in
from ullage.core.turn.batches import Walk
from ullage.core.turn.beginning import Begun, begin
from ullage.core.turn.changes import note_answered, remember
from ullage.core.turn.engine import fit
from ullage.core.turn.hand import hand_in
from ullage.core.turn.incoming import take_in
from ullage.core.turn.joining import Joining, Offer, told
from ullage.core.turn.learnt import Lesson
from ullage.core.turn.memo import FrozenRequest, Line, Memo
from ullage.core.turn.rendering import render
from ullage.core.turn.request import THREAD, Request, read, refusing_tools, without_room
from ullage.core.turn.seen import noted
from ullage.core.turn.standing import Standing, standing_of
from ullage.core.turn.terms import Agreed, Settings, agree, join, look_up, offer_of
from ullage.core.turn.threads import Thread, thread_of
from ullage.core.values.effects import Commit, Output, Record, Steps
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage


class State(Struct, frozen=True, kw_only=True):
    """Everything a session knows between two turns. Small, frozen, serialisable.

    Attributes:
        format: name of the wire format, pinned by the first request.
        opened: what decided in the history of the last turn.
        ledger: what was decided and observed, by place in the chain.
        usage: the sum of everything reported.
        cost_usd: what that cost at list price; None once a reply had no known price.
    """

    format: str | None = None
    opened: Opened | None = None
    ledger: Ledger = Ledger()
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


class Turned(Struct, frozen=True):
    """What a turn gives.

    Attributes:
        request: a new request that fits; untouched messages are the caller's own objects.
        state: the state after it.
        events: what happened, in order.
        window: the working window behind the request, which the next turn moves on.
        frozen: the same as it is now, for whoever reads it.
        raw: the request as it came, for whoever reads it.
        wire: the format of the request.
        offers: whether the recall tools stand in it.
        memo: what is remembered for speed, brought up to date.
        lesson: what was learnt of the provider's limits in this conversation.
        standing: why nothing is cut on arrival, or None where it is.
        is_thread: whether the next request may go on from the reply by its id alone.
        limits: those that held when it was made, before anything was learnt; None: the model's own.
    """

    request: dict[str, Any]
    state: State
    events: tuple[Event, ...]
    window: Window
    frozen: FrozenWindow
    raw: FrozenRequest
    wire: Format
    offers: bool
    memo: Memo
    lesson: Lesson
    standing: Standing | None = None
    is_thread: bool = False
    limits: Limits | None = None


def turn(
    request: Mapping[str, Any],
    state: State,
    memo: Memo,
    settings: Settings,
    added_tokens: int = 0,
    *,
    now: bool = False,
) -> Steps[Turned]:
    """Make a request fit.

    Args:
        request: a request of one of the formats, with the whole history. Never changed.
        state: what the last turn left.
        memo: what is remembered for speed; worked on in place, and void after an exception.
        settings: how the session is to behave.
        added_tokens: room to leave for what will be added to the view.
        now: compact, whatever the pressure.

    Raises:
        FormatError: the request is not what its format says it is.
        OverLimitError: it cannot be made to fit.
        StoreError: what is set aside could not be kept, though the store is not full (`_uncut`).
    """
    wire, recognise = wire_of(state, settings), settings.formats.recognise
    asked = read(request, settings.model, wire, recognise, memo.envelopes)
    settings, before, thread = yield from _where_held(asked, settings, state)
    asked = _with_what_it_takes(asked, settings)
    asked, line, fresh = take_in(asked, memo, settings)
    ledger, lost = state.ledger, tuple[Record, ...]()
    state = replace(state, format=asked.wire.name)
    while True:
        ledger = yield from look_up(line, ledger.with_records(lost) if lost else ledger)
        decided = yield from _decide(
            line,
            ledger,
            asked,
            settings,
            memo,
            before,
            added_tokens=added_tokens,
            now=now,
        )
        agreed, begun, walk = decided.agreed, decided.begun, decided.walk
        window = begun.builder.window
        allowed = _to_allow(asked, window, settings) if begun.offers else ()
        outputs = (*fresh.outputs, *walk.outputs.values())
        kept, shown = remember(
            line.transcript, walk.ledger, is_decided=bool(walk.records)
        )
        must_keep = outputs or walk.records
        kept, outline = (
            outline_in(window, kept, asked, settings) if must_keep else (kept, ())
        )
        try:
            lost = yield from _commit(
                outputs, (*walk.records, *shown, *outline), ledger
            )
        except StoreError as error:
            if not must_keep:  # nothing hangs on it: it is kept another time
                kept, lost = walk.ledger, ()
                break
            if not isinstance(error, StoreFull):
                raise
            hand = replace(walk.hand, due=())
            builder, event = yield from _uncut(
                error, line, agreed, begun.builder, settings, hand
            )
            begun = begun._replace(builder=builder)
            turned = _turned(asked, line, begun, allowed, state, memo)
            return replace(turned, events=(event,), memo=Memo(unkept=memo.aside))
        if not lost:
            break
        line.begin_again()
    memo.keep(line, walk.records)
    state = replace(state, opened=agreed.terms.opened, ledger=kept)
    events = (*fresh.events, *_events(decided, window), *_elsewhere(asked, thread))
    standing = standing_of(agreed, asked, settings, decided.joining)
    turned = _turned(asked, line, begun, allowed, state, memo)
    return replace(turned, events=events, standing=standing)


def _turned(
    asked: Request,
    line: Line,
    begun: Begun,
    allowed: Sequence[str],
    state: State,
    memo: Memo,
) -> Turned:
    """What a turn gives, once its window shows all that was decided; it tells of nothing yet."""
    builder = begun.builder
    raw, frozen = line.freeze(asked.wire, memo.envelopes.last), builder.freeze()
    return Turned(
        request=render(asked, line, builder.window, begun.tools, allowed),
        state=state,
        events=(),
        window=builder.window,
        frozen=frozen,
        raw=raw,
        wire=asked.wire,
        offers=begun.offers,
        memo=memo,
        lesson=begun.lesson,
        limits=begun.given,
        is_thread=asked.is_thread,
    )


def _to_allow(asked: Request, window: Window, settings: Settings) -> tuple[str, ...]:
    """The recall tools that the request's list of tools to be called has to name."""
    return () if settings.recall == "host" else names.to_allow(asked, window.words)


def _with_what_it_takes(asked: Request, settings: Settings) -> Request:
    """The request, with what is known of whether the recall tools may be added to it."""
    if settings.recall == "host":
        return asked
    if not settings.may_add_tools:
        return refusing_tools(asked)
    if settings.recall is True:
        return asked  # the caller wants them in any case, and its provider has the last word
    return without_room(asked, len(settings.policy.toolset.tools))


def _where_held(
    asked: Request, settings: Settings, state: State
) -> Steps[tuple[Settings, Opened | None, Thread | None]]:
    """The settings for a request, what was in force before it, and the thread that it continues.

    Where the provider holds the history, nothing can be decided of it. A thread has the tools that
    it was created with, ours among them or not; none can be added now.
    """
    if not asked.elsewhere:
        return settings, state.opened, None
    settings = _without_history(settings)
    if asked.elsewhere != THREAD:
        return settings, state.opened, None
    thread = yield from thread_of(asked.wire.name, settings.tenant, asked.before)
    if thread is None or not thread.offers(settings.policy.toolset.names):
        return replace(settings, recall=False), None, thread
    began = Opened(settings.policy.name, recall=True, prefix=thread.prefix)
    return replace(settings, recall="host"), began, thread


class _Decided(NamedTuple):
    """What is decided of a request.

    Attributes:
        agreed: on what terms.
        begun: the window, and what is added to the request.
        walk: what the stages decided.
        joining: what was weighed of a conversation that was met under way; None of others.
        is_met_now: it is met by this request.
    """

    agreed: Agreed
    begun: Begun
    walk: Walk
    joining: Joining | None
    is_met_now: bool


def _decide(
    line: Line,
    ledger: Ledger,
    asked: Request,
    settings: Settings,
    memo: Memo,
    before: Opened | None,
    *,
    added_tokens: int,
    now: bool,
) -> Steps[_Decided]:
    """Agree on the terms of a request and walk to its end; join its conversation if that is due."""
    agreed = agree(line, ledger, asked, settings, before)
    offer = offer_of(agreed, asked, settings)
    is_met_now = agreed.terms.opened.joined and bool(agreed.records)
    agreed = noted(agreed, line, asked, settings)
    hand = hand_in(line.transcript, agreed.ledger, asked)
    undone = hand.undone if hand.decisions else None
    if (
        undone != line.undone
    ):  # it was walked as if nothing came back, or something else did
        line.builder, line.undone = None, undone
    begun = begin(line, agreed.terms.opened, asked, settings, memo, added_tokens)
    walk = yield from _walk(begun, agreed, settings, hand, now=now, offer=offer)
    joining = walk.joining
    if joining is not None and joining.is_due:
        agreed = noted(
            join(line, ledger, asked, settings, agreed), line, asked, settings
        )
        again = begin(line, agreed.terms.opened, asked, settings, memo, added_tokens)
        begun = again._replace(events=begun.events)
        walk = yield from _walk(begun, agreed, settings, hand, now=now)
    return _Decided(agreed, begun, walk, joining, is_met_now)


def _walk(
    begun: Begun,
    agreed: Agreed,
    settings: Settings,
    hand: Hand,
    *,
    now: bool,
    offer: Offer | None = None,
) -> Steps[Walk]:
    """Walk a window to the end of its history."""
    walk = yield from fit(
        begun.builder,
        agreed,
        settings.policy,
        settings.safeguards,
        asking=settings.asking,
        now=now,
        text_limit=begun.lesson.text_limit,
        offer=offer,
        hand=hand,
    )
    return walk


def _events(decided: _Decided, window: Window) -> Iterator[Event]:
    """What is told of what was decided, in order."""
    yield from decided.agreed.events
    yield from _met(decided, window)
    yield from decided.begun.events
    yield from decided.walk.events


def _met(decided: _Decided, window: Window) -> Iterator[Event]:
    """What is told of a conversation that was met under way."""
    joining, is_met_now = decided.joining, decided.is_met_now
    if joining is None:
        return
    after = window.estimate if joining.is_due else joining.tokens
    event = told(joining, window.size, is_met_now=is_met_now, tokens_after=after)
    if event is not None:
        yield event


def _without_history(settings: Settings) -> Settings:
    """For a request whose history is not here: nothing can be repaired, or decided of it."""
    policy = replace(settings.policy, under_pressure=(), guard=None)
    return replace(settings, policy=policy, repair=False)


def _uncut(
    full: StoreFull,
    line: Line,
    agreed: Agreed,
    decided: WindowBuilder,
    settings: Settings,
    hand: Hand,
) -> Steps[tuple[WindowBuilder, Event]]:
    """The window without any cut that is not kept: what was decided before stays as it was shown.

    Where that does not fit it is cut all the same, and the history alone opens its notices, as it
    does those of what was repaired. A new memo knows nothing of this history: once there is room
    again, all is decided anew.
    """
    old = decided.window
    plain = WindowBuilder(line.transcript, line.meter, old.words)
    plain.limit(old.limit_tokens, old.context_tokens, old.head_tokens, old.head_texts)
    plain.reason(old.reasoning, thinks_first=old.thinks_first)
    builder, what = plain, "what is new is shown whole"
    try:
        yield from fit(
            plain, agreed, Policy(name="uncut"), settings.safeguards, hand=hand
        )
    except OverLimitError:
        builder = decided
        what = "it does not fit whole: only this history holds what is cut out of it"
    return builder, Event(
        kind="unkept", where="what would be set aside", why=f"{full}; {what}"
    )


def _elsewhere(asked: Request, thread: Thread | None) -> Iterator[Event]:
    """What is said of a request whose history the provider holds."""
    if asked.elsewhere:
        size = (
            f", {thread.tokens:,} tokens by its count"
            if thread and thread.tokens
            else ""
        )
        why = (
            f"what comes before is held by the provider{size}: what stands in this request was cut "
            "at first sight; batches, the guard and an exact count need the whole history"
        )
        yield Event(kind="passed_on", where=asked.elsewhere, why=why)


def wire_of(state: State, settings: Settings) -> Format | None:
    """The format that a conversation has, or is to have; None while that is open.

    Raises:
        ConfigError: the conversation is in a format that was not given and is not known.
    """
    given = settings.format
    if state.format is None or (given is not None and given.name == state.format):
        return given
    return settings.formats.named(state.format)


def _commit(
    outputs: tuple[Output, ...], records: Sequence[Record], ledger: Ledger
) -> Steps[tuple[Record, ...]]:
    """Keep what was set aside and decided; returns the records that stand in our place.

    One that cannot be read (a newer version wrote it) decides nothing here: what we decided is
    shown all the same, and its record is left out. Else it would be decided again for ever.
    """
    if not outputs and not records:
        return ()
    lost: tuple[Record, ...] = yield Commit(outputs, tuple(records))
    if lost and not ledger.merged(lost)[1]:
        theirs = {record.place for record in lost}
        ours = tuple(record for record in records if record.place not in theirs)
        lost = yield Commit(outputs, ours)
    return lost


def observe(
    usage: Usage,
    cost_usd: float | None,
    state: State,
    transcript: Transcript,
    size: int,
    *,
    model: str,
    estimated_tokens: int,
    outlining: tuple[Window, str] | None = None,
) -> Steps[State]:
    """Take in what a provider reported for a view. Records only, decides nothing.

    Args:
        usage: what it reported.
        cost_usd: what that cost at list price; None if a price is not known.
        state: of the conversation.
        transcript: the history behind the view, which may have gone on since.
        size: how many messages the view was made of.
        model: the model it was made for.
        estimated_tokens: what it was reckoned to hold.
        outlining: the window behind the view and its format, where an outline is kept.
    """
    spent = (
        None
        if cost_usd is None or state.cost_usd is None
        else state.cost_usd + cost_usd
    )
    state = replace(state, usage=state.usage + usage, cost_usd=spent)
    if usage.sent_tokens <= 0:
        return state  # a stream without usage says nothing about the context (F63)
    observed = Observed(usage.sent_tokens, estimated_tokens, usage.output_tokens, model)
    key = transcript.decision_key(size)
    ledger, record = state.ledger.with_observed(key, observed)
    ledger, shown = note_answered(transcript, size, ledger)
    if outlining is not None:
        window, wire = outlining
        tokens = usage.sent_tokens
        ledger, outline = outlined(window, size, ledger, wire=wire, tokens=tokens)
        shown = (*shown, *outline)
    yield Commit((), (record, *shown))
    return replace(state, ledger=ledger)
