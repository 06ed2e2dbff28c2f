"""Batches: the edits of one decision are shown, kept in the ledger, and told as events.

Everything an engine's run decides is gathered in a `Walk`; `ullage.core.turn` asks a driver to
commit it before the view is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ullage.core.contract.policy import Policy, Safeguards, Stage
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.hand import (
    EMPTY,
    UserDecisions,
    index_of,
    shown_under,
)
from ullage.core.history.ledger import Ledger
from ullage.core.history.window import Window
from ullage.core.turn.checks import check, is_lawful
from ullage.core.turn.reporting import (
    event_of,
    event_of_both,
    event_of_passed_over,
    events_of_check,
)
from ullage.core.values.decisions import LedgerRef
from ullage.core.values.edits import (
    Address,
    Batch,
    Drop,
    Edit,
    Insert,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Restore,
    Skipped,
    storable,
)
from ullage.core.values.effects import Output, Record
from ullage.core.values.events import Event

if TYPE_CHECKING:
    from ullage.core.turn.joining import Joining


class Walk(Struct):
    """A window on its way through its history, and what is decided on the way.

    Attributes:
        builder: moves the window.
        policy: the stages, as they are at the boundary at hand (`unrecalled`).
        safeguards: what runs behind them.
        ledger: the ledger with the new batches.
        records: the ledger rows that must be kept.
        outputs: what was set aside and must be kept, by ref.
        events: what happened, in order.
        cut_count: how many cuts the stages under pressure made.
        diagnostic: what is to be reported of them, as of the last of their batches.
        hand: what users decided of the history.
        joining: whether a conversation that was met under way is joined at the end; None: it was
            there from the start, or is joined already.
        cuts_on_arrival: where in the events it is told that a result was cut when it was new.
    """

    builder: WindowBuilder
    policy: Policy
    safeguards: Safeguards
    ledger: Ledger
    records: list[Record] = []
    outputs: dict[str, Output] = {}
    events: list[Event] = []
    cut_count: int = 0
    diagnostic: Event | None = None
    hand: UserDecisions = EMPTY
    joining: Joining | None = None
    cuts_on_arrival: dict[Address, int] = {}

    @property
    def window(self) -> Window:
        """The window as far as it has come."""
        return self.builder.window

    def keep(
        self,
        stage: str,
        key: bytes,
        cuts: Sequence[ProposedEdit],
        *,
        decision: str = "",
        pinned: Sequence[Output] = (),
    ) -> None:
        """Show cuts, and keep them as one batch under a key; nothing where there are none.

        Args:
            stage: the name of the stage that decided.
            key: where.
            cuts: what is shown.
            decision: the name of the user's decision that they carry out: it is kept in any case.
            pinned: what stays in the view by it, and is put into the store as well.
        """
        if not cuts and not decision:
            return
        window = self.window
        tokens_before = window.estimate
        summaries = window.summaries
        edits = tuple(storable(cut.edit) for cut in cuts)
        start = edited_from(window, edits)
        self.show(edits, tell=True)
        self._note_stale(start, window.size)
        for placed in summaries:
            # the index of one that is gone, if made just now: a wider has it
            if placed not in window.summaries and placed.edit.kind != "pruned":
                self.outputs.pop(placed.edit.ref, None)
        self.builder.invalidate_past(key)
        keeps = tuple(output.ref for output in pinned)
        self.record(stage, key, edits, tokens_before, decision, keeps)
        self.set_aside(cuts)
        for output in pinned:
            self.outputs[output.ref] = output

    def record(
        self,
        stage: str,
        key: bytes,
        edits: tuple[Edit, ...],
        tokens_before: int,
        decision: str = "",
        keeps: tuple[str, ...] = (),
    ) -> None:
        """Write a batch of edits that are shown to the ledger."""
        batch = Batch(
            stage=stage,
            policy=self.policy.name,
            edits=edits,
            tokens_before=tokens_before,
            tokens_after=self.window.estimate,
            decision=decision,
            keeps=keeps,
        )
        self.ledger, record = self.ledger.with_batch(key, batch)
        self.records.append(record)

    def check(
        self,
        stage: str,
        cuts: Sequence[ProposedEdit],
        *,
        on_arrival: bool = False,
        is_guard: bool = False,
    ) -> Sequence[ProposedEdit]:
        """The cuts that may be shown; what was repaired or left out of them becomes events.

        Args:
            stage: the name of whoever proposed them.
            cuts: what was proposed.
            on_arrival: see `ullage.core.turn.checks.check`.
            is_guard: see `ullage.core.turn.checks.check`.

        Raises:
            StageError: the policy is strict, and a cut cannot be shown.
        """
        if not cuts:
            return cuts
        checked = check(
            self.window, stage, cuts, on_arrival=on_arrival, is_guard=is_guard
        )
        if checked.errors and self.policy.strict:
            raise checked.errors[0]
        self.events += events_of_check(stage, checked)
        return checked.cuts

    def set_aside(self, cuts: Sequence[ProposedEdit]) -> None:
        """Have what cuts leave out kept before the view is returned."""
        for cut in cuts:
            for output in cut.outputs:
                self.outputs[output.ref] = output

    def show(self, edits: Iterable[Edit], *, tell: bool) -> int:
        """Apply edits and tell of each that took effect. Returns how many did."""
        count = 0
        for edit in edits:
            if not tell:
                count += self.builder.show(edit)
                continue
            tokens = self.builder.apply(edit)
            if tokens is not None:
                count += 1
                self._tell(edit, *tokens)
        return count

    def _tell(self, edit: Edit, tokens_before: int, tokens_after: int) -> None:
        """Tell of an edit that took effect; of a result that is new, once for all of its cuts."""
        event = event_of(self.window, edit, tokens_before, tokens_after)
        if isinstance(edit, Replace) and not edit.was_sent:
            number = self.cuts_on_arrival.setdefault(
                edit.address, len(self.events)
            )
            if number < len(self.events):
                # another stage had cut it less, and nobody was shown that
                self.events[number] = event_of_both(self.events[number], event)
                return
        self.events.append(event)

    def show_again(self, key: bytes) -> None:
        """Show what the ledger holds under a key, each batch until all of it has taken effect.

        What a batch replaces may stand behind the history at hand; then it is tried again later.
        """
        window = self.window
        batches = self.ledger.at(key).batches
        applied = window.applied.get(key, 0)
        for number in range(applied, len(batches)):
            is_complete = self._show_batch(key, number, batches[number])
            if is_complete and number == applied:
                applied = number + 1
                self.builder.apply_batches(key, applied)

    def _show_batch(self, key: bytes, number: int, batch: Batch) -> bool:
        """Show what of a batch is not in the view yet. Returns whether all of it took effect."""
        window = self.window
        undone = self.hand.undone
        edits = batch.edits
        if undone and LedgerRef("batch", key, number) in undone:
            edits = ()
        missing = [edit for edit in edits if not window.shows(edit)]
        lawful = [edit for edit in missing if is_lawful(window, edit, edits)]
        if len(lawful) < len(missing):
            count = len(missing) - len(lawful)
            self.events.append(event_of_passed_over(count, batch))
        start = edited_from(window, lawful)
        count = self.show(lawful, tell=False)
        place = window.transcript.find(key) or 0
        self._note_stale(start, place)
        return count == len(missing)

    def _note_stale(self, start: int, stop: int) -> None:
        """Note a batch, if reasoning stays that was bound to what it edited."""
        if self.window.bound_reasoning(start + 1, stop):
            self.builder.stale.append((start, stop))


def removed_tokens(walk: Walk) -> int:
    """What batches took out of the view since a report was last learned from."""
    window = walk.window
    if not window.calibration.replies:
        return 0
    removed = 0
    for key in window.transcript.decision_keys(
        window.calibrated_at, window.size
    ):
        for batch in shown_under(key, walk.ledger, walk.hand):
            removed += batch.tokens_before - batch.tokens_after
    return round(removed / window.calibration.scale)


def without_young(
    window: Window, cuts: Sequence[ProposedEdit]
) -> list[ProposedEdit]:
    """The cuts without those of texts that changed at an old place and are too new for it.

    Such a text may be cut once the same batch cuts what came when it changed.
    """
    if not window.arrived or not cuts:
        return list(cuts)
    places = [_place(window, cut.edit) for cut in cuts]
    young = min(max(places) + 1, window.turn_start)
    remaining: list[ProposedEdit] = []
    for cut, place in zip(cuts, places, strict=True):
        is_young = window.arrived.get(place, -1) >= young
        if not is_young or not isinstance(cut.edit, Replace):
            remaining.append(cut)
    return remaining


def _place(window: Window, edit: Edit) -> int:
    """The message that is edited, or the last of a range."""
    if isinstance(edit, (Restore, Insert)):
        return -1
    if isinstance(edit, Replace):
        location = window.transcript.locate(edit.address)
        return -1 if location is None else location[0]
    span = window.range_of(edit)
    return -1 if span is None else span[1] - 1


def edited_from(window: Window, edits: Iterable[Edit]) -> int:
    """Index of the first message that edits change; leaving reasoning out is none."""
    start = window.size
    for edit in edits:
        if not isinstance(edit, Drop):
            start = min(start, _start_of(window, edit))
    return start


def _start_of(
    window: Window, edit: Replace | ReplaceSpan | Restore | Insert
) -> int:
    """Index of the first message an edit changes."""
    transcript = window.transcript
    size = window.size
    if isinstance(edit, Insert):
        return transcript.find(edit.after) or size
    if isinstance(edit, Restore):
        index = index_of(transcript, edit.message)
        if index is None or index >= size:
            return size
        return min(transcript.inseparable(index, size), default=index)
    if isinstance(edit, Replace):
        location = transcript.locate(edit.address)
        return size if location is None else location[0]
    start = transcript.find(edit.after)
    return size if start is None else start


def cuts_of(stage: Stage, window: Window) -> Sequence[ProposedEdit]:
    """The cuts a stage wants; none where it skipped."""
    proposal = stage(window)
    if isinstance(proposal, Skipped):
        return ()
    return proposal
