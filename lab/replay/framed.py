"""Replay one run under a policy of the frame, or an adversary: no session, the same score.

They are judged by the rules of the wire (G1) and by the budget; a view over it counts in
``over_limit``. The other gates are promises they do not make.
"""

from __future__ import annotations

import time
from collections.abc import Sequence, Set

from lab.replay.adversaries import ADVERSARIES
from lab.replay.frame import FRAMES, frame
from lab.replay.past import Memo, PageLibrary, Past, budget_of
from ullage.replay.boundaries import answer_of, boundaries
from ullage.replay.cost.money import CostMeter, clocks_of
from ullage.replay.cost.prefix import head_of
from ullage.replay.cost.prices import Profile
from ullage.replay.evidence.score import watch_over
from ullage.replay.gates import Judge, breaks_wire
from ullage.replay.readers import Run
from ullage.replay.run import Replayed, Sums

__all__ = ["FRAME_NAMES", "replay_frame"]

FRAME_NAMES = (*FRAMES, *ADVERSARIES)
"""What `replay_frame` takes as policy; none is a preset that a session can have."""


def replay_frame(
    run: Run,
    window_tokens: int,
    *,
    profiles: Sequence[Profile],
    policy: str,
    common: Set[str] = frozenset(),
) -> Replayed:
    """Replay one run in one window.

    Args:
        run: the recording.
        window_tokens: the context window; its budget is that of a session there.
        profiles: whose caches and prices to reckon with.
        policy: one of `FRAME_NAMES`.
        common: values that are no evidence (`ullage.replay.evidence.common`).
    """
    judge, head, lengths = Judge(), head_of(run.request), boundaries(run)
    budget = budget_of(run, window_tokens, judge)
    clocks = clocks_of(run.id, lengths, run.stamps)
    sums = Sums(judge, CostMeter(profiles, (head, head), clocks, judge.text))
    library, memo = PageLibrary(), Memo()
    watch, broken = watch_over(run, lengths, library, common), 0
    chosen = ADVERSARIES.get(policy) or frame(policy, watch.demands)
    for number, length in enumerate(lengths):
        history = run.messages[:length]
        started = time.perf_counter()
        shown = chosen(Past(watch.story, length, number, judge, memo), budget)
        sums.fit_ms.append((time.perf_counter() - started) * 1e3)
        library.pages = shown.pages
        broken += breaks_wire(run.format, history, shown.messages)
        watch.see(number, length, shown.messages)
        answer = answer_of(run, length)
        sums.over_limit += sums.add(number, history, shown.messages, answer) > budget
    return sums.result(
        run=run.id,
        policy=policy,
        window_tokens=window_tokens,
        calls=len(lengths),
        events={},
        broken={"G1": broken} if broken else {},
        evidence=watch.evidence(),
    )
