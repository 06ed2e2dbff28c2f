"""The cuts of one decision, and the laws that hold for each of them.

    kept      what leaves the view is among the outputs, each under the ref of its own content
    ref       the ref is that of the leaf, or of an index of the whole range
    named     what is shown names the ref, or holds the whole text that it stands for

The laws of a leaf are in `ullage.core.turn.leaves`, those of a range in `ullage.core.turn.spans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ullage.core.history import canon
from ullage.core.history.window import Window
from ullage.core.values.edits import (
    Address,
    Drop,
    Edit,
    Insert,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Restore,
)
from ullage.core.values.effects import Output

Law: TypeAlias = Literal[
    "seams", "nesting", "stays", "text", "run", "kept", "ref", "named"
]
"""A law that can be mended, by its name there."""

LEAVE = "Leave it out of the cuts."
"""What to do about a cut that no law allows."""


class Mend(NamedTuple):
    """What was mended of a cut.

    Attributes:
        law: the law that the cut broke.
        where: the place, such as ``message 12``. Never content.
        what: what was done about it, with its numbers.
    """

    law: Law
    where: str
    what: str


class Broken(Exception):
    """A cut that breaks a law and cannot be mended: the problem, and what to do."""


class Proposal(NamedTuple):
    """The cuts that are checked together, and what has come of them so far.

    Attributes:
        window: the window at the boundary at hand.
        cuts: what was proposed.
        on_arrival: see `ullage.core.turn.checks.check`.
        is_guard: see `ullage.core.turn.checks.check`.
        passed: the cuts that may be shown, by their number among the proposed ones.
        leaves: of these the number of what replaces a leaf.
        ranges: of these the numbers of those of ranges.
        mends: what was mended of them.
    """

    window: Window
    cuts: Sequence[ProposedEdit]
    on_arrival: bool
    is_guard: bool
    passed: dict[int, ProposedEdit]
    leaves: dict[Address, int]
    ranges: list[int]
    mends: list[Mend]

    def where(self, edit: Edit) -> str:
        """The place of an edit, for people."""
        if isinstance(edit, Replace):
            spot = self.window.transcript.locate(edit.address)
            return "a place of no message" if spot is None else f"message {spot[0] + 1}"
        if isinstance(edit, (Restore, Insert)):
            return "the view"
        start, stop = self.window.range_of(edit) or (0, 0)
        return (
            "a range of no messages"
            if start == stop
            else f"messages {start + 1} to {stop}"
        )

    def take(self, number: int, cut: ProposedEdit) -> None:
        """Take in a cut that may be shown, in place of those that it would cover.

        A record is shown again edit by edit, so no place may have two of them.
        """
        edit = cut.edit
        if isinstance(edit, Replace):
            earlier = self.leaves.get(edit.address)
            covered = [] if earlier is None else [earlier]
            self.leaves[edit.address] = number
        else:
            covered = [
                at for at in self.ranges if self._covers(edit, self.passed[at].edit)
            ]
            self.ranges.append(number)
        for at in covered:
            del self.passed[at]
        self.ranges[:] = [at for at in self.ranges if at not in covered]
        self.passed[number] = cut

    def leave_untold(self, edit: Edit) -> None:
        """Take out the account of a summary that is not shown, from the result before it."""
        around = self.window.range_of(edit) if isinstance(edit, ReplaceSpan) else None
        if around is None or not isinstance(edit, ReplaceSpan) or edit.text.strip():
            return
        for place, number in list(self.leaves.items()):
            if holds_account(
                self.window, [self.passed[number].edit], edit.ref, around[0]
            ):
                del self.leaves[place], self.passed[number]

    def _covers(self, edit: Edit, earlier: Edit) -> bool:
        """Whether a range holds all of an earlier one of its kind."""
        if not isinstance(edit, (ReplaceSpan, Drop)) or type(edit) is not type(earlier):
            return False
        start, stop = self.window.range_of(edit) or (0, 0)
        return isinstance(earlier, (ReplaceSpan, Drop)) and self._is_within(
            earlier, start, stop
        )

    def _is_within(self, edit: ReplaceSpan | Drop, start: int, stop: int) -> bool:
        first, last = self.window.range_of(edit) or (0, 0)
        return start <= first and last <= stop

    def mend(self, law: Law, edit: Edit, what: str) -> None:
        """Tell what was mended of a cut, by the law that it broke; see `Mend`."""
        self.mends.append(Mend(law, self.where(edit), what))

    def kept(self, cut: ProposedEdit, needed: Sequence[Output]) -> tuple[Output, ...]:
        """The outputs of a cut, with those that it left out; none under the ref of another."""
        given = {output.ref: output for output in cut.outputs}
        missing = [output for output in needed if given.get(output.ref) != output]
        known = {output.ref for output in needed}
        forged = {
            output.ref
            for output in cut.outputs
            if output.ref not in known
            and canon.ref_of(output.text, output.kind) != output.ref
        }
        if missing:
            what = f"{len(missing):,} of {len(needed):,} texts that it takes out were not kept"
            self.mend("kept", cut.edit, f"{what}; they are")
        if forged:
            self.mend(
                "kept",
                cut.edit,
                f"{len(forged):,} outputs had the ref of another content",
            )
        wrong = forged | {output.ref for output in missing}
        if not wrong:
            return cut.outputs
        return (
            *missing,
            *(output for output in cut.outputs if output.ref not in wrong),
        )

    def is_told(self, ref: str, before: int | None = None) -> bool:
        """Whether an account stands in what replaces a text, before a message or anywhere."""
        edits = [cut.edit for cut in self.passed.values()]
        return holds_account(self.window, edits, ref, before)


def holds_account(
    window: Window, edits: Sequence[Edit], ref: str, before: int | None
) -> bool:
    """Whether one of some edits shows what names a ref, in the message before another."""
    for edit in edits:
        if not isinstance(edit, Replace) or ref not in edit.text:
            continue
        spot = window.transcript.locate(edit.address)
        if spot is not None and before in (None, spot[0] + 1):
            return True
    return False
