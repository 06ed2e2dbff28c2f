"""The conversation of a session as it stands, told as one of a store is.

So whatever shows a stored conversation (`ullage.session.stored`) shows one that is at hand, with
its real texts behind it, and whether or not its store keeps outlines.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ullage.core.history.hand import hand_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.outline import whole_outline
from ullage.core.values.effects import Find, Steps
from ullage.core.values.receipts import name_of
from ullage.session.prompt_cache.sent import sent_in
from ullage.session.stored.conversation import StoredConversation
from ullage.session.view import RequestInfo


def current(session: Any) -> Steps[StoredConversation | None]:
    """The conversation of a session's newest view, with what other workers decided meanwhile.

    Args:
        session: a `Session` or an `AsyncSession`; it is only read.

    Returns:
        The conversation; None where nothing was fitted yet.

    Raises:
        StoreError: the store failed.
    """
    newest: RequestInfo | None = session._state.newest
    if newest is None or not newest.size:
        return None
    transcript = newest.transcript
    ledger: Ledger = yield from session._refresh_ledger(newest)
    outline = whole_outline(
        newest.window,
        newest.size,
        wire=newest.wire.name,
        tokens=newest.estimate,
    )
    outline = replace(
        outline,
        agent=name_of(session.settings.agent),
        client_session=name_of(session.settings.client_session),
    )
    records = yield Find(tuple(transcript.chain))
    return StoredConversation(
        tenant=session.settings.tenant,
        outline=outline,
        outlines=(outline,),
        messages=outline.messages,
        transcript=transcript,
        ledger=ledger,
        hand=hand_of(transcript, ledger),
        sent=sent_in(records, transcript),
    )
