"""First sight: what is new is cut before it is sent, and what was decided here is shown again.

As long as one policy decides, its cuts at first sight are pure and nothing of them is recorded.
Where what decides changed (`ullage.turn.terms`), they become batches of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ullage.history.builder import WindowBuilder
from ullage.history.ledger import Opened
from ullage.history.window import Window
from ullage.stages.policy import Policy
from ullage.turn.batches import Fitted, cuts_of, keep, set_aside, show, show_again
from ullage.turn.terms import Terms
from ullage.values.edits import Batch, Edit, Replace

__all__ = ["take_in"]

_FIRST_SIGHT = "first sight"


def take_in(
    builder: WindowBuilder,
    policy: Policy,
    terms: Terms,
    keys: Sequence[bytes],
    fitted: Fitted,
    *,
    decides: bool,
) -> None:
    """Cut what is new at first sight, and show again what the ledger holds for this place.

    Where what decides changed, the ledger holds the cuts of everything before, and from there on
    every cut: others cut otherwise, and all must show the same.
    """
    window = builder.window
    place = window.transcript.find(keys[-1]) or 0
    if terms.changed_at < 0:
        _first_sight(builder, policy, fitted, tell=decides)
    for key in keys:
        show_again(builder, key, fitted)
    if decides and 0 <= terms.changed_at <= place:
        _record_first_sight(builder, policy, terms, place, keys[-1], fitted)
    for key in keys:
        for opened in fitted.ledger.at(key).opened:
            _note_all_stale(builder, opened)


def _note_all_stale(builder: WindowBuilder, opened: Opened) -> None:
    """Note that what stands before here may have been sent otherwise than it is shown now."""
    window = builder.window
    first = min(_edited(window), default=window.size) if opened.joined else window.size
    if opened.changed:
        messages = window.transcript.messages
        first = next((at for at in range(window.size) if messages[at].results), first)
    if opened.adds_tools:
        first = -1  # tools stand before everything
    if first < window.size:
        builder.stale.append((first, window.size))


def _edited(window: Window) -> Iterator[int]:
    """Where the view differs from the history."""
    yield from window.changed
    yield from (placed.start for placed in window.summaries)


def _first_sight(builder: WindowBuilder, policy: Policy, fitted: Fitted, *, tell: bool) -> None:
    for stage in policy.at_first_sight:
        cuts = cuts_of(stage, builder.window)
        if cuts:
            set_aside(cuts, fitted)
            show(builder, [cut.edit for cut in cuts], fitted, tell=tell)


def _record_first_sight(
    builder: WindowBuilder,
    policy: Policy,
    terms: Terms,
    place: int,
    key: bytes,
    fitted: Fitted,
) -> None:
    """Make batches of the cuts at first sight: of all results where the change is made now."""
    window = builder.window
    if terms.superseded:
        if not fitted.ledger.at(key).batches:  # what is sent whole now, nobody cuts later
            batch = Batch(_FIRST_SIGHT, policy.name, (), window.estimate, window.estimate)
            fitted.ledger, record = fitted.ledger.with_batch(key, batch)
            fitted.records.append(record)
        return
    fresh = window.fresh
    for stage in policy.at_first_sight:
        builder.look_from(0 if terms.is_new and place == terms.changed_at else fresh)
        cuts = [cut for cut in cuts_of(stage, window) if not _is_edited(window, cut.edit)]
        keep(builder, _FIRST_SIGHT, policy, key, cuts, fitted)
    builder.look_from(fresh)


def _is_edited(window: Window, edit: Edit) -> bool:
    """Whether something is shown in the place of an edit already."""
    spot = window.transcript.locate(edit.place) if isinstance(edit, Replace) else None
    return spot is not None and spot[1:] in window.shown(spot[0])
