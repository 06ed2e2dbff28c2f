"""For who reads every request anew from JSON: what a session remembers of it is held once.

A body that is read makes a string of every text, and a conversation's next body makes them all
again. Put in their place, the messages that are remembered cost no room, and next to no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ullage.history import canon
from ullage.turn.turn import wire_of

if TYPE_CHECKING:
    from ullage.session.core import SessionCore

__all__ = ["interned", "newest_request"]


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
    root = canon.root(wire.name, settings.tenant)
    raws = memo.interned(request[wire.key], len(wire.leading(request)), root)
    return {**request, wire.key: raws}


def newest_request(session: SessionCore) -> dict[str, Any] | None:
    """The newest request as it came, with the whole history; None if it is not at hand.

    The values in it are the session's: nobody may write into them.
    """
    memo, wire = session._kept.memo, wire_of(session.state, session.settings)
    return None if memo is None or wire is None else memo.newest(wire.key)
