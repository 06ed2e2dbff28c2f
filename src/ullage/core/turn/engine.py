"""The engine: from a history and a ledger to a window that fits.

A history is a row of boundaries, the places where a request was or is now to be sent. The
window walks over them in order; at each one

    1. what the provider reported for the request before is learned (`_learn`);
    2. the messages that are new there are taken in;
    3. stages on arrival cut what is too large: pure, so never recorded (`arrival`);
    4. batches that the ledger holds for this place are shown again (`Walk.show_again`);
    5. unless it is decided already, stages under pressure decide, and behind them the guard;
       what they decide becomes a batch of the ledger (`_decide`).

At the end of the walk reasoning that an earlier batch left behind goes, if now it has to
(`_drop_stale`), and a view that is still over its limit is refused (`_check_limit`).

A place is decided when the ledger holds something for it or for a later place on the same
chain: then that decision holds. So a warm session, a cold start and another process arrive
at the same window.

Nothing here does I/O. What must be kept before the view may be returned is collected in
`Walk`, and `ullage.core.turn` asks a driver to commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from ullage.core.contract.bound import HELD, editable_from, is_frozen, left_out
from ullage.core.contract.policy import (
    Policy,
    Safeguards,
    Stage,
    name_of,
    unrecalled,
)
from ullage.core.errors import OverLimitError
from ullage.core.history.builder import PAST, WindowBuilder
from ullage.core.history.hand import EMPTY, UserDecisions
from ullage.core.history.ledger import Ledger, latest_record
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.turn.active_policy import ActivePolicy, PolicyResolution
from ullage.core.turn.arrival import apply_on_arrival
from ullage.core.turn.batches import (
    Walk,
    cuts_of,
    edited_from,
    removed_tokens,
    without_young,
)
from ullage.core.turn.changes import arrived
from ullage.core.turn.filling import Asking, fill, refusal
from ullage.core.turn.hand import (
    carry_out,
    carry_out_with_batch,
    overrule,
)
from ullage.core.turn.joining import Offer, note_excess, weigh
from ullage.core.turn.returned import not_returned
from ullage.core.values.edits import (
    Edit,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Skipped,
)
from ullage.core.values.effects import Summarise
from ullage.core.values.events import Event
from ullage.core.values.limits import TextLimit

T = TypeVar("T")
_MOST_ROUNDS = 4
"""So often the guard is asked at one place."""
_Asks: TypeAlias = Generator[Summarise, Any, T]


def fit(
    builder: WindowBuilder,
    resolution: PolicyResolution,
    policy: Policy,
    safeguards: Safeguards,
    *,
    asking: Asking | None = None,
    now: bool = False,
    text_limit: TextLimit | None = None,
    offer: Offer | None = None,
    hand: UserDecisions = EMPTY,
) -> _Asks[Walk]:
    """Walk the window to the end of its transcript; asks for summaries on the way, if at all.

    A model is asked at the end alone: what it says of an earlier place is in the ledger, or
    was never said. Where the conversation is to be joined, the walk ends before anything is
    decided at its end (`Walk.joining`), and is void.

    Args:
        builder: its window stands where the last run left it, or is new. It is moved forward.
        resolution: everything decided and observed so far, and the policy in force.
        policy: the stages.
        safeguards: what runs behind them.
        asking: who is asked for summaries, or None for nobody.
        now: run the policy's compaction at the end, whatever the pressure.
        text_limit: the most that the provider takes of one text; None: not known.
        offer: what the request says about joining a conversation that waits; None: it does not.
        hand: what users decided of the history.

    Raises:
        OverLimitError: the untouchable parts alone are over the limit.
    """
    window = builder.window
    ledger = resolution.ledger
    active = resolution.active
    transcript = window.transcript
    records = list(resolution.records)
    walk = Walk(builder, policy, safeguards, ledger, records, hand=hand)
    builder.pin(hand.pins)
    builder.arrive(arrived(transcript, ledger))
    settled = _settled(window, ledger)
    builder.replace_later(_replaced(window, ledger, settled, hand))
    boundaries = transcript.boundaries(window.size) or [len(transcript)]
    without_recall = _without_recall(policy, active)
    for length in boundaries:
        if settled <= window.size < length and length in boundaries[-PAST:]:
            builder.keep_past()
        _learn(builder, ledger)
        keys = transcript.decision_keys(window.size, length)
        builder.extend(length)
        place = transcript.find(keys[-1]) or 0
        is_recalled = _is_recalled(resolution, place, keys)
        walk.policy = policy if is_recalled else without_recall(place)
        is_end = length == len(transcript)
        decides = length > settled
        apply_on_arrival(walk, active, keys, decides=decides)
        if active.waits:
            note_excess(walk, policy)
        if is_end and _is_to_join(walk, policy, offer):
            return walk
        if decides:
            stages = _due(walk, active, now=now and is_end)
            yield from _decide(walk, stages, keys[-1], asking, is_end=is_end)
        if decides and is_end and text_limit is not None:
            cuts = safeguards.overlong(window, text_limit)
            _batch(walk, "text limit", keys[-1], cuts, is_guard=True)
    _finish(walk)
    return walk


def _finish(walk: Walk) -> None:
    """End a walk: refuse a view that does not fit, and mark what was decided as the latest."""
    window = walk.window
    if walk.diagnostic is not None:
        walk.events.append(walk.diagnostic)
    _drop_stale(walk)
    if not window.within(window.limit_tokens, surely=True):
        _check_limit(window, has_guard=walk.policy.guard is not None)
    if walk.records:
        walk.records.append(
            latest_record(window.transcript.chain, walk.records)
        )


def _is_to_join(walk: Walk, policy: Policy, offer: Offer | None) -> bool:
    """Whether the conversation is joined here; what was weighed is kept in the walk."""
    if offer is None:
        return False
    walk.joining = weigh(walk, policy, offer)
    return walk.joining.is_due


def _is_recalled(
    resolution: PolicyResolution, place: int, keys: Sequence[bytes]
) -> bool:
    """Whether the model can open at a place what leaves its view."""
    if not resolution.active.offers_recall(place):
        return False
    entries = [resolution.ledger.at(key) for key in keys]
    return not any(entry.is_unrecalled for entry in entries)


def _without_recall(
    policy: Policy, active: ActivePolicy
) -> Callable[[int], Policy]:
    """The policy at each place where no recall tools are offered."""
    plain = unrecalled(policy)
    before_cuts = replace(plain, on_arrival=())
    from_cuts = replace(plain, on_arrival=policy.on_arrival)

    def policy_at(place: int) -> Policy:
        if active.cuts_from < 0:
            return plain
        if place < active.cuts_from:
            return before_cuts
        return from_cuts

    return policy_at


def _due(walk: Walk, active: ActivePolicy, *, now: bool) -> Iterator[Stage]:
    """The stages that are asked under pressure; with ``now`` the policy's compaction first."""
    compaction = walk.policy.on_request
    if now and compaction is not None:
        yield compaction
    if not active.superseded:
        yield from walk.policy.under_pressure


def _drop_stale(walk: Walk) -> None:
    """Leave out the reasoning that stayed behind edits which another model had allowed.

    Where reasoning is free, none goes with a batch. If the next request is for a model to which
    it is bound, what was thought before the batch, about what it edited, may not be shown (A15).
    """
    window = walk.window
    stale = walk.builder.stale
    if not stale or window.reasoning == "free" or is_frozen(window):
        return
    starts: list[int] = []
    for edited, stop in stale:
        if window.bound_reasoning(edited + 1, stop):
            starts.append(edited)
    stale.clear()
    if starts:
        key = window.transcript.decision_key(window.size)
        walk.keep("reasoning", key, left_out(window, min(starts), ()))


def _learn(builder: WindowBuilder, ledger: Ledger) -> None:
    """Take in what was reported for the request of the boundary the window stands at.

    Where nothing was answered since (the same request again, or one message more), what was
    reported last holds on: a second call decides as the first did.

    No report calibrates by which what we do not see is over the limit by itself: nothing would
    ever fit again, and so no better report could come (usage summed over a turn, F64).
    """
    window = builder.window
    size = window.size
    transcript = window.transcript
    if not 0 < size < len(transcript) or not transcript.starts_turn(size):
        return
    entry = ledger.at(transcript.decision_key(size))
    report = entry.observed.get(window.meter.model)
    calibration = window.calibration
    if report is None:
        builder.report(None, None, calibration)
        return
    reported = report.reported_tokens
    estimated = report.estimated_tokens
    if reported - estimated < window.limit_tokens:
        calibration = calibration.observe(reported, estimated)
    builder.report(reported, reported + report.output_tokens, calibration)


def _settled(window: Window, ledger: Ledger) -> int:
    """The furthest earlier boundary at or beyond which the ledger holds a decision.

    A decision short of a boundary, or at the end of the history by an earlier call, settles
    what is before it; the end itself is always decided anew.
    """
    transcript = window.transcript
    settled = 0
    start = window.size
    for length in transcript.boundaries(start):
        keys = transcript.decision_keys(start, length)
        decided = [_is_decided(ledger, key) for key in keys]
        if decided[-1] and length < len(transcript):
            settled = length
        elif any(decided):
            settled = start
        start = length
    return settled


def _is_decided(ledger: Ledger, key: bytes) -> bool:
    """Whether the ledger holds a decision at a place, or a report of a reply to it."""
    entry = ledger.at(key)
    return bool(entry.batches or entry.observed or entry.decisions)


def _replaced(
    window: Window, ledger: Ledger, settled: int, hand: UserDecisions
) -> set[Location]:
    """The leaves that the batches of settled places replace: what is decided next sees no other.

    So they need not be cut on arrival, nor counted. Where users decided, what a batch took out
    may come back as it was before.
    """
    if hand.decisions:
        return set()
    transcript = window.transcript
    replaced = set[Location]()
    hidden = _Hidden(window)
    for length, edit in _settled_edits(window, ledger, settled):
        if isinstance(edit, ReplaceSpan):
            for index in hidden.by(edit, length):
                replaced.update(transcript.results(index))
        elif isinstance(edit, Replace):
            location = window.location_for(edit, length)
            if location is not None:
                replaced.add(location)
    return replaced


def _settled_edits(
    window: Window, ledger: Ledger, settled: int
) -> Iterator[tuple[int, Edit]]:
    """Each edit of the settled places ahead, behind the length of its boundary's history."""
    transcript = window.transcript
    start = window.size
    if settled <= start:
        return
    for length in transcript.boundaries(start):
        if length > settled:
            return
        for key in transcript.decision_keys(start, length):
            for batch in ledger.at(key).batches:
                for edit in batch.edits:
                    yield length, edit
        start = length


class _Hidden:
    """The messages that summaries hide, each told once: a later one goes on from an earlier one.

    Args:
        window: the window that is to show them.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._reached: dict[int, int] = {}
        self._visible: set[int] = set()

    def by(self, edit: ReplaceSpan, length: int) -> list[int]:
        """What a summary within a length hides and none that begins at the same message did."""
        transcript = self._window.transcript
        start = transcript.find(edit.after)
        stop = transcript.find(edit.upto)
        if start is None or stop is None or not start < stop <= length:
            return []
        keeps = self._window.kept_by(edit)
        reached = self._reached.get(start, start)
        messages = set(range(reached, stop))
        # what an earlier one left in the view may be hidden now
        for index in self._visible:
            if start <= index < min(reached, stop):
                messages.add(index)
        self._visible -= messages
        self._visible |= messages & keeps
        self._reached[start] = max(reached, stop)
        return sorted(messages - keeps)


def _decide(
    walk: Walk,
    stages: Iterable[Stage],
    key: bytes,
    asking: Asking | None,
    *,
    is_end: bool,
) -> _Asks[None]:
    """Decide at a place; at the end of the history users come first, and models are asked."""
    window = walk.window
    policy = walk.policy
    if is_end and walk.hand.decisions:
        carry_out(walk, walk.hand, key)
    walk.builder.removed(removed_tokens(walk))
    records_before = len(walk.records)
    asking = asking if is_end else None
    for stage in stages:
        cuts = _allowed(walk, stage)
        if cuts and policy.diagnostic is not None:
            walk.cut_count += len(cuts)
            walk.diagnostic = _diagnosed(
                policy.diagnostic, window, walk.cut_count
            )
        cuts = yield from _filled(walk, cuts, asking)
        _batch(walk, name_of(stage), key, cuts)
    if is_end and walk.hand.due:
        has_batch = len(walk.records) > records_before
        if has_batch or _guard_wants(walk):
            carry_out_with_batch(walk, walk.hand, key)
    if policy.guard is not None:
        _batch(
            walk, "media", key, walk.safeguards.media(window), is_guard=True
        )
        _guard(walk, policy.guard, key)
    if is_end and walk.hand.decisions:
        walk.events += not_returned(walk)


def _guard_wants(walk: Walk) -> bool:
    """Whether the guard is about to make a batch."""
    guard = walk.policy.guard
    return guard is not None and bool(cuts_of(guard, walk.window))


def _guard(walk: Walk, guard: Stage, key: bytes) -> None:
    """Make the view fit; where it cannot, with what otherwise has to stay."""
    window = walk.window
    _ask_guard(walk, guard, key)
    if window.within(window.limit_tokens, surely=True):
        return
    if window.staying(0, window.size) or window.added:
        overrule(walk, key, lambda: _ask_guard(walk, guard, key))


def _ask_guard(walk: Walk, guard: Stage, key: bytes) -> None:
    """Ask the guard until it wants nothing more, so that the same request again is shown the same.

    Once is enough but where it works around what users pinned.
    """
    rounds = _MOST_ROUNDS if walk.hand.decisions else 1
    for _ in range(rounds):
        records_before = len(walk.records)
        cuts = cuts_of(guard, walk.window)
        _batch(walk, name_of(guard), key, cuts, is_guard=True)
        if len(walk.records) == records_before:
            return


def _allowed(walk: Walk, stage: Stage) -> Sequence[ProposedEdit]:
    """The cuts a stage wants, if now they can be made; else it is told why not."""
    window = walk.window
    subject = f"stage {name_of(stage)}"
    cuts = stage(window)
    if isinstance(cuts, Skipped):
        walk.events.append(Event(kind="held", where=subject, why=cuts.why))
        return ()
    editable = editable_from(window)
    allowed = [
        cut for cut in cuts if edited_from(window, [cut.edit]) >= editable
    ]
    if cuts and not allowed:
        walk.events.append(Event(kind="held", where=subject, why=HELD))
    unbarred = [cut for cut in allowed if not _is_barred(window, cut)]
    return without_young(window, unbarred)


def _is_barred(window: Window, cut: ProposedEdit) -> bool:
    """Whether a leaf is pinned, or holds the account of hidden messages."""
    if not isinstance(cut.edit, Replace):
        return False
    location = window.transcript.locate(cut.edit.address)
    if location is None:
        return False
    return window.holds_account(location) or window.is_pinned(location)


def _filled(
    walk: Walk, cuts: Sequence[ProposedEdit], asking: Asking | None
) -> _Asks[Sequence[ProposedEdit]]:
    """The cuts with what a model has to add to them, if there is one to ask."""
    filled = []
    for cut in cuts:
        full, refused = yield from fill(cut, asking, walk.window.meter.text)
        filled.append(full)
        if refused:
            walk.events.append(refusal(refused))
    return filled


def _batch(
    walk: Walk,
    stage: str,
    key: bytes,
    cuts: Sequence[ProposedEdit],
    *,
    is_guard: bool = False,
) -> None:
    """Make one batch of cuts, and of the reasoning they make invalid."""
    window = walk.window
    cuts = walk.check(stage, cuts, is_guard=is_guard)
    if not cuts:
        return
    walk.events += walk.safeguards.stalled(window, cuts)
    start = edited_from(window, [cut.edit for cut in cuts])
    reasoning = left_out(window, start, cuts)
    walk.keep(stage, key, [*cuts, *reasoning])
    walk.builder.removed(removed_tokens(walk))


def _diagnosed(diagnostic: str, window: Window, count: int) -> Event:
    """One for a whole walk: a history seen for the first time has many places with cuts."""
    tokens = window.reported_tokens
    remark = ""
    if tokens is None:
        tokens = window.estimate
        remark = "; nothing was reported, this is an estimate"
    reason = diagnostic.format(count=count, reported_tokens=tokens)
    return Event(
        kind="diagnostic", where="the whole view", why=f"{reason}{remark}"
    )


def _check_limit(window: Window, *, has_guard: bool) -> None:
    """Raise OverLimitError for a view whose estimate is over its limit."""
    if window.estimate <= window.limit_tokens:
        return  # only the margin of the upper bound is over; the provider may well take it
    head = window.estimate * window.head_tokens // max(window.tokens, 1)
    parts = {
        "system text and tools": head,
        "messages that must stay": window.estimate - head,
    }
    raise OverLimitError(
        window.limit_tokens, window.estimate, parts, has_guard=has_guard
    )
