"""The history of a request as a turn goes on from it: repaired, and nowhere too deep."""

from __future__ import annotations

from ullage.core.contract.repaired import Repaired, news, remember
from ullage.core.history.snapshots import TooDeep
from ullage.core.turn.caches import HistoryCache, SessionCache
from ullage.core.turn.nesting import with_messages, without_deep_values
from ullage.core.turn.request import Request
from ullage.core.turn.settings import Settings
from ullage.core.values.authors import answered_by_user


def repair_and_cache(
    request: Request, cache: SessionCache, settings: Settings
) -> tuple[Request, HistoryCache, Repaired]:
    """The request with a history that can be gone on from, its cache, and what was set aside.

    Raises:
        FormatError: a message is not what its format says it is, or cannot be made so.
    """
    try:
        return _repaired(request, cache, settings)
    except TooDeep:
        request, flattened = without_deep_values(
            request, cache, settings.redact
        )
    request, history, repaired = _repaired(request, cache, settings)
    outputs = (*flattened.outputs, *repaired.outputs)
    events = (*flattened.events, *repaired.events)
    return request, history, Repaired((), outputs, events)


def _repaired(
    request: Request, cache: SessionCache, settings: Settings
) -> tuple[Request, HistoryCache, Repaired]:
    """The request with a history that its provider takes, its cache, and what was repaired now."""
    fresh = Repaired(())
    if settings.repair:
        repaired = _repair(request, cache, settings)
        fresh = news(repaired, cache.repaired)
        cache.repaired = remember(repaired, cache.repaired)
        request = with_messages(request, repaired.messages, cache)
    user_tools = answered_by_user(settings.user_tools)
    history = cache.match_history(
        request, settings.tenant, settings.redact, user_tools
    )
    return request, history, fresh


def _repair(
    request: Request, cache: SessionCache, settings: Settings
) -> Repaired:
    """What the wire's repair makes of a history."""
    return settings.formats.repair(
        request.wire,
        request.history,
        cache.repaired,
        strips=request.envelope.reasoning == "strip",
        redact=settings.redact,
        model=request.envelope.model,
    )
