"""Batches: the edits of one decision are shown, kept in the ledger, and told as events.

Everything an engine's run decides is gathered in `Fitted`; `ullage.turn` asks a driver to commit
it before the view is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ullage.history.builder import WindowBuilder
from ullage.history.ledger import Ledger
from ullage.history.window import Window
from ullage.stages.policy import Policy, Stage, decide
from ullage.values.edits import Batch, Cut, Drop, Edit, Replace, Skipped, Summary, storable
from ullage.values.effects import Output, Record
from ullage.values.events import Event, Kind

__all__ = [
    "Fitted",
    "cuts_of",
    "edited_from",
    "keep",
    "note_stale",
    "set_aside",
    "show",
    "show_again",
]


class Fitted(Struct):
    """What one run of the engine decided.

    Attributes:
        ledger: the ledger with the new batches.
        outputs: what was set aside and must be kept, by ref.
        records: the ledger rows that must be kept.
        events: what happened, in order.
        cuts: how many cuts the stages under pressure made.
        diagnostic: what is to be told of them, as of the last of their batches.
    """

    ledger: Ledger
    outputs: dict[str, Output]
    records: list[Record]
    events: list[Event]
    cuts: int = 0
    diagnostic: Event | None = None


def keep(
    builder: WindowBuilder,
    stage: str,
    policy: Policy,
    key: bytes,
    cuts: Sequence[Cut],
    fitted: Fitted,
) -> None:
    """Show cuts, and keep them as one batch under a key; nothing where there are none."""
    if not cuts:
        return
    window = builder.window
    before, summaries = window.estimate, window.summaries
    edits = tuple(storable(cut.edit) for cut in cuts)
    first = edited_from(window, edits)
    show(builder, edits, fitted, tell=True)
    note_stale(builder, first, window.size)
    for placed in summaries:  # the index of one that is gone, if made just now: a wider one has it
        if placed not in window.summaries and placed.edit.kind != "pruned":
            fitted.outputs.pop(placed.edit.ref, None)
    builder.outdate_past(key)
    batch = Batch(stage, policy.name, edits, before, window.estimate)
    fitted.ledger, record = fitted.ledger.with_batch(key, batch)
    fitted.records.append(record)
    set_aside(cuts, fitted)


def set_aside(cuts: Sequence[Cut], fitted: Fitted) -> None:
    """Have what cuts leave out kept before the view is returned."""
    for cut in cuts:
        fitted.outputs.update((output.ref, output) for output in cut.outputs)


def edited_from(window: Window, edits: Iterable[Edit]) -> int:
    """Index of the first message that edits change; leaving reasoning out is none."""
    changing = (edit for edit in edits if not isinstance(edit, Drop))
    return min((_first(window, edit) for edit in changing), default=window.size)


def _first(window: Window, edit: Replace | Summary) -> int:
    """Index of the first message an edit changes."""
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        return spot[0] if spot else window.size
    start = window.transcript.find(edit.after)
    return window.size if start is None else start


def note_stale(builder: WindowBuilder, first: int, stop: int) -> None:
    """Note a batch, if reasoning stays that was bound to what it edited."""
    if builder.window.bound_reasoning(first + 1, stop):
        builder.stale.append((first, stop))


def show_again(builder: WindowBuilder, key: bytes, fitted: Fitted) -> None:
    """Show what the ledger holds under a key, each batch until all of it has taken effect.

    What a batch replaces may stand behind the history at hand; then it is tried again later.
    """
    window = builder.window
    batches, applied = fitted.ledger.at(key).batches, builder.applied.get(key, 0)
    for number in range(applied, len(batches)):
        missing = [edit for edit in batches[number].edits if not window.shows(edit)]
        first = edited_from(window, missing)
        shown = show(builder, missing, fitted, tell=False)
        note_stale(builder, first, window.transcript.find(key) or 0)
        if shown == len(missing) and number == applied:
            applied = builder.applied[key] = number + 1


def show(builder: WindowBuilder, edits: Iterable[Edit], fitted: Fitted, *, tell: bool) -> int:
    """Apply edits and tell of each that took effect. Returns how many did."""
    shown = 0
    for edit in edits:
        if not tell:
            shown += builder.show(edit)
        elif (tokens := builder.apply(edit)) is not None:
            shown += 1
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


def cuts_of(stage: Stage, window: Window) -> Sequence[Cut]:
    """The cuts a stage wants; none where it skipped."""
    cuts = decide(stage, window)
    return () if isinstance(cuts, Skipped) else cuts
