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

Law: TypeAlias = Literal["seams", "run", "kept", "ref", "named"]
"""A law whose breach can be repaired, by its name at the head of the file that enforces it."""

LEAVE = "Leave it out of the cuts."
"""What to do about a cut that no law allows."""


class Mend(NamedTuple):
    """What was repaired of a cut.

    Attributes:
        law: the law that the cut broke.
        where: the place, such as ``message 12``. Never content.
        remedy: what was done about it, with its numbers.
    """

    law: Law
    where: str
    remedy: str


class Broken(Exception):
    """A cut that breaks a law and cannot be repaired: the problem, and what to do."""


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
        mends: what was repaired of them.
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
            location = self.window.transcript.locate(edit.address)
            if location is None:
                return "a place of no message"
            return f"message {location[0] + 1}"
        if isinstance(edit, (Restore, Insert)):
            return "the view"
        start, stop = self.window.range_of(edit) or (0, 0)
        if start == stop:
            return "a range of no messages"
        return f"messages {start + 1} to {stop}"

    def take(self, number: int, cut: ProposedEdit) -> None:
        """Take in a cut that may be shown, in place of those that it would cover.

        A record is shown again edit by edit, so no place may have two of them.
        """
        edit = cut.edit
        covered: list[int] = []
        if isinstance(edit, Replace):
            if edit.address in self.leaves:
                covered.append(self.leaves[edit.address])
            self.leaves[edit.address] = number
        else:
            for earlier in self.ranges:
                if self._covers(edit, self.passed[earlier].edit):
                    covered.append(earlier)
            self.ranges.append(number)
        for earlier in covered:
            del self.passed[earlier]
        self.ranges[:] = [one for one in self.ranges if one not in covered]
        self.passed[number] = cut

    def leave_untold(self, edit: Edit) -> None:
        """Take out the account of a summary that is not shown, from the result before it."""
        if not isinstance(edit, ReplaceSpan) or edit.text.strip():
            return
        span = self.window.range_of(edit)
        if span is None:
            return
        for place, number in list(self.leaves.items()):
            replacing = [self.passed[number].edit]
            if holds_account(self.window, replacing, edit.ref, span[0]):
                del self.leaves[place]
                del self.passed[number]

    def _covers(self, edit: Edit, earlier: Edit) -> bool:
        """Whether a range holds all of an earlier one of its kind."""
        if not isinstance(edit, (ReplaceSpan, Drop)):
            return False
        if not isinstance(earlier, (ReplaceSpan, Drop)) or type(
            edit
        ) is not type(earlier):
            return False
        start, stop = self.window.range_of(edit) or (0, 0)
        begin, end = self.window.range_of(earlier) or (0, 0)
        return start <= begin and end <= stop

    def mend(self, law: Law, edit: Edit, remedy: str) -> None:
        """Tell what was repaired of a cut, by the law that it broke."""
        mend = Mend(law, self.where(edit), remedy)
        self.mends.append(mend)

    def kept(
        self, cut: ProposedEdit, needed: Sequence[Output]
    ) -> tuple[Output, ...]:
        """The outputs of a cut, with those that it left out; none under the ref of another."""
        outputs = {output.ref: output for output in cut.outputs}
        missing = [
            output for output in needed if outputs.get(output.ref) != output
        ]
        needed_refs = {output.ref for output in needed}
        forged: set[str] = set()
        for output in cut.outputs:
            if output.ref not in needed_refs and not _has_own_ref(output):
                forged.add(output.ref)
        if missing:
            remedy = f"{len(missing):,} of {len(needed):,} texts that it takes out were not kept"
            self.mend("kept", cut.edit, f"{remedy}; they are")
        if forged:
            remedy = f"{len(forged):,} outputs had the ref of another content"
            self.mend("kept", cut.edit, remedy)
        wrong = forged.union(output.ref for output in missing)
        if not wrong:
            return cut.outputs
        right = [output for output in cut.outputs if output.ref not in wrong]
        return (*missing, *right)

    def is_told(self, ref: str, before: int | None = None) -> bool:
        """Whether an account stands in what replaces a text, before a message or anywhere."""
        edits = [cut.edit for cut in self.passed.values()]
        return holds_account(self.window, edits, ref, before)


def _has_own_ref(output: Output) -> bool:
    """Whether an output stands under the ref of its own content."""
    return canon.ref_of(output.text, output.kind) == output.ref


def holds_account(
    window: Window, edits: Sequence[Edit], ref: str, before: int | None
) -> bool:
    """Whether one of some edits shows what names a ref, in the message before another."""
    for edit in edits:
        if not isinstance(edit, Replace) or ref not in edit.text:
            continue
        location = window.transcript.locate(edit.address)
        if location is None:
            continue
        if before is None or before == location[0] + 1:
            return True
    return False
