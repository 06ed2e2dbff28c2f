"""What the store has learnt of a history since it was last looked at.

Any number of sessions may work on one conversation. At every turn each looks up the keys behind its
last decision, and one record that says whether anything was decided further back (`latest`). What
it finds there holds, whoever wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.history.ledger import Ledger, latest_key
from ullage.core.history.transcript import Transcript
from ullage.core.turn import changes
from ullage.core.values.effects import Find, Steps

if TYPE_CHECKING:
    from ullage.core.turn.caches import HistoryCache


def look_up(history: HistoryCache, ledger: Ledger) -> Steps[Ledger]:
    """Have the store asked what it holds for a history.

    Where something was decided behind what is already walked, the history is walked again.

    Returns:
        The ledger with what the store holds.
    """
    transcript = history.transcript
    window = None if history.builder is None else history.builder.window
    walked = 0 if window is None else transcript.decision_index(window.size)
    pointer = latest_key(transcript.chain)
    shown_key = changes.key_of(transcript)
    beside = (pointer,) if shown_key is None else (pointer, shown_key)
    is_whole = window is None or history.latest is None
    start = 1 if is_whole else max(walked, 1)
    records = yield Find((*beside, *transcript.chain[start:]))
    ledger, changed = ledger.merged(records)
    latest = ledger.at(pointer).latest
    if not is_whole and latest != history.latest:
        records = yield Find(tuple(transcript.chain[1:start]))
        ledger, further = ledger.merged(records)
        changed |= further
    decided = changed.difference(beside)
    if window is not None:
        is_behind = _reaches_back(transcript, decided, walked)
        if is_behind or _is_reopened(history, ledger, decided, walked):
            history.invalidate()
    history.latest = latest
    return ledger


def _reaches_back(
    transcript: Transcript, changed: frozenset[bytes], walked: int
) -> bool:
    """Whether anything changed at a place that was walked already."""
    places = [transcript.find(key) for key in changed]
    return any(place is not None and place <= walked for place in places)


def _is_reopened(
    history: HistoryCache,
    ledger: Ledger,
    decided: frozenset[bytes],
    walked: int,
) -> bool:
    """Whether another policy is in force from one of the places that are new.

    Another history of this session may have been opened at a place that is not walked yet. Of one
    that was begun by another session `resolve_policy` sees it.
    """
    unwalked = (
        []
        if history.active is None
        else history.transcript.chain[walked + 1 :]
    )
    return any(ledger.at(key).policies for key in (*decided, *unwalked))
