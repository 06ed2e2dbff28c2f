"""The laws of a cut, checked where it becomes part of a view, whoever proposed it.

A stage proposes cuts: one of ours, a preset's, a user's, the guard, or one that shows what a
model wrote. What passes here is legal on every wire and can be opened again, so no stage has to
be trusted. What can be repaired is repaired (`Mend`); of the rest no part is shown (`StageError`).

    a leaf is replaced (`Replace`)            place, moment, signed, text           leaves.py
    a range is summarised (`ReplaceSpan`)     seams, nesting, stays, text           spans.py
    reasoning is left out (`Drop`)            run                                   spans.py
    each of them                              kept, ref, named                      cuts.py

Each law stands at the head of the file that enforces it.

A record of the ledger is checked by `is_lawful`: by those of these laws that the history alone
decides, so that every worker comes to the same at any later request.

Work is proportional to what a cut touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ullage.core.errors import StageError
from ullage.core.history.window import Window
from ullage.core.turn import leaves, spans
from ullage.core.turn.again import may_be_added
from ullage.core.turn.cuts import LEAVE, Broken, Mend, Proposal
from ullage.core.values.edits import (
    Drop,
    Edit,
    Insert,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Restore,
)

_ENDS = (
    "Take both ends from window.transcript.chain, the first before the second."
)
_LATER = "Return it from a stage under pressure."


class Checked(NamedTuple):
    """Cuts that keep the laws.

    Attributes:
        cuts: these, in the order in which they were proposed.
        mends: what was repaired of them.
        errors: why each of the others is not among them.
    """

    cuts: list[ProposedEdit]
    mends: list[Mend]
    errors: list[StageError]


def check(
    window: Window,
    stage: str,
    cuts: Sequence[ProposedEdit],
    *,
    on_arrival: bool = False,
    is_guard: bool = False,
) -> Checked:
    """The cuts that may be shown, repaired where they had to be.

    Args:
        window: the window at the boundary at hand.
        stage: the name of whoever proposed them.
        cuts: what was proposed. Each is checked beside those before it.
        on_arrival: whether they are made before what is new was ever sent.
        is_guard: whether there would be no view without them: then what is said may be cut too.
    """
    proposal = Proposal(window, cuts, on_arrival, is_guard, {}, {}, [], [])
    errors = list[StageError]()
    # the account of a summary may stand in a result, so results are checked first
    order = sorted(
        range(len(cuts)),
        key=lambda number: isinstance(cuts[number].edit, ReplaceSpan),
    )
    for number in order:
        try:
            cut = _lawful(proposal, cuts[number])
        except Broken as broken:
            errors.append(
                StageError(
                    stage, proposal.where(cuts[number].edit), *broken.args
                )
            )
            cut = None
        if cut is None:
            proposal.leave_untold(cuts[number].edit)
        else:
            proposal.take(number, cut)
    return Checked(
        [proposal.passed[number] for number in sorted(proposal.passed)],
        proposal.mends,
        errors,
    )


def is_lawful(window: Window, edit: Edit, batch: Sequence[Edit]) -> bool:
    """Whether an edit of a record keeps the laws that the history alone decides.

    An edit of what this history does not hold has no effect, and breaks none.

    Args:
        window: the window at the boundary at hand.
        edit: the edit.
        batch: all edits of its record.
    """
    if isinstance(edit, (Drop, Restore)):
        return True
    if isinstance(edit, Insert):
        return may_be_added(window, edit)
    if isinstance(edit, Replace):
        return leaves.is_lawful(window, edit)
    return spans.is_lawful(window, edit, batch)


def _lawful(proposal: Proposal, cut: ProposedEdit) -> ProposedEdit | None:
    """The cut as it may be shown; None where it would hide nothing."""
    edit = cut.edit
    if isinstance(edit, Replace):
        return leaves.replacement(proposal, cut, edit)
    if isinstance(edit, (Restore, Insert)):
        raise Broken("only a user's decision shows this", LEAVE)
    if proposal.on_arrival:
        raise Broken(
            "on arrival only new texts are replaced, and this is a range",
            _LATER,
        )
    start, stop = proposal.window.range_of(edit) or (0, 0)
    if start == stop:
        problem = f"it names no range of the {proposal.window.size:,} messages"
        raise Broken(problem, _ENDS)
    if isinstance(edit, ReplaceSpan):
        return spans.summary(proposal, cut, edit, start, stop)
    return spans.drop(proposal, cut, edit, start, stop)
