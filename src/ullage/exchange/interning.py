"""For who reads every request anew from JSON: what a session remembers of it is held once.

A body that is read makes a string of every text, and a conversation's next body makes them all
again. Put in their place, the messages that are remembered cost no room, and next to no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.history import canon
from ullage.history.snapshots import is_written_alike, not_same
from ullage.session.core import SessionCore
from ullage.turn.memo import Line
from ullage.turn.turn import wire_of

_MOST_AROUND = 64


class Around:
    """What stands around histories, tools above all: held once where conversations share it.

    The newest of each tenant and format is kept, of the tenants that were met last.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def give(self, session: SessionCore, tenant: str, wire: str) -> None:
        """Have a session that has read nothing yet begin with what its tenant sent last."""
        memo = session._kept.memo
        if memo is not None and memo.envelopes.last is None:
            memo.envelopes.last = self._known.get((tenant, wire))

    def take(self, session: SessionCore, tenant: str, wire: str) -> None:
        """Keep what a session has read."""
        memo = session._kept.memo
        if memo is None or memo.envelopes.last is self._known.get((tenant, wire)):
            return
        self._known[tenant, wire] = memo.envelopes.last
        if len(self._known) > _MOST_AROUND:
            self._known.pop(next(iter(self._known)), None)


def interned(session: SessionCore, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """A request with the messages that are remembered in the place of those like them.

    Args:
        session: that will fit it. What it is working on just now is not remembered.
        request: as for `Session.fit`, of plain JSON; never changed.

    Returns:
        A request that says the same. The messages in it are the session's: nobody may write
        into them.
    """
    memo, settings = session._kept.memo, session.settings
    wire = wire_of(session.state, settings)
    if memo is None or wire is None or type(request.get(wire.key)) is not list:
        return request
    leading = len(wire.leading(request))
    raws, root = request[wire.key][leading:], canon.root(wire.name, settings.tenant)
    for line in memo.lines:
        if line.transcript.chain[0] == root:
            known = _like(line, raws)
            raws[: len(known)] = known
    return {**request, wire.key: [*request[wire.key][:leading], *raws]}


def _like(line: Line, raws: Sequence[Any]) -> list[Any]:
    """The messages of a line, as far as these are like them."""
    known = line.copies[: len(raws)]
    for index, copy, raw in not_same(known, raws):
        if copy != raw:
            return known[:index]
        if not is_written_alike(raw, copy):
            known[index] = raw
    return known


def newest_request(session: SessionCore) -> dict[str, Any] | None:
    """The newest request as it came, with the whole history; None if it is not at hand.

    The values in it are the session's: nobody may write into them.
    """
    memo, wire = session._kept.memo, wire_of(session.state, session.settings)
    if wire is None or memo is None or memo.envelopes.last is None or not memo.lines:
        return None
    outside, leading = memo.envelopes.last[:2]
    return {**outside, wire.key: [*leading, *memo.lines[0].copies]}
