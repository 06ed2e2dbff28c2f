"""On arrival: what is new is cut before it is sent, and what was decided here is shown again.

As long as one policy decides, its cuts on arrival are pure and nothing of them is recorded.
Where what decides changed (`ullage.core.turn.resolution`), they become batches of the ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ullage.core.contract.policy import name_of
from ullage.core.history.ledger import PolicyRecord
from ullage.core.history.window import Window
from ullage.core.turn.active_policy import ActivePolicy
from ullage.core.turn.batches import Walk, cuts_of
from ullage.core.turn.names import worded_anew
from ullage.core.turn.openings import accepted
from ullage.core.values.edits import Edit, Replace

_FIRST_SIGHT, _NAMES = "first sight", "names"


def apply_on_arrival(
    walk: Walk, active: ActivePolicy, keys: Sequence[bytes], *, decides: bool
) -> None:
    """Cut what is new on arrival, and show again what the ledger holds for this place.

    Where what decides changed, the ledger holds the cuts of everything before, and from there on
    every cut: others cut otherwise, and all must show the same.
    """
    place = walk.window.transcript.find(keys[-1]) or 0
    for stage in walk.policy.on_arrival if active.changed_at < 0 else ():
        cuts = walk.check(name_of(stage), cuts_of(stage, walk.window), on_arrival=True)
        walk.set_aside(cuts)
        walk.show([cut.edit for cut in cuts], tell=decides)
    for key in keys:
        walk.show_again(key)
    if decides and 0 <= active.changed_at <= place:
        _record(walk, active, place, keys[-1])
    for key in keys:
        for opened in accepted(walk.ledger.at(key).policies):
            _note_all_stale(walk, opened)
            if decides and opened.former and opened.former[-1][0] == key:
                walk.keep(_NAMES, key, worded_anew(walk.window))


def _note_all_stale(walk: Walk, opened: PolicyRecord) -> None:
    """Note that what stands before here may have been sent otherwise than it is shown now."""
    window = walk.window
    first = min(_edited(window), default=window.size) if opened.joined else window.size
    if opened.changed:
        messages = window.transcript.messages
        first = next((at for at in range(window.size) if messages[at].results), first)
    if opened.adds_tools:
        first = -1  # tools stand before everything
    if first < window.size:
        walk.builder.stale.append((first, window.size))


def _edited(window: Window) -> Iterator[int]:
    """Where the view differs from the history."""
    yield from window.changed
    yield from (placed.start for placed in window.summaries)


def _record(walk: Walk, active: ActivePolicy, place: int, key: bytes) -> None:
    """Make batches of the cuts on arrival: of all results where the change is made now."""
    window, builder = walk.window, walk.builder
    if active.superseded:
        if not walk.ledger.at(key).batches:  # what is sent whole now, nobody cuts later
            walk.record(_FIRST_SIGHT, key, (), window.estimate)
        return
    fresh = window.fresh
    for stage in walk.policy.on_arrival:
        builder.look_from(0 if active.is_new and place == active.changed_at else fresh)
        cuts = [
            cut for cut in cuts_of(stage, window) if not _is_edited(window, cut.edit)
        ]
        walk.keep(_FIRST_SIGHT, key, walk.check(name_of(stage), cuts, on_arrival=True))
    builder.look_from(fresh)


def _is_edited(window: Window, edit: Edit) -> bool:
    """Whether something is shown in the place of an edit already."""
    spot = window.transcript.locate(edit.place) if isinstance(edit, Replace) else None
    return spot is not None and spot[1:] in window.shown(spot[0])
