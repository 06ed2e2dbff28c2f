"""What of a request has a say in the view, and stands in no history: it goes to the ledger.

    unrecalled    the model may not call the recall tools in this reply: its tool is chosen for it,
                  or stands in a list of those that have to be called; or they could not be added,
                  because the provider refuses them or has no room for more. Nothing is cut on
                  arrival that only they could open.
    changed       messages that are newer than their place (`ullage.core.turn.changes`)

Where a place was decided before, that holds: a title that is made of a conversation by the way,
with no tool to be called, changes nothing in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ullage.core.history.ledger import Seen
from ullage.core.turn import names
from ullage.core.turn.changes import changed
from ullage.core.turn.terms import Agreed, Settings

if TYPE_CHECKING:
    from ullage.core.turn.memo import Line
    from ullage.core.turn.request import Request


def noted(agreed: Agreed, line: Line, asked: Request, settings: Settings) -> Agreed:
    """What was agreed, with what is to be kept of this request."""
    transcript = line.transcript
    key = transcript.decision_key(len(transcript))
    seen = Seen(
        unrecalled=_is_unrecalled(agreed, line, asked, settings, key),
        changed=changed(transcript, agreed.ledger),
    )
    if seen == Seen():
        return agreed
    ledger, record = agreed.ledger.with_seen(key, seen)
    return replace(agreed, ledger=ledger, records=(*agreed.records, record))


def _is_unrecalled(
    agreed: Agreed, line: Line, asked: Request, settings: Settings, key: bytes
) -> bool:
    """Whether the recall tools cannot be called in this reply, and its place is still open."""
    opened, envelope = agreed.terms.opened, asked.envelope
    if not opened.recall or not envelope.tools:
        return False
    ours = {opened.prefix + name for name in settings.policy.toolset.names}
    may_add = envelope.choice.takes_more and settings.recall != "host"
    may_call = may_add or envelope.choice.allows(ours)
    if may_call and _may_stand(asked, opened.prefix, settings):
        return False
    entry = agreed.ledger.at(key)
    is_decided = bool(entry.batches or entry.observed or entry.is_unrecalled)
    return not is_decided and not _was_shown(line)


def _may_stand(asked: Request, prefix: str, settings: Settings) -> bool:
    """Whether the recall tools are among the tools of this request, or may be added to them."""
    if settings.recall == "host" or asked.envelope.takes_tools:
        return True
    return names.holds(asked, prefix, settings.policy.toolset)


def _was_shown(line: Line) -> bool:
    """Whether this very history was fitted before, here."""
    return line.builder is not None and line.builder.window.size == len(line.transcript)
