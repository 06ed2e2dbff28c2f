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


class Begun(NamedTuple):
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
        edit = cut.edit
        return cut._replace(
            edit=before_record(window, edit) if isinstance(edit, ReplaceSpan) else edit
        )

    def continues(self, window: Window) -> bool:
        """Whether it can take effect in this window now."""
        edit = self.cut.edit
        is_given_up = self.task.cancelled()
        return (
            not is_given_up
            and isinstance(edit, ReplaceSpan)
            and continues(window, edit)
        )


def begun() -> Event:
    """The event that says that one was begun."""
    why = "the view was over the threshold at which a summary is begun"
    return Event(kind="preparing", where="beside the turn", why=why)


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


def proposing(policy: Policy, begun: Sequence[Begun]) -> Policy:
    """A policy that goes on from what was begun.

    What is ready is proposed before all else. Where a stage wants a summary and one is under way,
    that one is proposed in its place.
    """
    if not begun:
        return policy
    bare = _proposing(unrecalled(policy), begun)
    return replace(_proposing(policy, begun), without_recall=lambda _: bare)


def _proposing(policy: Policy, begun: Sequence[Begun]) -> Policy:
    ready = partial(prepared, begun=[each for each in begun if each.task.done()])
    stages = (ready, *(_begun_first(stage, begun) for stage in policy.under_pressure))
    asked = policy.on_request and _begun_first(policy.on_request, begun)
    return replace(policy, under_pressure=stages, on_request=asked)


def prepared(window: Window, *, begun: Iterable[Begun]) -> Sequence[ProposedEdit]:
    """A stage: what was begun for this history, to go on from its newest summary."""
    if window.size < len(window.transcript) or is_frozen(window):
        return ()
    return [each.proposed(window) for each in begun if each.continues(window)][:1]


def _begun_first(stage: Stage, begun: Sequence[Begun]) -> Stage:
    """The stage; where it wants a model's summary, what was begun goes first."""

    @wraps(getattr(stage, "func", stage))
    def wanted(window: Window, /) -> Sequence[ProposedEdit] | Skipped:
        cuts = stage(window)
        is_asking = not isinstance(cuts, Skipped) and any(
            cut.brief is not None for cut in cuts
        )
        return (is_asking and prepared(window, begun=begun)) or cuts

    return wanted


def still_of_use(begun: Iterable[Begun], window: Window) -> tuple[Begun, ...]:
    """Without what this history shows by now, or has gone beyond; the newest few."""
    find = window.transcript.find
    return tuple(
        each
        for each in begun
        if each.continues(window)
        or not each.task.done()
        or (isinstance(each.cut.edit, ReplaceSpan) and find(each.cut.edit.upto) is None)
    )[-_KEPT:]
