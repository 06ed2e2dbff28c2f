"""Batches: the edits of one decision are shown, kept in the ledger, and told as events.

Everything an engine's run decides is gathered in a `Walk`; `ullage.core.turn` asks a driver to
commit it before the view is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ullage.core.contract.policy import Policy, Safeguards, Stage
from ullage.core.errors import StageError
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.hand import EMPTY, Hand, index_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.window import Window
from ullage.core.turn.checks import Checked, check, stands
from ullage.core.turn.cuts import Mend
from ullage.core.values.decisions import Made
from ullage.core.values.edits import (
    Added,
    Batch,
    Cut,
    Drop,
    Edit,
    Replace,
    Skipped,
    Summary,
    Whole,
    storable,
)
from ullage.core.values.effects import Output, Record
from ullage.core.values.events import Event, Kind

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
        cuts: how many cuts the stages under pressure made.
        diagnostic: what is to be told of them, as of the last of their batches.
        hand: what users decided of the history.
        joining: whether a conversation that was met under way is joined at the end; None: it was
            there from the start, or is joined already.
    """

    builder: WindowBuilder
    policy: Policy
    safeguards: Safeguards
    ledger: Ledger
    records: list[Record] = []
    outputs: dict[str, Output] = {}
    events: list[Event] = []
    cuts: int = 0
    diagnostic: Event | None = None
    hand: Hand = EMPTY
    joining: Joining | None = None

    @property
    def window(self) -> Window:
        """The window as far as it has come."""
        return self.builder.window

    def keep(
        self, stage: str, key: bytes, cuts: Sequence[Cut], *, decision: str = ""
    ) -> None:
        """Show cuts, and keep them as one batch under a key; nothing where there are none.

        Args:
            stage: the name of the stage that decided.
            key: where.
            cuts: what is shown.
            decision: the name of the user's decision that they carry out: it is kept in any case.
        """
        if not cuts and not decision:
            return
        window, before, summaries = (
            self.window,
            self.window.estimate,
            self.window.summaries,
        )
        edits = tuple(storable(cut.edit) for cut in cuts)
        first = edited_from(window, edits)
        self.show(edits, tell=True)
        self._note_stale(first, window.size)
        for placed in (
            summaries
        ):  # the index of one that is gone, if made just now: a wider has it
            if placed not in window.summaries and placed.edit.kind != "pruned":
                self.outputs.pop(placed.edit.ref, None)
        self.builder.invalidate_past(key)
        self.record(stage, key, edits, before, decision)
        self.set_aside(cuts)

    def record(
        self,
        stage: str,
        key: bytes,
        edits: tuple[Edit, ...],
        before_tokens: int,
        decision: str = "",
    ) -> None:
        """Write a batch of edits that are shown to the ledger."""
        after_tokens = self.window.estimate
        batch = Batch(
            stage, self.policy.name, edits, before_tokens, after_tokens, decision
        )
        self.ledger, record = self.ledger.with_batch(key, batch)
        self.records.append(record)

    def check(
        self,
        stage: str,
        cuts: Sequence[Cut],
        *,
        on_arrival: bool = False,
        is_guard: bool = False,
    ) -> Sequence[Cut]:
        """The cuts that may be shown; what was mended or left out of them becomes events.

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
        self.events += _told(stage, checked)
        return checked.cuts

    def set_aside(self, cuts: Sequence[Cut]) -> None:
        """Have what cuts leave out kept before the view is returned."""
        for cut in cuts:
            self.outputs.update((output.ref, output) for output in cut.outputs)

    def show(self, edits: Iterable[Edit], *, tell: bool) -> int:
        """Apply edits and tell of each that took effect. Returns how many did."""
        shown = 0
        for edit in edits:
            if not tell:
                shown += self.builder.show(edit)
            elif (tokens := self.builder.apply(edit)) is not None:
                shown += 1
                self.events.append(_event(self.window, edit, *tokens))
        return shown

    def show_again(self, key: bytes) -> None:
        """Show what the ledger holds under a key, each batch until all of it has taken effect.

        What a batch replaces may stand behind the history at hand; then it is tried again later.
        """
        window = self.window
        batches, applied = self.ledger.at(key).batches, window.applied.get(key, 0)
        undone = self.hand.undone
        for number in range(applied, len(batches)):
            is_undone = bool(undone) and Made("batch", key, number) in undone
            edits = () if is_undone else batches[number].edits
            missing = [edit for edit in edits if not window.shows(edit)]
            lawful = [edit for edit in missing if stands(window, edit, edits)]
            if len(lawful) < len(missing):
                self.events.append(
                    _passed_over(len(missing) - len(lawful), batches[number])
                )
            first = edited_from(window, lawful)
            shown = self.show(lawful, tell=False)
            self._note_stale(first, window.transcript.find(key) or 0)
            if shown == len(missing) and number == applied:
                applied = number + 1
                self.builder.apply_batches(key, applied)

    def _note_stale(self, first: int, stop: int) -> None:
        """Note a batch, if reasoning stays that was bound to what it edited."""
        if self.window.bound_reasoning(first + 1, stop):
            self.builder.stale.append((first, stop))


def without_young(window: Window, cuts: Sequence[Cut]) -> list[Cut]:
    """The cuts without those of texts that changed at an old place and are too new for it.

    Such a text may be cut once the same batch cuts what came when it changed.
    """
    if not window.arrived or not cuts:
        return list(cuts)
    places = [_place(window, cut.edit) for cut in cuts]
    young = min(max(places) + 1, window.turn_start)
    found = []
    for cut, place in zip(cuts, places, strict=True):
        is_young = window.arrived.get(place, -1) >= young
        if not (is_young and isinstance(cut.edit, Replace)):
            found.append(cut)
    return found


def _place(window: Window, edit: Edit) -> int:
    """The message that is edited, or the last of a range."""
    if isinstance(edit, (Whole, Added)):
        return -1
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        return spot[0] if spot else -1
    around = window.range_of(edit)
    return around[1] - 1 if around else -1


def edited_from(window: Window, edits: Iterable[Edit]) -> int:
    """Index of the first message that edits change; leaving reasoning out is none."""
    changing = (edit for edit in edits if not isinstance(edit, Drop))
    return min((_first(window, edit) for edit in changing), default=window.size)


def _first(window: Window, edit: Replace | Summary | Whole | Added) -> int:
    """Index of the first message an edit changes."""
    if isinstance(edit, Added):
        return window.transcript.find(edit.after) or window.size
    if isinstance(edit, Whole):
        index = index_of(window.transcript, edit.message)
        if index is None or index >= window.size:
            return window.size
        return min(window.transcript.together(index, window.size), default=index)
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        return spot[0] if spot else window.size
    start = window.transcript.find(edit.after)
    return window.size if start is None else start


def _event(window: Window, edit: Edit, before: int, after: int) -> Event:
    kind: Kind = "condensed"
    if isinstance(edit, Replace):
        spot = window.transcript.locate(edit.place)
        at = spot[0] + 1 if spot else 0
        what = (
            window.tool_of(spot)
            if spot and edit.place.kind == "result"
            else edit.place.kind
        )
        where = f"message {at}, {what or 'tool'} {'result' if edit.place.kind == 'result' else ''}"
        kind = edit.kind
    elif isinstance(edit, Drop):
        kind, where = "reasoning", "messages behind the edit"
    elif isinstance(edit, Whole):
        at = (index_of(window.transcript, edit.message) or 0) + 1
        kind, where = "restored", f"message {at}"
    elif isinstance(edit, Added):
        kind, where = (
            "added",
            f"behind message {window.transcript.find(edit.after) or 0}",
        )
    else:
        start, stop = window.range_of(edit) or (0, 0)
        kind, where = edit.kind, f"messages {start + 1} to {stop}"
    return Event(
        kind=kind,
        where=where.strip(),
        why=edit.why,
        tokens_before=before,
        tokens_after=after,
        ref=edit.ref if isinstance(edit, (Replace, Summary)) else None,
        left_out_bytes=edit.left_out_bytes if isinstance(edit, Replace) else 0,
    )


def _told(stage: str, checked: Checked) -> Iterator[Event]:
    """What is told of mended and refused cuts: one event for each law and each problem."""
    mends, errors = dict[str, list[Mend]](), dict[str, list[StageError]]()
    for mend in checked.mends:
        mends.setdefault(mend.law, []).append(mend)
    for error in checked.errors:
        errors.setdefault(error.problem, []).append(error)
    for alike in mends.values():
        why = f"stage {stage}: {alike[0].what}{_more(len(alike))}"
        yield Event(kind="mended", where=alike[0].where, why=why)
    for refused in errors.values():
        first = refused[0]
        why = f"stage {stage}: {first.problem}{_more(len(refused))}. {first.remedy}"
        yield Event(kind="declined", where=first.where, why=why)


def _more(count: int) -> str:
    return f"; so it is in {count - 1:,} more places" if count > 1 else ""


def _passed_over(count: int, batch: Batch) -> Event:
    """The event of edits of a record that no view can show."""
    why = (
        f"{count:,} of {len(batch.edits):,} edits that the ledger holds of stage {batch.stage} "
        "would make the view illegal or could not be opened; they are passed over"
    )
    return Event(kind="declined", where="the ledger", why=why)


def cuts_of(stage: Stage, window: Window) -> Sequence[Cut]:
    """The cuts a stage wants; none where it skipped."""
    cuts = stage(window)
    return () if isinstance(cuts, Skipped) else cuts
