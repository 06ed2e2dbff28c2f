"""Why a prompt cache broke: each request beside the one before it, and what the provider read.

    fit      the request before ─┐
             this view          ─┼─ look_back ──▶ CacheBreak, reckoned
             the time between   ─┘                     │
    observe  tokens read from the cache ─── settle ──▶ CacheBreak, as reported; or none

As long as nothing broke, the work is in proportion to what is new.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ullage.core.history.ledger import Ledger
from ullage.core.history.window import Window
from ullage.core.tokens.catalog import ModelInfo, lookup
from ullage.core.values.cache_breaks import CacheBreak
from ullage.core.values.effects import Steps
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.prompt_cache.sent import (
    Answered,
    RecentRequest,
    records_of,
    request_before,
)
from ullage.session.prompt_cache.view_changes import (
    ViewChange,
    find_change,
    note_head,
)
from ullage.session.spend.cost import price_of
from ullage.session.view import RequestInfo
from ullage.wires import wire_named

_LEAST_TOKENS = 1_024
"""No provider caches less."""
_SHORT_TOKENS = 4_096
"""Some providers cache no prompt that is shorter."""
_NOISE_TOKENS = 256
"""Providers read in steps, and markers stand a little before the end."""
_HIT_SHARE = 0.8
"""From this share on, what was sent before was in the cache."""
_MILLION = 1_000_000


def look_back(
    info: RequestInfo,
    ledger: Ledger,
    recent: Sequence[RecentRequest],
    now_s: float,
) -> Steps[None]:
    """Note in a view which request came before it, and where it breaks the cache of that.

    Args:
        info: the view, still at its window.
        ledger: of the conversation.
        recent: the newest requests of the session's conversations.
        now_s: the time, in seconds since 1970.
    """
    if info.working is None or not info.size:
        return
    try:
        yield from _look_back(info, info.working, ledger, recent, int(now_s))
    except Exception:  # noqa: BLE001 - nothing hangs on it: the view is sent all the same
        info.broken = None


def answered(
    info: RequestInfo,
    window: Window | None,
    usage: Usage,
    ledger: Ledger,
    at_s: float,
    *,
    is_reported: bool = True,
) -> Answered:
    """What is kept and reported of a view once it is answered.

    Args:
        info: the view.
        window: what shows the same as the view; None: the frozen one.
        usage: what its reply reported.
        ledger: of the conversation.
        at_s: when the reply came, in seconds since 1970.
        is_reported: whether its provider reported that; False: it is our estimate.
    """
    if not info.size:
        return Answered()
    try:
        note_head(info)
        broken = info.broken
        if is_reported:
            broken = settle(info, window, usage)
        transcript = info.transcript if window is None else window.transcript
        request, records = records_of(
            info, broken, transcript, usage, ledger, at_s
        )
    except Exception:  # noqa: BLE001 - nothing hangs on it: the reply is counted all the same
        return Answered()
    events = () if broken is None else (event_of(broken),)
    return Answered(broken, request, records, events)


def _look_back(
    info: RequestInfo,
    window: Window,
    ledger: Ledger,
    recent: Sequence[RecentRequest],
    now_s: int,
) -> Steps[None]:
    before = yield from request_before(info, window.transcript, ledger, recent)
    info.before = before
    if before is None:
        return
    change = yield from find_change(info, window, ledger, before)
    info.change = change
    gap_s = max(now_s - before.sent.at_s, 0)
    if before.caches and gap_s > before.sent.lives_s:
        expired = CacheBreak(
            "expired", gap_s=gap_s, lives_s=before.sent.lives_s
        )
        info.broken = _reckoned(expired, info, window, None)
    elif change is not None and _may_cache(info, before):
        broken = _broken_by(change, gap_s)
        info.broken = _reckoned(broken, info, window, change)


def settle(
    info: RequestInfo, window: Window | None, usage: Usage
) -> CacheBreak | None:
    """The break of a view as its provider reports it; None: nothing was billed again.

    Args:
        info: the view.
        window: what shows the same as the view; None: the frozen one.
        usage: what its reply reported.
    """
    before = info.before
    broken = info.broken
    if before is None:
        return None
    read_tokens = usage.cache_read_tokens
    if not (read_tokens or usage.cache_write_tokens or before.caches):
        return broken  # nobody speaks of a cache: what was reckoned stands
    window = window or info.window
    held = min(
        _held_tokens(info, before), _reported_standing(info, window, usage)
    )
    is_cold = held >= _LEAST_TOKENS and read_tokens < _HIT_SHARE * held
    if broken is not None and broken.cause == "expired":
        is_gone = is_cold and read_tokens < (1 - _HIT_SHARE) * held
        if not is_gone and info.change is not None:
            # the cache lived on, and something else broke it
            broken = _reckoned(
                _broken_by(info.change, broken.gap_s),
                info,
                window,
                info.change,
            )
        elif not is_cold:
            broken = None
    if broken is None and is_cold:
        broken = CacheBreak("evicted")
    tokens = held - read_tokens
    if broken is None or tokens < _NOISE_TOKENS:
        return None
    cost_usd = rebilled_usd(
        tokens,
        price_of(info.model, info.wire.wire),
        usage.input_tokens,
        writes=bool(usage.cache_write_tokens),
        writes_long=bool(usage.long_write_tokens),
    )
    return replace(
        broken,
        tokens=tokens,
        cost_usd=cost_usd,
        read_tokens=read_tokens,
        held_tokens=held,
    )


def event_of(broken: CacheBreak) -> Event:
    """The event of a break.

    Args:
        broken: the break.
    """
    return Event(
        kind="cache_broken",
        where=broken.where,
        why=str(broken),
        tokens_after=broken.tokens,
        broken=broken,
    )


def rebilled_usd(
    tokens: int,
    model: ModelInfo,
    prompt_tokens: int,
    *,
    writes: bool,
    writes_long: bool = False,
) -> float | None:
    """What it costs that tokens are billed again, and not read from a cache.

    Args:
        tokens: how many.
        model: the model's prices.
        prompt_tokens: of the whole prompt, which chooses the tier.
        writes: whether they are written to a cache, where that has a price of its own.
        writes_long: whether they are written for the longer time.

    Returns:
        Dollars; None where no price is known.
    """
    prices = model.prices_at(prompt_tokens)
    fresh_usd = prices.input_usd
    read_usd = prices.cache_read_usd
    if fresh_usd is None:
        return None
    token_usd = fresh_usd
    if writes and prices.cache_write_usd is not None:
        token_usd = prices.cache_write_usd
        if writes_long and prices.long_write_usd is not None:
            token_usd = prices.long_write_usd
    saving_usd = fresh_usd if read_usd is None else read_usd
    return tokens * (token_usd - saving_usd) / _MILLION


# ── what is reckoned ─────────────────────────────────────────────────────────────────────


def _may_cache(info: RequestInfo, before: RecentRequest) -> bool:
    """Whether the provider may have had the request before in a cache."""
    if before.caches:
        return True
    if before.sent.tokens < _LEAST_TOKENS or _takes_markers(info):
        return False
    return lookup(info.model).prices.cache_read_usd is not None


def _takes_markers(info: RequestInfo) -> bool:
    """Whether nothing of a view is cached without a marker."""
    return wire_named(info.wire.wire).takes_cache_markers


def _held_tokens(info: RequestInfo, before: RecentRequest) -> int:
    """What the provider's cache had of the request before, as far as it was reported."""
    sent = before.sent
    if sent.caches:
        return sent.held_tokens
    if _takes_markers(info) or sent.prompt_tokens < _SHORT_TOKENS:
        return 0
    return sent.held_tokens


def _broken_by(change: ViewChange, gap_s: int) -> CacheBreak:
    return CacheBreak(
        change.cause, change.place, gap_s=gap_s, name=change.name
    )


def _reckoned(
    broken: CacheBreak,
    info: RequestInfo,
    window: Window,
    change: ViewChange | None,
) -> CacheBreak | None:
    """A break with its tokens and price as ullage reckons them; None: it is too small to tell."""
    tokens = _standing_behind(info, window, change)
    if tokens < _NOISE_TOKENS:
        return None
    before = info.before
    usage = (0, 0, 0, 0, 0) if before is None else before.sent.usage
    cost_usd = rebilled_usd(
        tokens,
        price_of(info.model, info.wire.wire),
        info.frozen.estimate,
        writes=bool(usage[2]),
        writes_long=bool(usage[3]),
    )
    return replace(
        broken, tokens=tokens, cost_usd=cost_usd, reckoned_tokens=tokens
    )


def _standing_behind(
    info: RequestInfo, window: Window, change: ViewChange | None
) -> int:
    """Tokens of a view that had been sent before and stand behind a change; all of them: None."""
    start = window.transcript.turn_start(info.size)
    if change is None or change.message < 0:
        tokens = window.tokens - window.tokens_from(start)
        if change is not None:
            tokens -= int(window.head_tokens * change.start_share)
    elif change.standing is not None:
        tokens = sum(
            window.message_tokens(index)
            for index in change.standing
            if index < start and not window.hidden(index)
        )
    else:
        tokens = window.tokens_from(change.message) - window.tokens_from(start)
        for placed in window.open_summaries:
            if placed.start >= change.message:
                tokens += window.texts_tokens(placed.edit.texts)
    return window.calibration.apply(max(tokens, 0))


def _reported_standing(info: RequestInfo, window: Window, usage: Usage) -> int:
    """Tokens of a view that had been sent before, as its provider counts."""
    counted_tokens = window.tokens
    if not counted_tokens:
        return 0
    start = window.transcript.turn_start(info.size)
    standing = counted_tokens - window.tokens_from(start)
    change = info.change
    if change is not None and change.standing is not None:
        # what the client put in the place of a message was not sent before
        standing -= sum(
            window.message_tokens(index)
            for index in range(change.message, start)
            if index not in change.standing and not window.hidden(index)
        )
    reported = usage.sent_tokens or usage.input_tokens
    return int(reported * max(standing, 0) / counted_tokens)
