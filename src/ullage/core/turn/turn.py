"""One turn: from a provider's request to a request that fits.

    request ──read──▶ history ──look up, resolve──▶ policy ──engine──▶ window ──render──▶ view
                                  │                            │
                            Find: the ledger             Commit: what was set aside,
                                                         and the edits

A turn is a generator of effects; `ullage.session.drivers` runs it. What lasts between turns is
one frozen `State`; the `SessionCache` beside it only saves time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.errors import OverLimitError, StoreError, StoreFull
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.hand import UserDecisions
from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn import names
from ullage.core.turn.active_policy import PolicyResolution
from ullage.core.turn.again import outline_in
from ullage.core.turn.batches import Walk
from ullage.core.turn.beginning import PreparedWindow, prepare_window
from ullage.core.turn.caches import HistoryCache, SessionCache
from ullage.core.turn.changes import remember
from ullage.core.turn.engine import fit
from ullage.core.turn.hand import hand_in
from ullage.core.turn.held_elsewhere import continuation_of
from ullage.core.turn.incoming import repair_and_cache
from ullage.core.turn.joining import Joining, Offer, event_of_joining
from ullage.core.turn.ledger_lookup import look_up
from ullage.core.turn.recall_offer import offer_of
from ullage.core.turn.rendering import render
from ullage.core.turn.request import Request, read
from ullage.core.turn.resolution import join, resolve_policy
from ullage.core.turn.seen import with_request
from ullage.core.turn.settings import Settings
from ullage.core.turn.standing import standing_of
from ullage.core.turn.state import State, TurnResult, wire_of
from ullage.core.turn.tool_limits import with_tool_limits
from ullage.core.values.effects import Commit, Output, Record, Steps
from ullage.core.values.events import Event


def turn(
    body: Mapping[str, Any],
    state: State,
    cache: SessionCache,
    settings: Settings,
    added_tokens: int = 0,
    *,
    now: bool = False,
) -> Steps[TurnResult]:
    """Make a request fit.

    Args:
        body: a request of one of the formats, with the whole history. Never changed.
        state: what the last turn left.
        cache: what is remembered for speed; worked on in place, and void after an exception.
        settings: how the session is to behave.
        added_tokens: room to leave for what will be added to the view.
        now: compact, whatever the pressure.

    Raises:
        FormatError: the request is not what its format says it is.
        OverLimitError: it cannot be made to fit.
        StoreError: what is set aside could not be kept, though the store is not full (`_uncut`).
    """
    wire = wire_of(state, settings)
    request = read(
        body, settings.model, wire, settings.formats, cache.envelopes
    )
    settings, previous, passed_on = yield from continuation_of(
        request, settings, state
    )
    request = with_tool_limits(request, settings)
    request, history, repaired = repair_and_cache(request, cache, settings)
    state = replace(state, format=request.wire.name)
    job = _Job(request, history, cache, settings, previous, added_tokens, now)
    ledger = state.ledger
    while True:
        ledger = yield from look_up(history, ledger)
        decision = yield from _decide(job, ledger)
        try:
            stored = yield from _store(job, decision, ledger, repaired.outputs)
        except StoreFull as error:
            return (yield from _show_uncut(job, decision, state, error))
        if not stored.lost:
            break
        # another worker decided at one of these places first: what it decided holds
        ledger = ledger.with_records(stored.lost)
        history.invalidate()
    standing = standing_of(
        decision.resolution, request, settings, decision.joining
    )
    # every conversation goes on from an empty one, and none may take over what decided there
    if not _is_at_root(history.transcript):
        cache.remember(history, decision.walk.records)
        policy = decision.resolution.active.record
        state = replace(state, policy_record=policy, ledger=stored.ledger)
    return replace(
        _result(job, decision, decision.prepared.builder, state),
        events=(
            *repaired.events,
            *_events(decision),
            *passed_on,
        ),
        standing=standing,
    )


class _Job(NamedTuple):
    """What a turn works on: see `turn`.

    Attributes:
        previous: the policy that was in force in the session's last turn, or None.
    """

    request: Request
    history: HistoryCache
    cache: SessionCache
    settings: Settings
    previous: PolicyRecord | None
    added_tokens: int
    now: bool


class _Decision(NamedTuple):
    """What is decided of a request.

    Attributes:
        resolution: the policy in force.
        prepared: the window, and what is added to the request.
        walk: what the stages decided.
        joining: what was weighed of a conversation that was met under way; None of others.
        is_met_now: it is met by this request.
    """

    resolution: PolicyResolution
    prepared: PreparedWindow
    walk: Walk
    joining: Joining | None
    is_met_now: bool

    @property
    def window(self) -> Window:
        """The window that shows all of it."""
        return self.prepared.builder.window


class _Stored(NamedTuple):
    """What came of a commit.

    Attributes:
        ledger: with what was kept.
        lost: the records of others that stand in the place of ours.
    """

    ledger: Ledger
    lost: tuple[Record, ...]


# ── what is decided ──────────────────────────────────────────────────────────────────────


def _decide(job: _Job, ledger: Ledger) -> Steps[_Decision]:
    """Resolve the policy and walk to the end; join the conversation if that is due."""
    history = job.history
    request = job.request
    settings = job.settings
    resolution = resolve_policy(
        history, ledger, request, settings, job.previous
    )
    offer = offer_of(resolution, request, settings)
    is_met_now = resolution.active.record.joined and bool(resolution.records)
    resolution = with_request(resolution, history, request, settings)
    hand = hand_in(history.transcript, resolution.ledger, request)
    undone = hand.undone if hand.decisions else None
    if undone != history.undone:
        # it was walked as if other batches had come back
        history.builder = None
        history.undone = undone
    prepared = _prepare(job, resolution)
    walk = yield from _walk(job, prepared, resolution, hand, offer)
    joining = walk.joining
    if joining is not None and joining.is_due:
        resolution = join(history, ledger, request, settings, resolution)
        resolution = with_request(resolution, history, request, settings)
        prepared = _prepare(job, resolution)._replace(events=prepared.events)
        walk = yield from _walk(job, prepared, resolution, hand)
    return _Decision(resolution, prepared, walk, joining, is_met_now)


def _prepare(job: _Job, resolution: PolicyResolution) -> PreparedWindow:
    """The window of the history, prepared for this request."""
    return prepare_window(
        job.history,
        resolution.active.record,
        job.request,
        job.settings,
        job.cache,
        job.added_tokens,
    )


def _walk(
    job: _Job,
    prepared: PreparedWindow,
    resolution: PolicyResolution,
    hand: UserDecisions,
    offer: Offer | None = None,
) -> Steps[Walk]:
    """Walk a window to the end of its history."""
    settings = job.settings
    walk = yield from fit(
        prepared.builder,
        resolution,
        settings.policy,
        settings.safeguards,
        asking=settings.asking,
        now=job.now,
        text_limit=prepared.lesson.text_limit,
        offer=offer,
        hand=hand,
    )
    return walk


# ── what is kept before the view comes back ──────────────────────────────────────────────


def _store(
    job: _Job, decision: _Decision, ledger: Ledger, set_aside: Sequence[Output]
) -> Steps[_Stored]:
    """Keep what was decided and what leaves the view, in one transaction.

    Args:
        job: the turn.
        decision: what it decided.
        ledger: as it was looked up.
        set_aside: what a repair took out of the request.

    Raises:
        StoreError: it could not be kept.
    """
    walk = decision.walk
    outputs = (*set_aside, *walk.outputs.values())
    is_decided = bool(walk.records)
    transcript = job.history.transcript
    if _is_at_root(transcript):
        # a record under the root would hold in every conversation
        lost = yield from _commit(outputs, (), ledger)
        return _Stored(ledger, lost)
    updated, notes = remember(transcript, walk.ledger, is_decided=is_decided)
    if not outputs and not is_decided:
        try:
            lost = yield from _commit((), notes, ledger)
        except StoreError:
            # nothing hangs on the notes: they are kept another time
            return _Stored(walk.ledger, ())
        return _Stored(updated, lost)
    updated, outline = outline_in(
        decision.window, updated, job.request, job.settings
    )
    records = (*walk.records, *notes, *outline)
    lost = yield from _commit(outputs, records, ledger)
    return _Stored(updated, lost)


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
        unreadable = {record.place for record in lost}
        rest = tuple(
            record for record in records if record.place not in unreadable
        )
        lost = yield Commit(outputs, rest)
    return lost


def _show_uncut(
    job: _Job, decision: _Decision, state: State, error: StoreFull
) -> Steps[TurnResult]:
    """What a turn gives where its cuts cannot be kept.

    A new cache knows nothing of this history: once there is room again, all is decided anew.
    """
    builder, event = yield from _uncut(job, decision, error)
    unstored = job.cache.repair_outputs
    return replace(
        _result(job, decision, builder, state),
        events=(event,),
        cache=SessionCache(unstored=unstored),
    )


def _uncut(
    job: _Job, decision: _Decision, error: StoreFull
) -> Steps[tuple[WindowBuilder, Event]]:
    """The window without any cut that is not kept: what was decided before stays as it was shown.

    Where that does not fit it is cut all the same, and the history alone opens its notices, as it
    does those of what was repaired.
    """
    history = job.history
    cut = decision.window
    plain = WindowBuilder(history.transcript, history.meter, cut.words)
    plain.limit(
        cut.limit_tokens, cut.context_tokens, cut.head_tokens, cut.head_texts
    )
    plain.reason(cut.reasoning, thinks_first=cut.thinks_first)
    builder = plain
    outcome = "what is new is shown whole"
    try:
        yield from fit(
            plain,
            decision.resolution,
            Policy(name="uncut"),
            job.settings.safeguards,
            hand=replace(decision.walk.hand, due=()),
        )
    except OverLimitError:
        builder = decision.prepared.builder
        outcome = "it does not fit whole: only this history holds what is cut out of it"
    reason = f"{error}; {outcome}"
    return builder, Event(
        kind="unkept", where="what would be set aside", why=reason
    )


# ── what comes back ──────────────────────────────────────────────────────────────────────


def _result(
    job: _Job, decision: _Decision, builder: WindowBuilder, state: State
) -> TurnResult:
    """What a turn gives, once its window shows all that was decided; it tells of nothing yet."""
    request = job.request
    history = job.history
    prepared = decision.prepared
    raw = history.freeze(request.wire, job.cache.envelopes.last)
    frozen = builder.freeze()
    allowed: tuple[str, ...] = ()
    if prepared.offers and job.settings.recall != "host":
        allowed = names.to_allow(request, decision.window.words)
    return TurnResult(
        request=render(
            request, history, builder.window, prepared.tools, allowed
        ),
        state=state,
        events=(),
        window=builder.window,
        frozen=frozen,
        raw=raw,
        wire=request.wire,
        offers=prepared.offers,
        cache=job.cache,
        lesson=prepared.lesson,
        limits=prepared.limits,
        is_thread=request.is_thread,
    )


def _events(decision: _Decision) -> Iterator[Event]:
    """What is told of what was decided, in order."""
    yield from decision.resolution.events
    yield from _met(decision)
    yield from decision.prepared.events
    yield from decision.walk.events


def _met(decision: _Decision) -> Iterator[Event]:
    """What is told of a conversation that was met under way."""
    joining = decision.joining
    window = decision.window
    if joining is None:
        return
    tokens_after = window.estimate if joining.is_due else joining.tokens
    event = event_of_joining(
        joining,
        window.size,
        is_met_now=decision.is_met_now,
        tokens_after=tokens_after,
    )
    if event is not None:
        yield event


def _is_at_root(transcript: Transcript) -> bool:
    """Whether nothing is said yet: every conversation of its format and tenant begins here."""
    return transcript.chain[-1] == transcript.chain[0]
