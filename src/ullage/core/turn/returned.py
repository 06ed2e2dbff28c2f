"""What an undo could not bring back, and why not.

An undo takes a batch back as far as there is room. The guard may take some of it again, and a batch
that was made later may hold the same texts. Either is told with the messages and the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ullage.core.history.hand import (
    DecisionEntry,
    batch_of,
    entered_in,
    locations_of,
    name_of,
)
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.history.window import Window
from ullage.core.turn.batches import Walk
from ullage.core.turn.hand import described
from ullage.core.values.decisions import LedgerRef
from ullage.core.values.edits import Batch, Replace, ReplaceSpan
from ullage.core.values.events import Event, Kind


class _Returning(NamedTuple):
    """Texts that a decision brings back.

    Attributes:
        decision: brings them back.
        place: what is brought back, in a few words.
        leaves: the texts.
        since: what an earlier batch than this keeps out was out before, too.
    """

    decision: DecisionEntry
    place: str
    leaves: Sequence[Location]
    since: LedgerRef


def not_returned(walk: Walk) -> Iterator[Event]:
    """An event for each batch that keeps out what undos and restores were to bring back.

    Of a decision that was carried out in an earlier turn, only what left the view in this one.

    Args:
        walk: the window behind the guard.
    """
    made_now = {
        LedgerRef("batch", record.key, record.n)
        for record in walk.records
        if record.kind == "batch"
    }
    if not made_now:
        return
    standing = list(_standing_batches(walk))
    for returning in _returning(walk):
        missing: dict[LedgerRef, set[int]] = {}
        for location in returning.leaves:
            edit = _shown_instead(walk.window, location)
            holders = [handle for handle, one in standing if edit in one.edits]
            if holders and _is_later(
                holders[-1], returning.since, walk.window
            ):
                missing.setdefault(holders[-1], set()).add(location[0])
        is_due = returning.decision in walk.hand.due
        for handle, indices in missing.items():
            if is_due or handle in made_now:
                is_new = handle in made_now
                yield _event(walk, returning, handle, indices, is_new=is_new)


def _returning(walk: Walk) -> Iterator[_Returning]:
    """What the decisions that stand and are carried out bring back."""
    transcript = walk.window.transcript
    ledger = walk.ledger
    entered = list(entered_in(transcript, ledger))
    carried_out = {one.name: one.carried_out for one in entered}
    for one in walk.hand.decisions:
        batches = carried_out[one.name]
        decision = one.decision
        place = described(decision, transcript)
        if not batches:
            continue
        if decision.undoes is not None:
            for handle in _taken_back(decision.undoes, entered):
                batch = batch_of(handle, ledger)
                if batch is not None:
                    leaves = list(_leaves_of(transcript, batch))
                    yield _Returning(one, place, leaves, handle)
        elif _is_restored_now(walk, one) and decision.target is not None:
            leaves = locations_of(transcript, decision.target)
            yield _Returning(one, place, leaves, batches[-1])


def _is_restored_now(walk: Walk, one: DecisionEntry) -> bool:
    """Whether something comes back in its place in this turn; a later one may take it again."""
    is_restore = one.decision.verb == "restore" and one.decision.when != "end"
    return is_restore and one in walk.hand.due


def _taken_back(
    undoes: LedgerRef, entered: Sequence[DecisionEntry]
) -> Sequence[LedgerRef]:
    """The batches whose texts an undo brings back; of the undo of an undo none."""
    if undoes.kind == "batch":
        return [undoes]
    for one in entered:
        if one.ref == undoes and one.decision.undoes is None:
            return one.carried_out
    return ()


def _is_later(handle: LedgerRef, other: LedgerRef, window: Window) -> bool:
    """Whether a batch was made after another."""
    place = window.transcript.find(handle.key) or 0
    other_place = window.transcript.find(other.key) or 0
    return (place, handle.n) > (other_place, other.n)


def _event(
    walk: Walk,
    returning: _Returning,
    handle: LedgerRef,
    indices: set[int],
    *,
    is_new: bool,
) -> Event:
    """That one batch keeps messages out which a decision was to bring back."""
    batch = batch_of(handle, walk.ledger)
    limit = walk.window.limit_tokens
    kind: Kind = "held"
    why = f"{name_of(handle)} was made later and has them too; undo it as well"
    if batch is not None and batch.decision:
        why = f"{batch.decision} takes them out; undo it as well"
    elif is_new:
        kind = "overruled"
        newest = (*walk.hand.due, returning.decision)[0].name
        why = (
            f"the view would be over its hard limit of {limit:,} tokens. Undo {newest}, or use a "
            "model with a larger window"
        )
    return Event(
        kind=kind,
        where=returning.place,
        why=f"{_ranges(indices)} not whole: {why}",
    )


def _standing_batches(walk: Walk) -> Iterator[tuple[LedgerRef, Batch]]:
    """Every batch of the history that is not undone, oldest first."""
    keys = walk.window.transcript.decision_keys(0, walk.window.size)
    for key in dict.fromkeys(keys):
        for n, batch in enumerate(walk.ledger.at(key).batches):
            handle = LedgerRef("batch", key, n)
            if handle not in walk.hand.undone:
                yield handle, batch


def _leaves_of(transcript: Transcript, batch: Batch) -> Iterator[Location]:
    """The leaves that a batch shows otherwise, or hides."""
    for edit in batch.edits:
        if isinstance(edit, Replace):
            location = transcript.locate(edit.address)
            if location is not None:
                yield location
        elif isinstance(edit, ReplaceSpan):
            start = transcript.find(edit.after)
            stop = transcript.find(edit.upto)
            if start is not None and stop is not None:
                for index in range(start, stop):
                    for number, item, _ in leaves_of(
                        transcript.messages[index]
                    ):
                        yield index, number, item


def _shown_instead(
    window: Window, location: Location
) -> Replace | ReplaceSpan | None:
    """What is shown in place of a leaf; None where it is whole."""
    index = location[0]
    if not window.hidden(index):
        return window.edit_at(location)
    for placed in window.summaries:
        if placed.start <= index < placed.stop:
            return placed.edit
    return None


def _ranges(indices: set[int]) -> str:
    """Messages by their numbers, such as ``messages 2 to 5 and 9 are``."""
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][1]:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    texts = [
        f"{start + 1} to {stop}" if stop - start > 1 else f"{stop}"
        for start, stop in runs
    ]
    *earlier, last = texts
    listed = f"{', '.join(earlier)} and {last}" if earlier else last
    return (
        f"messages {listed} are"
        if len(indices) > 1
        else f"message {listed} is"
    )
