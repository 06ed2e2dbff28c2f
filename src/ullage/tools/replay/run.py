"""Replay one recorded run: at every call, what would the view have been, and was it right?

Teacher-forced (`metrics` §0): before each recorded assistant message the session is given
exactly what came before it. It never sees what comes after, and makes no model call. The
usage it observes is the judge's count of its own view, as if the judge were the provider.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeAlias

from msgspec import Struct

from ullage import Session, Usage, Window
from ullage.core.errors import OverLimitError
from ullage.core.history import canon
from ullage.core.values.toolset import Toolset
from ullage.tools.replay.calls import (
    Room,
    answer_of,
    boundaries,
    request_of,
    room_of,
    session_for,
)
from ullage.tools.replay.cost.money import Bill, CostMeter, Priced, clocks_of
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.evidence.score import (
    EvidenceMeter,
    EvidenceScore,
    watch_over,
)
from ullage.tools.replay.gates import GATES, Gates, Judge
from ullage.tools.replay.policies import policy_named
from ullage.tools.replay.readers import Run
from ullage.tools.replay.reading import SessionLibrary
from ullage.wires import FORMATS

_COLD_CHECKS = 4

OnView: TypeAlias = Callable[[Window, Priced], None]
WatchOf: TypeAlias = Callable[
    [Run, Sequence[int], Session, Set[str]], EvidenceMeter
]
"""Makes what watches a run: the run, the lengths of its calls, its session, the stop list."""


class Replayed(Struct, frozen=True, kw_only=True):
    """What replaying one run at one window showed.

    Tokens are the judge's (o200k over the texts), not the session's own estimate, of messages
    alone: the largest view (peak) and all views summed, and of the requests without ullage (raw).
    Money is reckoned over messages as JSON, which is what is sent.

    Attributes:
        breaks: views that rewrote something already sent.
        rewritten_share: for each of them the share of the view before that it rewrote, summed.
        bills: what it costs, under each price profile and clock; the first is of the profile
            that was asked for first, with no gap too long for its cache.
        events: how often each kind of event happened.
        broken: how often each gate was broken.
        over_limit: calls that could not be made to fit.
        fit_ms: the time of each call to ``fit``, sorted.
        share: the share of its largest request that the window leaves to the prompt; None
            where the window was given in tokens.
        is_own: whether the window is that of the run's own model.
        digest: what distinguishes the run from others of its name; empty if nobody had to.
    """

    run: str
    policy: str
    window_tokens: int
    calls: int
    raw_peak_tokens: int
    raw_tokens: int
    peak_tokens: int
    tokens: int
    breaks: int
    rewritten_share: float
    bills: list[Bill]
    events: dict[str, int]
    broken: dict[str, int]
    over_limit: int
    fit_ms: list[float]
    evidence: EvidenceScore
    share: float | None = None
    is_own: bool = False
    digest: str = ""

    @property
    def room(self) -> Room:
        """What was asked for: the window in tokens, the model's own, or the share of a request."""
        return room_of(self.window_tokens, self.share, is_own=self.is_own)


def watch_session(
    run: Run, lengths: Sequence[int], session: Session, common: Set[str]
) -> EvidenceMeter:
    """Watch a session's views of a run; refs are opened by its own recall tools."""
    user_tools = session.settings.user_tools
    return watch_over(
        run, lengths, SessionLibrary(session), common, user_tools
    )


def replay_run(
    run: Run,
    window_tokens: int,
    *,
    profiles: Sequence[Profile],
    policy: str = "default",
    common: Set[str] = frozenset(),
    watch_of: WatchOf = watch_session,
    user_tools: Sequence[str] = (),
    on_view: OnView | None = None,
) -> Replayed:
    """Replay one run in one window; ``common`` are values that are no evidence.

    ``user_tools`` are tools by which the user answers, as of `ullage.Session`.

    ``on_view`` is called with the window after every fit, and what its request came to.
    """
    wire = FORMATS[run.format]
    chosen = policy_named(policy)
    new_session = session_for(run, chosen, window_tokens, user_tools)
    session = new_session()
    sums = RunSums(run, profiles, _tools_of(chosen.toolset))
    gates = Gates(session, sums.judge, sums.head_tokens)
    watch = watch_of(run, sums.lengths, session, common)
    cold = set(sums.lengths[:: max(len(sums.lengths) // _COLD_CHECKS, 1)])
    for number, length in enumerate(sums.lengths):
        history = run.messages[:length]
        request = request_of(run, history)
        started = time.perf_counter()
        try:
            view = wire.history(session.fit(request))
        except OverLimitError:
            sums.over_limit += 1
            watch.missed(number)
            continue
        sums.fit_ms.append((time.perf_counter() - started) * 1e3)
        gates.check(history, view)
        watch.see(number, length, view)
        if length in cold:
            gates.same(
                wire.history(new_session(state=session.state).fit(request)),
                view,
            )
        shown_tokens = sums.add(number, view)
        if on_view is not None and sums.meter.newest is not None:
            on_view(session.window, sums.meter.newest)
        session.observe(Usage(fresh_tokens=sums.head_tokens + shown_tokens))
    events = Counter[str](event.kind for event in session.events)
    broken = {gate: gates.broken[gate] for gate in GATES if gates.broken[gate]}
    return sums.result(
        policy, window_tokens, watch.evidence(), dict(events), broken
    )


class RunSums:
    """Sums up the requests of one run, as they were recorded and as they were shown.

    ``added`` is head text that the views have and the recorded requests have not.

    Attributes:
        lengths: how many messages came before each call.
        head_tokens: the head of the views.
        over_limit: calls whose view is too large, or that have none.
        fit_ms: how long each view took.
    """

    def __init__(
        self, run: Run, profiles: Sequence[Profile], added: str = ""
    ) -> None:
        self.judge = Judge()
        self.lengths = boundaries(run)
        head = head_of(run.request)
        clocks = clocks_of(run.id, self.lengths, run.stamps)
        self.meter = CostMeter(
            profiles, (head, head + added), clocks, self.judge.text
        )
        self.head_tokens = self.judge.text(head) + self.judge.text(added)
        self.over_limit = 0
        self.fit_ms = list[float]()
        self._run = run
        self._raw: list[int] = []
        self._shown: list[int] = []

    def add(self, number: int, view: Sequence[Any]) -> int:
        """Take in the view of a call; the judge's tokens of its messages."""
        length = self.lengths[number]
        history = self._run.messages[:length]
        answer_tokens = self.judge.tokens(answer_of(self._run, length))
        self.meter.take(number, history, view, answer_tokens)
        self._raw.append(self.judge.tokens(history))
        self._shown.append(self.judge.tokens(view))
        return self._shown[-1]

    def result(
        self,
        policy: str,
        window_tokens: int,
        evidence: EvidenceScore,
        events: dict[str, int],
        broken: dict[str, int],
    ) -> Replayed:
        """What the whole run showed."""
        views = self.meter.shown
        return Replayed(
            run=self._run.id,
            policy=policy,
            window_tokens=window_tokens,
            calls=len(self.lengths),
            raw_peak_tokens=max(self._raw, default=0),
            raw_tokens=sum(self._raw),
            peak_tokens=max(self._shown, default=0),
            tokens=sum(self._shown),
            breaks=views.breaks,
            rewritten_share=views.rewritten_share,
            bills=self.meter.bills(),
            events=events,
            broken=broken,
            over_limit=self.over_limit,
            fit_ms=sorted(self.fit_ms),
            evidence=evidence,
        )


def _tools_of(toolset: Toolset) -> str:
    """Head text of the recall tools that are offered."""
    tools = [[tool.description, tool.parameters] for tool in toolset.tools]
    return canon.canonical_json(tools) if toolset.offered != "no" else ""
