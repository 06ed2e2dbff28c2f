"""Replay one recorded run: at every call, what would the view have been, and was it right?

Teacher-forced (`metrics` §0): before each recorded assistant message the session is given
exactly what stood before it. It never sees what comes after, and makes no model call. The
usage it observes is the judge's count of its own view, as if the judge were the provider.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeAlias

from msgspec import Struct

from ullage.errors import OverLimitError
from ullage.history import canon
from ullage.history.window import Window
from ullage.presets import preset
from ullage.replay.boundaries import answer_of, boundaries
from ullage.replay.budgets import Room
from ullage.replay.cost.money import Bill, CostMeter, Priced, clocks_of
from ullage.replay.cost.prefix import head_of
from ullage.replay.cost.prices import Profile
from ullage.replay.evidence.refs import SessionLibrary
from ullage.replay.evidence.score import Evidence, watch_over
from ullage.replay.gates import GATES, Gates, Judge
from ullage.replay.readers import Run
from ullage.replay.sessions import model_of, session_for
from ullage.values.toolset import Toolset
from ullage.values.usage import Usage
from ullage.wires import FORMATS

__all__ = ["OnView", "Replayed", "Sums", "replay_run"]

_COLD_CHECKS = 4

OnView: TypeAlias = Callable[[Window, Priced], None]


class Replayed(Struct, frozen=True, kw_only=True):
    """What replaying one run at one window showed.

    Tokens are the judge's (o200k over the texts), not the session's own estimate. Money is
    reckoned over messages as JSON, which is what is sent.

    Attributes:
        run: the run's id.
        policy: the name of the policy.
        window_tokens: the window it was kept in.
        calls: requests fitted.
        raw_peak_tokens: the largest request without ullage, messages only.
        raw_tokens: all requests without ullage, summed.
        peak_tokens: the largest view.
        tokens: all views, summed.
        output_tokens: all recorded answers.
        breaks: views that rewrote something already sent.
        rewritten_tokens: what they rewrote.
        rewritten_share: for each of them the share of the view before that it rewrote, summed.
        bills: what it costs, under each price profile and clock; the first is of the profile
            that was asked for first, with no gap too long for its cache.
        events: how often each kind of event happened.
        broken: how often each gate was broken.
        over_limit: calls that could not be made to fit.
        fit_ms: the time of each call to ``fit``, sorted, in milliseconds.
        evidence: of what the calls demanded, what was in view.
        share: the share of its largest request that the window leaves to the prompt; None
            where the window was given in tokens.
        digest: what tells the run from others of its name; empty if nobody had to.
    """

    run: str
    policy: str
    window_tokens: int
    calls: int
    raw_peak_tokens: int
    raw_tokens: int
    peak_tokens: int
    tokens: int
    output_tokens: int
    breaks: int
    rewritten_tokens: int
    rewritten_share: float
    bills: list[Bill]
    events: dict[str, int]
    broken: dict[str, int]
    over_limit: int
    fit_ms: list[float]
    evidence: Evidence
    share: float | None = None
    digest: str = ""

    @property
    def room(self) -> Room:
        """What was asked for: the window in tokens, or the share of the largest request."""
        return self.window_tokens if self.share is None else self.share


def replay_run(
    run: Run,
    window_tokens: int,
    *,
    profiles: Sequence[Profile],
    policy: str = "default",
    common: Set[str] = frozenset(),
    on_view: OnView | None = None,
) -> Replayed:
    """Replay one run in one window.

    Args:
        run: the recording.
        window_tokens: the context window to keep it in.
        profiles: whose caches and prices to reckon with.
        policy: name of the policy.
        common: values that are no evidence (`ullage.replay.evidence.common`).
        on_view: told of the window after every fit, and of what its request came to.
    """
    wire, chosen = FORMATS[run.format], preset(policy)
    new_session = session_for(run, chosen, window_tokens)
    session, judge, head = new_session(), Judge(), head_of(run.request)
    added = _tools_of(chosen.toolset) if chosen.toolset.offered else ""
    gates = Gates(session, judge, judge.text(head) + judge.text(added))
    lengths = boundaries(run)
    clocks = clocks_of(run.id, lengths, run.stamps)
    tally = Sums(judge, CostMeter(profiles, (head, head + added), clocks, judge.text))
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
        shown_tokens = tally.add(number, history, view, answer_of(run, length))
        if on_view is not None and tally.meter.newest is not None:
            on_view(session.window, tally.meter.newest)
        session.observe(Usage(fresh_tokens=gates.head_tokens + shown_tokens))
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

    def __init__(self, judge: Judge, meter: CostMeter) -> None:
        self.judge, self.meter = judge, meter
        self.raw_sizes: list[int] = []
        self.sizes: list[int] = []
        self.output_tokens = 0
        self.fit_ms: list[float] = []
        self.over_limit = 0

    def add(
        self, number: int, history: Sequence[Any], view: Sequence[Any], answer: Sequence[Any]
    ) -> int:
        """Take in one call and its answer; the judge's tokens of the view's messages."""
        output_tokens = self.judge.tokens(answer)
        self.output_tokens += output_tokens
        self.meter.take(number, history, view, output_tokens)
        self.raw_sizes.append(self.judge.tokens(history))
        self.sizes.append(self.judge.tokens(view))
        return self.sizes[-1]

    def result(self, **told: Any) -> Replayed:
        """What the whole run showed, with what the caller tells of it."""
        shown = self.meter.shown
        return Replayed(
            **told,
            raw_peak_tokens=max(self.raw_sizes, default=0),
            raw_tokens=sum(self.raw_sizes),
            peak_tokens=max(self.sizes, default=0),
            tokens=sum(self.sizes),
            output_tokens=self.output_tokens,
            breaks=shown.breaks,
            rewritten_tokens=shown.rewritten_tokens,
            rewritten_share=shown.rewritten_share,
            bills=self.meter.bills(),
            over_limit=self.over_limit,
            fit_ms=sorted(self.fit_ms),
        )


def _tools_of(toolset: Toolset) -> str:
    return canon.canonical_json([[tool.description, tool.parameters] for tool in toolset.tools])
