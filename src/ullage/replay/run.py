"""Replay one recorded run: at every call, what would the view have been, and was it right?

Teacher-forced (`metrics` §0): before each recorded assistant message the session is given
exactly what stood before it. It never sees what comes after, and makes no model call.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ullage.errors import OverLimitError
from ullage.limits import Limits
from ullage.replay.cache import CacheSimulator, Profile, head_of
from ullage.replay.gates import GATES, Gates, Judge
from ullage.replay.readers import Run
from ullage.session import Session

__all__ = ["Replayed", "replay_run"]

_COLD_CHECKS = 4


class Replayed(Struct, frozen=True, kw_only=True):
    """What replaying one run at one window showed.

    Tokens are the judge's (o200k over the texts), not the session's own estimate. The cache
    simulator counts messages as JSON, so only its shares are kept.

    Attributes:
        run: the run's id.
        window_tokens: the window it was kept in.
        calls: requests fitted.
        raw_peak_tokens: the largest request without ullage.
        raw_tokens: all requests without ullage, summed.
        peak_tokens: the largest view.
        tokens: all views, summed.
        raw_cached_tokens: of the raw requests, read from the provider's cache (simulated,
            in the simulator's tokens).
        cached_tokens: of the views.
        raw_sent_tokens: all raw requests in the simulator's tokens.
        sent_tokens: all views.
        raw_paid_tokens: raw input in units of the input price, cache terms applied.
        paid_tokens: the same of the views.
        breaks: views that rewrote something already sent.
        events: how often each kind of event happened.
        broken: how often each gate was broken.
        over_limit: calls that could not be made to fit.
        fit_ms: the time of each call to ``fit``, sorted, in milliseconds.
    """

    run: str
    window_tokens: int
    calls: int
    raw_peak_tokens: int
    raw_tokens: int
    peak_tokens: int
    tokens: int
    raw_cached_tokens: int
    cached_tokens: int
    raw_sent_tokens: int
    sent_tokens: int
    raw_paid_tokens: float
    paid_tokens: float
    breaks: int
    events: dict[str, int]
    broken: dict[str, int]
    over_limit: int
    fit_ms: list[float]


def replay_run(
    run: Run, window_tokens: int, *, profile: Profile, policy: str = "default"
) -> Replayed:
    """Replay one run in one window.

    Args:
        run: the recording.
        window_tokens: the context window to keep it in.
        profile: the terms of the simulated provider cache.
        policy: name of the policy.
    """
    model = str(run.request.get("model") or _MODELS[run.format])
    judge = Judge()

    def new_session() -> Session:
        limits = Limits(window_tokens=window_tokens)
        return Session(model, policy=policy, limits=limits, format=run.format, recall=True)

    session = new_session()
    head = head_of(run.request)
    gates = Gates(session, judge, judge.text(head))
    raw_cache, view_cache = (CacheSimulator(profile, judge.text) for _ in range(2))
    times: list[float] = []
    over = raw_tokens = tokens = raw_peak = peak = 0
    lengths = _boundaries(run.messages)
    cold = set(lengths[:: max(len(lengths) // _COLD_CHECKS, 1)])
    for length in lengths:
        history = run.messages[:length]
        request = {**run.request, "model": model, "messages": history}
        started = time.perf_counter()
        try:
            view = session.fit(request)["messages"]
        except OverLimitError:
            over += 1
            continue
        times.append((time.perf_counter() - started) * 1e3)
        gates.check(history, view)
        if length in cold:
            gates.same(new_session().fit(request)["messages"], view)
        raw_cache.call(history, head)
        view_cache.call(view, head)
        raw, shown = (
            gates.head_tokens + judge.tokens(history),
            gates.head_tokens + judge.tokens(view),
        )
        raw_tokens, tokens = raw_tokens + raw, tokens + shown
        raw_peak, peak = max(raw_peak, raw), max(peak, shown)
    return Replayed(
        run=run.id,
        window_tokens=window_tokens,
        calls=len(lengths),
        raw_peak_tokens=raw_peak,
        raw_tokens=raw_tokens,
        peak_tokens=peak,
        tokens=tokens,
        raw_cached_tokens=raw_cache.totals.cached_tokens,
        cached_tokens=view_cache.totals.cached_tokens,
        raw_sent_tokens=raw_cache.totals.prompt_tokens,
        sent_tokens=view_cache.totals.prompt_tokens,
        raw_paid_tokens=_paid(raw_cache, profile),
        paid_tokens=_paid(view_cache, profile),
        breaks=view_cache.totals.breaks,
        events=dict(Counter(event.kind for event in session.events)),
        broken={gate: gates.broken[gate] for gate in GATES if gates.broken[gate]},
        over_limit=over,
        fit_ms=sorted(times),
    )


_MODELS = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}


def _boundaries(messages: Sequence[Any]) -> list[int]:
    """The lengths at which the recorded agent sent a request."""
    return [i for i, message in enumerate(messages) if i and message["role"] == "assistant"]


def _paid(cache: CacheSimulator, profile: Profile) -> float:
    totals = cache.totals
    written = profile.write * totals.written_tokens
    return totals.fresh_tokens + written + profile.read * totals.cached_tokens
