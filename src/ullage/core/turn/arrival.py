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

_FIRST_SIGHT = "first sight"
"""What the ledger calls the stage of cuts on arrival."""
_NAMES = "names"


def apply_on_arrival(
    walk: Walk, active: ActivePolicy, keys: Sequence[bytes], *, decides: bool
) -> None:
    """Cut what is new on arrival, and show again what the ledger holds for this place.

    Where what decides changed, the ledger holds the cuts of everything before, and from there on
    every cut: others cut otherwise, and all must show the same.

    Args:
        walk: the window, with the messages that are new here.
        active: the policy in force.
        keys: the chain since the last boundary; the last one is this place.
        decides: whether nothing was decided here before.
    """
    if active.changed_at < 0:
        _cut(walk, tell=decides)
    for key in keys:
        walk.show_again(key)
    place = walk.window.transcript.find(keys[-1]) or 0
    if decides and 0 <= active.changed_at <= place:
        _record(walk, active, place, keys[-1])
    for key in keys:
        for policy in accepted(walk.ledger.at(key).policies):
            _note_all_stale(walk, policy)
            if decides and policy.former and policy.former[-1][0] == key:
                walk.keep(_NAMES, key, worded_anew(walk.window))


def _cut(walk: Walk, *, tell: bool) -> None:
    """Have the stages cut what is new; nothing of it is recorded."""
    for stage in walk.policy.on_arrival:
        proposal = cuts_of(stage, walk.window)
        cuts = walk.check(name_of(stage), proposal, on_arrival=True)
        walk.set_aside(cuts)
        walk.show([cut.edit for cut in cuts], tell=tell)


def _note_all_stale(walk: Walk, policy: PolicyRecord) -> None:
    """Note that what stands before here may have been sent otherwise than it is shown now."""
    window = walk.window
    start = window.size
    if policy.joined:
        start = min(_edited(window), default=start)
    if policy.changed:
        start = _first_result(window, start)
    if policy.adds_tools:
        start = -1  # tools stand before everything
    if start < window.size:
        walk.builder.stale.append((start, window.size))


def _first_result(window: Window, default: int) -> int:
    """The first message that holds a result."""
    for index in range(window.size):
        if window.transcript.messages[index].results:
            return index
    return default


def _edited(window: Window) -> Iterator[int]:
    """Where the view differs from the history."""
    yield from window.changed
    for placed in window.summaries:
        yield placed.start


def _record(walk: Walk, active: ActivePolicy, place: int, key: bytes) -> None:
    """Make batches of the cuts on arrival: of all results where the change is made now."""
    window = walk.window
    builder = walk.builder
    if active.superseded:
        # what is sent whole now, nobody cuts later
        if not walk.ledger.at(key).batches:
            walk.record(_FIRST_SIGHT, key, (), window.estimate)
        return
    fresh = window.fresh
    is_change = active.is_new and place == active.changed_at
    for stage in walk.policy.on_arrival:
        builder.look_from(0 if is_change else fresh)
        proposal = cuts_of(stage, window)
        cuts = [cut for cut in proposal if not _is_edited(window, cut.edit)]
        lawful = walk.check(name_of(stage), cuts, on_arrival=True)
        walk.keep(_FIRST_SIGHT, key, lawful)
    builder.look_from(fresh)


def _is_edited(window: Window, edit: Edit) -> bool:
    """Whether something is shown in the place of an edit already."""
    if not isinstance(edit, Replace):
        return False
    location = window.transcript.locate(edit.address)
    if location is None:
        return False
    return location[1:] in window.shown(location[0])
