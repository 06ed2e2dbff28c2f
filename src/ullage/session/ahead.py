"""Compactions that are begun before they are needed, beside the turns of an event loop.

    fit ─▶ the view is over the softer threshold ─▶ a model is asked, in a task
    fit ─▶ the task is done: its summary is proposed first, and becomes a batch as any other
    fit ─▶ it is not, and compaction is due: the same range is proposed, so the same is asked, and
           its answer is waited for

What is under way is a range of one chain and the future of its summary, so it can take effect in
no history but its own. It is kept until a history shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial, wraps
from typing import NamedTuple

from msgspec.structs import replace

from ullage.core.contract.bound import is_frozen
from ullage.core.contract.policy import Policy, Stage, unrecalled
from ullage.core.contract.ranges import before_record, continues
from ullage.core.history.window import Window
from ullage.core.turn.filling import Filled
from ullage.core.values.edits import ProposedEdit, ReplaceSpan, Skipped
from ullage.core.values.events import Event

_KEPT = 4
"""So many are kept for histories that are not shown now: branches alternate."""


class PendingCompaction(NamedTuple):
    """A compaction that was begun.

    Attributes:
        cut: the range, its deterministic summary, and what a model is asked for.
        task: has a model add to it.
    """

    cut: ProposedEdit
    task: asyncio.Task[Filled]

    def proposed(self, window: Window) -> ProposedEdit:
        """The cut with the model's words; without them where they are not there, or refused."""
        filled = self.task.result() if self.task.done() else None
        cut = self.cut if filled is None or filled.refused else filled.cut
        if isinstance(cut.edit, ReplaceSpan):
            return cut._replace(edit=before_record(window, cut.edit))
        return cut

    def continues(self, window: Window) -> bool:
        """Whether it can take effect in this window now."""
        edit = self.cut.edit
        if self.task.cancelled() or not isinstance(edit, ReplaceSpan):
            return False
        return continues(window, edit)


def preparing_event() -> Event:
    """The event that tells that a compaction was begun."""
    reason = "the view was over the threshold at which a summary is begun"
    return Event(kind="preparing", where="beside the turn", why=reason)


def due(stage: Stage | None, window: Window) -> ProposedEdit | None:
    """The compaction that is to be begun now, if there is one and a model has to add to it.

    Args:
        stage: `ullage.Policy.ahead`.
        window: the window as a turn left it.
    """
    if stage is None or is_frozen(window):
        return None
    cuts = stage(window)
    if isinstance(cuts, Skipped) or not cuts or cuts[0].brief is None:
        return None
    return cuts[0]


def proposing(policy: Policy, pending: Sequence[PendingCompaction]) -> Policy:
    """A policy that uses pending compactions.

    A finished one is proposed before all else. Where a stage asks for a summary and one of the same
    range is under way, that one is proposed in its place.

    Args:
        policy: the policy of the session.
        pending: the compactions that were begun. Where there are none, the policy is returned as
            it is.
    """
    if not pending:
        return policy
    bare = _proposing(unrecalled(policy), pending)
    return replace(_proposing(policy, pending), without_recall=lambda _: bare)


def _proposing(policy: Policy, pending: Sequence[PendingCompaction]) -> Policy:
    finished = [compaction for compaction in pending if compaction.task.done()]
    stages = [
        _pending_first(stage, pending) for stage in policy.under_pressure
    ]
    on_request = policy.on_request and _pending_first(
        policy.on_request, pending
    )
    return replace(
        policy,
        under_pressure=(partial(prepared, pending=finished), *stages),
        on_request=on_request,
    )


def prepared(
    window: Window, *, pending: Iterable[PendingCompaction]
) -> Sequence[ProposedEdit]:
    """A stage that proposes the pending compaction that goes on from the newest summary.

    Args:
        window: the window; nothing is proposed unless it shows the whole history.
        pending: the compactions to choose from, oldest first.

    Returns:
        One cut, or none.
    """
    if window.size < len(window.transcript) or is_frozen(window):
        return ()
    for compaction in pending:
        if compaction.continues(window):
            return [compaction.proposed(window)]
    return ()


def _pending_first(
    stage: Stage, pending: Sequence[PendingCompaction]
) -> Stage:
    """The stage; where it asks for a model's summary, a pending one is proposed instead."""

    @wraps(getattr(stage, "func", stage))
    def with_pending(window: Window, /) -> Sequence[ProposedEdit] | Skipped:
        cuts = stage(window)
        if isinstance(cuts, Skipped):
            return cuts
        if all(cut.brief is None for cut in cuts):
            return cuts
        return prepared(window, pending=pending) or cuts

    return with_pending


def still_of_use(
    pending: Iterable[PendingCompaction], window: Window
) -> tuple[PendingCompaction, ...]:
    """The newest pending compactions that may still take effect in some history.

    Left out are those that this history shows by now, or has gone beyond.
    """
    useful = [item for item in pending if _is_of_use(item, window)]
    return tuple(useful[-_KEPT:])


def _is_of_use(compaction: PendingCompaction, window: Window) -> bool:
    if compaction.continues(window) or not compaction.task.done():
        return True
    edit = compaction.cut.edit
    # a branch that this history does not hold may still be shown again
    return (
        isinstance(edit, ReplaceSpan)
        and window.transcript.find(edit.upto) is None
    )
