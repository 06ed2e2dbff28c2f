"""Compactions that are begun before they are needed, beside the turns.

    fit ─▶ the view is over the softer threshold ─▶ a model is asked, in a task
    fit ─▶ the task is done: its summary is proposed first, and becomes a batch as any other
    fit ─▶ it is not, and compaction is due: the same range is proposed, so the same is asked, and
           its answer is waited for; where no turn waits (`Summariser.waits`), the deterministic
           summary stands, and what comes late is dropped

What is under way is a range of one chain and the future of its summary, so it can take effect in
no history but its own. It is kept until a history shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from ullage.core.contract.bound import is_frozen
from ullage.core.contract.policy import Policy, Stage, unrecalled
from ullage.core.contract.ranges import before_record, continues
from ullage.core.history.window import Window
from ullage.core.turn.filling import Filled, fill
from ullage.core.turn.settings import Settings
from ullage.core.values.edits import ProposedEdit, ReplaceSpan, Skipped
from ullage.core.values.effects import Steps
from ullage.core.values.events import Event

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

    from ullage.session.receipts.writer import ReceiptWriter
    from ullage.session.spend.budget import Budget
    from ullage.session.summarise import Summaries
    from ullage.session.view import RequestInfo

    Summary: TypeAlias = asyncio.Task[Filled] | Future[Filled]

_KEPT = 4
"""So many are kept for histories that are not shown now: branches alternate."""


class PendingCompaction(NamedTuple):
    """A compaction that was begun.

    Attributes:
        cut: the range, its deterministic summary, and what a model is asked for.
        task: has a model add to it.
    """

    cut: ProposedEdit
    task: Summary

    @property
    def filled(self) -> Filled | None:
        """The outcome; None: nothing yet, or it failed."""
        task = self.task
        if not task.done() or task.cancelled() or task.exception():
            return None
        return task.result()

    def proposed(self, window: Window) -> ProposedEdit:
        """The cut with the model's words; without them where they are not there, or refused."""
        filled = self.filled
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


def proposing(
    policy: Policy,
    pending: Sequence[PendingCompaction],
    *,
    waits: bool = True,
) -> Policy:
    """A policy that uses pending compactions.

    A finished one is proposed before all else. Where a stage asks for a summary and one of the same
    range is under way, that one is proposed in its place.

    Args:
        policy: the policy of the session.
        pending: the compactions that were begun. Where there are none, and turns wait, the policy
            is returned as it is.
        waits: whether a turn waits for a summary. False: where none is finished, a stage's cut
            goes without a model's words.
    """
    if not pending and waits:
        return policy
    bare = _proposing(unrecalled(policy), pending, waits=waits)
    return replace(
        _proposing(policy, pending, waits=waits), without_recall=lambda _: bare
    )


def _proposing(
    policy: Policy, pending: Sequence[PendingCompaction], *, waits: bool
) -> Policy:
    finished = [compaction for compaction in pending if compaction.task.done()]
    usable = pending if waits else finished
    stages = [
        _pending_first(stage, usable, waits=waits)
        for stage in policy.under_pressure
    ]
    on_request = policy.on_request and _pending_first(
        policy.on_request, usable, waits=waits
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
    stage: Stage, pending: Sequence[PendingCompaction], *, waits: bool
) -> Stage:
    """The stage; where it asks for a model's summary, a pending one is proposed instead."""

    @wraps(getattr(stage, "func", stage))
    def with_pending(window: Window, /) -> Sequence[ProposedEdit] | Skipped:
        cuts = stage(window)
        if isinstance(cuts, Skipped):
            return cuts
        if all(cut.brief is None for cut in cuts):
            return cuts
        ready = prepared(window, pending=pending)
        if ready or waits:
            return ready or cuts
        return [cut._replace(brief=None) for cut in cuts]

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
    if _is_lost(compaction.task):
        return False
    if compaction.continues(window) or not compaction.task.done():
        return True
    edit = compaction.cut.edit
    # a branch that this history does not hold may still be shown again
    return (
        isinstance(edit, ReplaceSpan)
        and window.transcript.find(edit.upto) is None
    )


def in_background(work: Callable[[], Filled]) -> Future[Filled]:
    """The future of what runs in a thread of its own, which does not keep the process alive.

    Args:
        work: what is run.
    """
    import threading
    from concurrent.futures import Future  # it imports logging

    future: Future[Filled] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it ends this thread and nothing else
            future.set_exception(error)
        else:
            future.set_result(result)

    thread = threading.Thread(
        target=run, name="ullage-compaction", daemon=True
    )
    _threads[future] = thread
    thread.start()
    return future


_threads: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The threads of what is under way. A fork has none of its parent's."""


def _is_lost(task: Summary) -> bool:
    """Whether what is under way has no thread any more: this process is a fork."""
    thread = _threads.get(task)
    return thread is not None and not task.done() and not thread.is_alive()


# ── of both sessions ─────────────────────────────────────────────────────────────────────


class AheadMixin:
    """The part of a session that begins compactions beside its turns."""

    _pending: tuple[PendingCompaction, ...] = ()
    settings: Settings
    budget: Budget
    _summaries: Summaries | None
    _newest: RequestInfo
    _receipts: ReceiptWriter
    emit: Callable[[Event], None]
    _change: Any
    _summary_request: Any

    @property
    def preparing(self) -> Any:
        """The compaction under way beside the turns, to be awaited or cancelled, or None."""
        tasks = (
            compaction.task
            for compaction in self._pending
            if not compaction.task.done()
        )
        return next(tasks, None)

    def _policy_now(self) -> Policy:
        policy = self.settings.policy
        summaries = self._summaries
        if summaries is None:
            return policy
        waits = summaries.summariser.waits
        return proposing(policy, self._pending, waits=waits)

    def _due_ahead(self) -> ProposedEdit | None:
        """The compaction to be begun now, if the view is over the softer threshold.

        One conversation has one under way at a time.
        """
        if self._summaries is None or not self._summaries.may_ask:
            return None
        window = self._window_now()
        self._pending = still_of_use(self._pending, window)
        if self.preparing is not None or any(
            compaction.continues(window) for compaction in self._pending
        ):
            return None
        return due(self.settings.policy.ahead, window)

    def _window_now(self) -> Window:
        newest = self._newest
        return newest.window if newest.working is None else newest.working

    def _filling(self, cut: ProposedEdit) -> Steps[Filled]:
        """Steps in which a model adds to a cut."""
        meter = self._window_now().meter
        return fill(cut, self._summary_request(meter.model), meter.text)

    def _begun(self, cut: ProposedEdit, task: Summary) -> None:
        """Note a compaction that was begun; what it costs is counted when it is over."""
        begun = PendingCompaction(cut, task)
        self._pending = (*self._pending, begun)
        model = self._newest.model
        task.add_done_callback(lambda _: self._count_beside(begun, model))
        self.emit(preparing_event())

    def _count_beside(self, begun: PendingCompaction, model: str) -> None:
        """Count what was spent beside the turns: nobody may ask for the next one."""
        assert self._summaries is not None
        filled = begun.filled
        is_refused = filled is not None and bool(filled.refused)
        spent = self._summaries.take(is_refused=is_refused)
        if spent.usage.total_tokens:
            self._change(lambda state: (state.with_spent(spent), ()))
            self._receipts.paid_beside(spent, model)
