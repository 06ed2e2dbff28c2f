"""The engine: from a history and a ledger to a window that fits.

Theory of operation. A history is a row of boundaries, the places where a request was or is
now to be sent. The window walks over them in order; at each one

    1. it takes in the messages that are new there;
    2. stages at first sight cut what is too large (pure, so never recorded);
    3. batches that the ledger holds for this place are shown again;
    4. if the place is not settled, stages under pressure decide, then the guard; what they
       decide becomes a batch of the ledger.

A place is settled when the ledger holds something for it or for a later place on the same
chain: then it was decided once, and that decision stands. So a warm session, a cold start
and another process arrive at the same window (DESIGN §1, "precisely").

Nothing here does I/O. What must be kept before the view may be returned is collected in
`Fitted`, and `ullage.turn` asks a driver to commit it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from ullage.errors import OverLimitError
from ullage.history.builder import WindowBuilder
from ullage.history.ledger import Ledger
from ullage.history.window import Window
from ullage.stages.bound import left_out
from ullage.stages.policy import Policy, Stage
from ullage.stages.pressure import is_frozen
from ullage.stages.stall import stall
from ullage.turn.filling import Asking, fill, for_history, refusal
from ullage.values.edits import Batch, Cut, Drop, Edit, Replace, Skipped, Summary, storable
from ullage.values.effects import Output, Prepared, Record, Summarise
from ullage.values.events import Event, Kind

__all__ = ["Fitted", "fit"]

T = TypeVar("T")
_Asks: TypeAlias = Generator[Summarise | Prepared, Any, T]


class Fitted(Struct):
    """What one run of the engine decided.

    Attributes:
        ledger: the ledger with the new batches.
        outputs: what was set aside and must be kept, by ref.
        records: the ledger rows that must be kept.
        events: what happened, in order.
    """

    ledger: Ledger
    outputs: dict[str, Output]
    records: list[Record]
    events: list[Event]


def fit(
    builder: WindowBuilder,
    ledger: Ledger,
    policy: Policy,
    *,
    joined: bool = False,
    asking: Asking | None = None,
    now: bool = False,
) -> _Asks[Fitted]:
    """Walk the window to the end of its transcript; asks for summaries on the way, if at all.

    A model is asked at the end alone: what it says of an earlier place is in the ledger, or
    was never said.

    Args:
        builder: its window stands where the last run left it, or is new. It is moved forward.
        ledger: everything decided and observed so far.
        policy: the stages.
        joined: the history was under way before ullage first saw it, so that what is cut at
            first sight now may have been sent whole before.
        asking: who is asked for summaries, or None for nobody.
        now: run the policy's compaction at the end, whatever the pressure.

    Raises:
        OverLimitError: the untouchable parts alone are over the limit.
    """
    fitted = Fitted(ledger, {}, [], [])
    window = builder.window
    transcript = window.transcript
    settled = _settled(window, ledger)
    for length in list(transcript.boundaries(window.size)) or [len(transcript)]:
        _learn(builder, ledger)
        keys = transcript.decision_keys(window.size, length)
        builder.extend(length)
        _first_sight(builder, policy, fitted)
        for key in keys:
            _show_again(builder, key, fitted)
        if length > settled:
            is_end = length == len(transcript)
            stages = [policy.on_request] if now and is_end and policy.on_request else []
            stages += policy.under_pressure
            asked = asking if is_end else None
            yield from _decide(builder, policy, stages, keys[-1], fitted, asked)
    if joined and window.changed:
        builder.stale.append((min(window.changed), window.size))
    _drop_stale(builder, policy, fitted)
    if not window.within(window.limit_tokens, surely=True):
        _refuse(window)
    return fitted


def _drop_stale(builder: WindowBuilder, policy: Policy, fitted: Fitted) -> None:
    """Leave out the reasoning that stayed behind edits which another model had allowed.

    Where reasoning is free, none goes with a batch. If the next request is for a model to which
    it is bound, what was thought before the batch, about what it edited, may not be shown (A15).
    """
    window = builder.window
    if window.reasoning == "free" or is_frozen(window):
        return
    due = [first for first, stop in builder.stale if window.bound_reasoning(first + 1, stop)]
    builder.stale.clear()
    if due:
        key = window.transcript.decision_key(window.size)
        _keep(builder, "reasoning", policy, key, left_out(window, min(due), ()), fitted)


def _learn(builder: WindowBuilder, ledger: Ledger) -> None:
    """Take in what was reported for the request of the boundary the window stands at.

    Where nothing was answered since (the same request again, or one message more), what was
    reported last holds on: a second call decides as the first did.

    No report calibrates by which what we do not see is over the limit by itself: nothing would
    ever fit again, and so no better report could come (usage summed over a turn, F64).
    """
    window, size = builder.window, builder.window.size
    if not (0 < size < len(window.transcript) and window.transcript.starts_turn(size)):
        return
    observed = ledger.at(window.transcript.decision_key(size)).observed
    if observed is None:
        builder.report(None, None, window.calibration)
        return
    reported, estimated = observed.reported_tokens, observed.estimated_tokens
    calibration = window.calibration
    if reported - estimated < window.limit_tokens:
        calibration = calibration.observe(reported, estimated)
    builder.report(reported, reported + observed.output_tokens, calibration)


def _settled(window: Window, ledger: Ledger) -> int:
    """The furthest earlier boundary at or beyond which the ledger holds a decision.

    A decision short of a boundary, or at the end of the history by an earlier call, settles
    what is before it; the end itself is always decided anew.
    """
    transcript, settled, before = window.transcript, 0, window.size
    for length in transcript.boundaries(before):
        entries = [ledger.at(key) for key in transcript.decision_keys(before, length)]
        decided = [bool(entry.batches or entry.observed) for entry in entries]
        if any(decided):
            settled = length if decided[-1] and length < len(transcript) else before
        before = length
    return settled


def _first_sight(builder: WindowBuilder, policy: Policy, fitted: Fitted) -> None:
    for stage in policy.at_first_sight:
        cuts = _cuts(stage, builder.window)
        if cuts:
            _set_aside(cuts, fitted)
            _show(builder, [cut.edit for cut in cuts], fitted, tell=True)


def _decide(
    builder: WindowBuilder,
    policy: Policy,
    stages: Iterable[Stage],
    key: bytes,
    fitted: Fitted,
    asking: Asking | None,
) -> _Asks[None]:
    window = builder.window
    yield from _take_prepared(builder, policy, key, fitted, asking, wait=False)
    for stage in stages:
        cuts = _allowed(window, stage, fitted)
        if cuts and policy.diagnostic is not None:
            fitted.events.append(_diagnosed(policy.diagnostic, window, len(cuts)))
        if any(cut.brief is not None for cut in cuts) and (
            yield from _take_prepared(builder, policy, key, fitted, asking, wait=True)
        ):
            continue  # what was under way is there, and nothing is paid for twice
        filled = yield from _filled(window, cuts, fitted, asking)
        _batch(builder, _name(stage), policy, key, filled, fitted)
    if policy.guard is not None:
        _batch(builder, _name(policy.guard), policy, key, _cuts(policy.guard, window), fitted)


def _allowed(window: Window, stage: Stage, fitted: Fitted) -> Sequence[Cut]:
    """The cuts a stage wants, if now they can be made; else it is told why not."""
    cuts = stage(window)
    if isinstance(cuts, Skipped):
        fitted.events.append(Event(kind="held", where=f"stage {_name(stage)}", why=cuts.why))
        return ()
    if cuts and is_frozen(window):
        fitted.events.append(_held(_name(stage)))
        return ()
    return cuts


def _take_prepared(
    builder: WindowBuilder,
    policy: Policy,
    key: bytes,
    fitted: Fitted,
    asking: Asking | None,
    *,
    wait: bool,
) -> _Asks[bool]:
    """Make a batch of a compaction that was prepared for this history, if there is one."""
    window = builder.window
    if asking is None or not asking.ahead or is_frozen(window):
        return False
    filled = for_history(window, (yield Prepared(wait)))
    if filled is None:
        return False
    _tell_refused(filled.refused, fitted)
    _batch(builder, "compact", policy, key, [filled.cut], fitted)
    return True


def _cuts(stage: Stage, window: Window) -> Sequence[Cut]:
    cuts = stage(window)
    return () if isinstance(cuts, Skipped) else cuts


def _filled(
    window: Window, cuts: Sequence[Cut], fitted: Fitted, asking: Asking | None
) -> _Asks[Sequence[Cut]]:
    """The cuts with what a model has to add to them, if there is one to ask."""
    filled = []
    for cut in cuts:
        full, refused = yield from fill(cut, asking, window.meter.text)
        filled.append(full)
        _tell_refused(refused, fitted)
    return filled


def _tell_refused(refused: str, fitted: Fitted) -> None:
    if refused:
        fitted.events.append(refusal(refused))


def _batch(
    builder: WindowBuilder,
    stage: str,
    policy: Policy,
    key: bytes,
    cuts: Sequence[Cut],
    fitted: Fitted,
) -> None:
    """Make one batch of cuts, and of the reasoning they make invalid."""
    if not cuts:
        return
    window = builder.window
    fitted.events += stall(window, cuts)
    first = _edited_from(window, [cut.edit for cut in cuts])
    _keep(builder, stage, policy, key, [*cuts, *left_out(window, first, cuts)], fitted)


def _keep(
    builder: WindowBuilder,
    stage: str,
    policy: Policy,
    key: bytes,
    cuts: Sequence[Cut],
    fitted: Fitted,
) -> None:
    if not cuts:
        return
    window = builder.window
    before, summaries = window.estimate, window.summaries
    edits = tuple(storable(cut.edit) for cut in cuts)
    first = _edited_from(window, edits)
    _show(builder, edits, fitted, tell=True)
    _note_stale(builder, first, window.size)
    for placed in summaries:
        if placed not in window.summaries:  # its index, if made just now: the history gives it
            fitted.outputs.pop(placed.edit.ref, None)
    batch = Batch(stage, policy.name, edits, before, window.estimate)
    fitted.ledger, record = fitted.ledger.with_batch(key, batch)
    fitted.records.append(record)
    _set_aside(cuts, fitted)


def _set_aside(cuts: Sequence[Cut], fitted: Fitted) -> None:
    for cut in cuts:
        fitted.outputs.update((output.ref, output) for output in cut.outputs)


def _edited_from(window: Window, edits: Iterable[Edit]) -> int:
    """Index of the first message that edits change; leaving reasoning out is none."""
    changing = (edit for edit in edits if not isinstance(edit, Drop))
    return min((_first(window, edit) for edit in changing), default=window.size)


def _note_stale(builder: WindowBuilder, first: int, stop: int) -> None:
    """Note a batch, if reasoning stays that was bound to what it edited (`_drop_stale`)."""
    if builder.window.bound_reasoning(first + 1, stop):
        builder.stale.append((first, stop))


def _first(window: Window, edit: Replace | Summary) -> int:
    """Index of the first message an edit changes."""
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        return spot[0] if spot else window.size
    start = window.transcript.find(edit.after)
    return window.size if start is None else start


def _held(stage: str) -> Event:
    why = "its reasoning must stay as it is while the turn is open (manual thinking)"
    return Event(kind="held", where=f"stage {stage}", why=why)


def _diagnosed(diagnostic: str, window: Window, count: int) -> Event:
    reported = window.estimate if window.reported_tokens is None else window.reported_tokens
    why = diagnostic.format(count=count, reported_tokens=reported)
    return Event(kind="diagnostic", where="the whole view", why=why)


def _name(stage: Stage) -> str:
    return str(getattr(getattr(stage, "func", stage), "__name__", "stage"))


def _show_again(builder: WindowBuilder, key: bytes, fitted: Fitted) -> None:
    """Show what the ledger holds under a key, each batch until all of it has taken effect.

    What a batch replaces may stand behind the history at hand; then it is tried again later.
    """
    window = builder.window
    batches, applied = fitted.ledger.at(key).batches, builder.applied.get(key, 0)
    for number in range(applied, len(batches)):
        missing = [edit for edit in batches[number].edits if not window.shows(edit)]
        first = _edited_from(window, missing)
        shown = _show(builder, missing, fitted, tell=False)
        _note_stale(builder, first, window.transcript.find(key) or 0)
        if shown == len(missing) and number == applied:
            applied = builder.applied[key] = number + 1


def _show(builder: WindowBuilder, edits: Iterable[Edit], fitted: Fitted, *, tell: bool) -> int:
    """Apply edits and tell of each that took effect. Returns how many did."""
    shown = 0
    for edit in edits:
        tokens = builder.apply(edit)
        shown += tokens is not None
        if tokens is not None and tell:
            fitted.events.append(_event(builder.window, edit, *tokens))
    return shown


def _event(window: Window, edit: Edit, before: int, after: int) -> Event:
    kind: Kind = "condensed"
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        at = spot[0] + 1 if spot else 0
        what = window.tool_of(spot) if spot and edit.place.kind == "result" else edit.place.kind
        where = f"message {at}, {what or 'tool'} {'result' if edit.place.kind == 'result' else ''}"
        kind = edit.kind
    elif isinstance(edit, Drop):
        kind, where = "reasoning", "messages behind the edit"
    else:
        start, stop = window.range_of(edit) or (0, 0)
        kind, where = edit.kind, f"messages {start + 1} to {stop}"
    return Event(
        kind=kind,
        where=where.strip(),
        why=edit.why,
        tokens_before=before,
        tokens_after=after,
        ref=None if isinstance(edit, Drop) else edit.ref,
        left_out_bytes=edit.left_out_bytes if isinstance(edit, Replace) else 0,
    )


def _refuse(window: Window) -> None:
    if window.estimate <= window.limit_tokens:
        return  # only the margin of the upper bound is over; the provider may well take it
    messages = window.tokens - window.head_tokens
    parts = {"system text and tools": window.head_tokens, "messages that must stay": messages}
    raise OverLimitError(window.limit_tokens, window.estimate, parts)
