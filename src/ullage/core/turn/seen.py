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

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ullage.core.history.ledger import Entry, Ledger, RequestRecord
from ullage.core.history.transcript import Transcript
from ullage.core.turn import names
from ullage.core.turn.active_policy import PolicyResolution
from ullage.core.turn.changes import changed
from ullage.core.turn.recall_offer import NO_NAMES, has_no_names
from ullage.core.turn.settings import Settings

if TYPE_CHECKING:
    from ullage.core.turn.caches import HistoryCache
    from ullage.core.turn.request import Request


def with_request(
    resolution: PolicyResolution,
    history: HistoryCache,
    request: Request,
    settings: Settings,
) -> PolicyResolution:
    """The resolution of a policy, with what is to be recorded of this request."""
    transcript = history.transcript
    key = transcript.decision_key(len(transcript))
    seen = RequestRecord(
        unrecalled=_is_unrecalled(resolution, history, request, settings, key),
        changed=changed(transcript, resolution.ledger),
    )
    if seen == RequestRecord():
        return resolution
    ledger, record = resolution.ledger.with_seen(key, seen)
    records = [*resolution.records, record]
    events = list(resolution.events)
    prefix = resolution.active.record.prefix
    is_new = seen.unrecalled and not _was_unrecalled(
        transcript, resolution.ledger
    )
    if is_new and has_no_names(request, settings, prefix):
        events.append(NO_NAMES)
    if seen.unrecalled and seen.changed:
        # Behind a change no earlier request is known. What was whole there stays whole here,
        # and in the requests after this one.
        for earlier in _places_behind(transcript, seen.changed):
            if ledger.at(earlier) == Entry():
                unrecalled = RequestRecord(unrecalled=True)
                ledger, record = ledger.with_seen(earlier, unrecalled)
                records.append(record)
    return replace(
        resolution,
        ledger=ledger,
        records=tuple(records),
        events=tuple(events),
    )


def _was_unrecalled(transcript: Transcript, ledger: Ledger) -> bool:
    """Whether the request before this one was noted as one without the recall tools."""
    before = transcript.boundaries(0)[:-1]
    if not before:
        return False
    return ledger.at(transcript.decision_key(before[-1])).is_unrecalled


def _places_behind(
    transcript: Transcript, changes: Sequence[tuple[bytes, bytes]]
) -> Iterator[bytes]:
    """The keys of the requests that were sent from the first change on, but for the newest."""
    lengths = [transcript.find(link) for link, _ in changes]
    first = min(length for length in lengths if length is not None)
    for length in transcript.boundaries(first - 1)[:-1]:
        yield transcript.decision_key(length)


def _is_unrecalled(
    resolution: PolicyResolution,
    history: HistoryCache,
    request: Request,
    settings: Settings,
    key: bytes,
) -> bool:
    """Whether the recall tools cannot be called in this reply, and its place is still open."""
    opened = resolution.active.record
    envelope = request.envelope
    if not opened.recall or not envelope.tools:
        return False
    our_names = {
        opened.prefix + name for name in settings.policy.toolset.names
    }
    may_add = envelope.choice.takes_more and settings.recall != "host"
    may_call = may_add or envelope.choice.allows(our_names)
    if may_call and _may_stand(request, opened.prefix, settings):
        return False
    entry = resolution.ledger.at(key)
    is_decided = bool(entry.batches or entry.observed or entry.is_unrecalled)
    return not is_decided and not _was_shown(history)


def _may_stand(request: Request, prefix: str, settings: Settings) -> bool:
    """Whether the recall tools are among the tools of this request, or may be added to them."""
    if settings.recall == "host":
        return not has_no_names(request, settings, prefix)
    if request.envelope.takes_tools:
        return True
    return names.holds(request, prefix, settings.policy.toolset)


def _was_shown(history: HistoryCache) -> bool:
    """Whether this very history was fitted before, here."""
    return history.builder is not None and history.builder.window.size == len(
        history.transcript
    )
