"""Replay one recorded run: at every call, what would the view have been, and was it right?

Teacher-forced (`metrics` §0): before each recorded assistant message the session is given
exactly what stood before it. It never sees what comes after, and makes no model call. The
usage it observes is the judge's count of its own view, as if the judge were the provider.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

from msgspec import Struct

from ullage import canon
from ullage.desk import Desk
from ullage.errors import OverLimitError
from ullage.formats import FORMATS
from ullage.presets import preset
from ullage.replay.boundaries import boundaries, is_models
from ullage.replay.cache import CacheSimulator, Profile, Totals, head_of, usd
from ullage.replay.evidence.refs import SessionLibrary
from ullage.replay.evidence.score import Evidence, watch_over
from ullage.replay.gates import GATES, Gates, Judge
from ullage.replay.readers import Run
from ullage.replay.sessions import model_of, session_for
from ullage.usage import Usage

__all__ = ["Replayed", "Sums", "is_models", "replay_run"]

_COLD_CHECKS = 4


class Replayed(Struct, frozen=True, kw_only=True):
    """What replaying one run at one window showed.

    Tokens are the judge's (o200k over the texts), not the session's own estimate. The cache
    simulator counts messages as JSON, so only its shares are kept.

    Attributes:
        run: the run's id.
        policy: the name of the policy.
        window_tokens: the window it was kept in.
        calls: requests fitted.
        raw_peak_tokens: the largest request without ullage, messages only.
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
        evidence: of what the calls demanded, what was in view.
    """

    run: str
    policy: str
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
    evidence: Evidence


def replay_run(
    run: Run,
    window_tokens: int,
    *,
    profile: Profile,
    policy: str = "default",
    common: Set[str] = frozenset(),
) -> Replayed:
    """Replay one run in one window.

    Args:
        run: the recording.
        window_tokens: the context window to keep it in.
        profile: the terms of the simulated provider cache.
        policy: name of the policy.
        common: values that are no evidence (`ullage.replay.evidence.common`).
    """
    wire, chosen = FORMATS[run.format], preset(policy)
    new_session = session_for(run, chosen, window_tokens)
    session, judge, head = new_session(), Judge(), head_of(run.request)
    added = _tools_of(chosen.desk) if chosen.desk.offered else ""
    gates = Gates(session, judge, judge.text(head) + judge.text(added))
    tally = Sums(judge, profile, head)
    lengths = boundaries(run)
    watch = watch_over(run, lengths, SessionLibrary(session), common)
    cold = set(lengths[:: max(len(lengths) // _COLD_CHECKS, 1)])
    for number, length in enumerate(lengths):
        history = run.messages[:length]
        request = {**run.request, "model": model_of(run), wire.key: history}
        started = time.perf_counter()
        try:
            view = wire.history(session.fit(request))
        except OverLimitError:
            tally.over_limit += 1
            watch.missed(number)
            continue
        tally.fit_ms.append((time.perf_counter() - started) * 1e3)
        gates.check(history, view)
        watch.see(number, length, view)
        if length in cold:
            gates.same(wire.history(new_session(state=session.state).fit(request)), view)
        session.observe(Usage(fresh_tokens=gates.head_tokens + tally.add(history, view)))
    return tally.result(
        run=run.id,
        policy=policy,
        window_tokens=window_tokens,
        calls=len(lengths),
        events=dict(Counter(event.kind for event in session.events)),
        broken={gate: gates.broken[gate] for gate in GATES if gates.broken[gate]},
        evidence=watch.evidence(),
    )


class Sums:
    """Sums up the requests of one run, as they were recorded and as they were shown."""

    def __init__(self, judge: Judge, profile: Profile, head: str) -> None:
        self.judge, self.profile, self.head = judge, profile, head
        self.raw_cache, self.cache = (CacheSimulator(profile, judge.text) for _ in range(2))
        self.raw_sizes: list[int] = []
        self.sizes: list[int] = []
        self.fit_ms: list[float] = []
        self.over_limit = 0

    def add(self, history: Sequence[Any], view: Sequence[Any]) -> int:
        """Take in one call; the judge's tokens of the view's messages."""
        self.raw_cache.call(history, self.head)
        self.cache.call(view, self.head)
        self.raw_sizes.append(self.judge.tokens(history))
        self.sizes.append(self.judge.tokens(view))
        return self.sizes[-1]

    def result(self, **told: Any) -> Replayed:
        """What the whole run showed, with what the caller tells of it."""
        raw, shown = self.raw_cache.totals, self.cache.totals
        return Replayed(
            **told,
            raw_peak_tokens=max(self.raw_sizes, default=0),
            raw_tokens=sum(self.raw_sizes),
            peak_tokens=max(self.sizes, default=0),
            tokens=sum(self.sizes),
            raw_cached_tokens=raw.cached_tokens,
            cached_tokens=shown.cached_tokens,
            raw_sent_tokens=raw.prompt_tokens,
            sent_tokens=shown.prompt_tokens,
            raw_paid_tokens=_paid(raw),
            paid_tokens=_paid(shown),
            breaks=shown.breaks,
            over_limit=self.over_limit,
            fit_ms=sorted(self.fit_ms),
        )


def _tools_of(desk: Desk) -> str:
    return canon.canonical_json([[tool.description, tool.parameters] for tool in desk.tools])


def _paid(totals: Totals) -> float:
    """Input in units of the input price."""
    return usd(totals, 1e6)
