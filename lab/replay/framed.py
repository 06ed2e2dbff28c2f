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
from lab.replay.watch import watch_over
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.gates import breaks_wire
from ullage.tools.replay.readers import Run
from ullage.tools.replay.run import Replayed, RunSums

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
        common: values that are no evidence (`ullage.tools.replay.evidence.common`).
    """
    sums, library, memo = RunSums(run, profiles), PageLibrary(), Memo()
    budget = budget_of(run, window_tokens, sums.judge)
    watch, illegal = watch_over(run, sums.lengths, library, common), 0
    chosen = ADVERSARIES.get(policy) or frame(policy, watch.demands)
    for number, length in enumerate(sums.lengths):
        started = time.perf_counter()
        shown = chosen(
            Past(watch.story, length, number, sums.judge, memo), budget
        )
        sums.fit_ms.append((time.perf_counter() - started) * 1e3)
        library.pages = shown.pages
        illegal += breaks_wire(
            run.format, run.messages[:length], shown.messages
        )
        watch.see(number, length, shown.messages)
        sums.over_limit += sums.add(number, shown.messages) > budget
    broken = {"G1": illegal} if illegal else {}
    return sums.result(policy, window_tokens, watch.evidence(), {}, broken)
