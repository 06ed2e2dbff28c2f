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

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ullage.edits import Batch, Cut, Edit, Replace
from ullage.effects import Output, Record
from ullage.errors import OverLimitError
from ullage.events import Event, Kind
from ullage.ledger import Ledger
from ullage.policy import Policy, Stage
from ullage.window import Window

__all__ = ["Fitted", "fit"]


class Fitted(Struct):
    """What one run of the engine decided.

    Attributes:
        ledger: the ledger with the new batches.
        outputs: what was set aside and must be kept.
        records: the ledger rows that must be kept.
        events: what happened, in order.
    """

    ledger: Ledger
    outputs: list[Output]
    records: list[Record]
    events: list[Event]


def fit(window: Window, ledger: Ledger, policy: Policy) -> Fitted:
    """Walk the window to the end of its transcript.

    Args:
        window: where the last run left it, or a new one. It is moved forward.
        ledger: everything decided and observed so far.
        policy: the stages.

    Raises:
        OverLimitError: the untouchable parts alone are over the limit.
    """
    fitted = Fitted(ledger, [], [], [])
    transcript = window.transcript
    settled = _settled(window, ledger)
    for length in list(transcript.boundaries(window.size)) or [len(transcript)]:
        _learn(window, ledger)
        window.extend(length)
        _first_sight(window, policy, fitted)
        key = transcript.decision_key(length)
        for batch in fitted.ledger.at(key).batches:
            missing = (edit for edit in batch.edits if not window.shows(edit))
            _show(window, missing, fitted, tell=False)
        if length > settled:
            _decide(window, policy, key, fitted)
    if not window.within(window.limit_tokens, surely=True):
        _refuse(window)
    return fitted


def _learn(window: Window, ledger: Ledger) -> None:
    """Take in what was reported for the request of the boundary the window stands at."""
    size, messages = window.size, window.transcript.messages
    if 0 < size < len(messages) and messages[size].role == "assistant":
        observed = ledger.at(window.transcript.decision_key(size)).observed
        if observed is not None:
            window.calibration = window.calibration.observe(
                observed.reported_tokens, observed.estimated_tokens
            )


def _settled(window: Window, ledger: Ledger) -> int:
    """The furthest earlier boundary at or beyond which the ledger holds a decision."""
    transcript, settled = window.transcript, 0
    for length in transcript.boundaries(window.size):
        if length < len(transcript) and transcript.decision_key(length) in ledger:
            settled = length
    return settled


def _first_sight(window: Window, policy: Policy, fitted: Fitted) -> None:
    for stage in policy.at_first_sight:
        cuts = stage(window)
        if cuts:
            fitted.outputs += [output for cut in cuts for output in cut.outputs]
            _show(window, [cut.edit for cut in cuts], fitted, tell=True)


def _decide(window: Window, policy: Policy, key: bytes, fitted: Fitted) -> None:
    for stage in policy.under_pressure:
        _batch(window, stage, policy, key, fitted)
    if policy.guard is not None:
        _batch(window, policy.guard, policy, key, fitted)


def _batch(window: Window, stage: Stage, policy: Policy, key: bytes, fitted: Fitted) -> None:
    cuts: Sequence[Cut] = stage(window)
    if not cuts:
        return
    before = window.estimate
    edits = tuple(cut.edit for cut in cuts)
    _show(window, edits, fitted, tell=True)
    batch = Batch(_name(stage), policy.name, edits, before, window.estimate)
    fitted.ledger, record = fitted.ledger.with_batch(key, batch)
    fitted.records.append(record)
    fitted.outputs += [output for cut in cuts for output in cut.outputs]


def _name(stage: Stage) -> str:
    return str(getattr(getattr(stage, "func", stage), "__name__", "stage"))


def _show(window: Window, edits: Iterable[Edit], fitted: Fitted, *, tell: bool) -> None:
    """Apply edits and tell of each that took effect."""
    for edit in edits:
        tokens = window.apply(edit)
        if tokens is not None and tell:
            fitted.events.append(_event(window, edit, *tokens))


def _event(window: Window, edit: Edit, before: int, after: int) -> Event:
    kind: Kind = "condensed"
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        at = spot[0] + 1 if spot else 0
        what = window.tool_of(spot) if spot and edit.place.kind == "result" else edit.place.kind
        where = f"message {at}, {what or 'tool'} {'result' if edit.place.kind == 'result' else ''}"
        kind = edit.kind
    else:
        start, stop = window.span[:2] if window.span else (0, 0)
        where = f"messages {start + 1} to {stop}"
    return Event(
        kind=kind,
        where=where.strip(),
        why=edit.why,
        tokens_before=before,
        tokens_after=after,
        ref=edit.ref,
    )


def _refuse(window: Window) -> None:
    if window.estimate <= window.limit_tokens:
        return  # only the margin of the upper bound is over; the provider may well take it
    messages = window.tokens - window.head_tokens
    parts = {"system text and tools": window.head_tokens, "messages that must stay": messages}
    raise OverLimitError(window.limit_tokens, window.estimate, parts)
