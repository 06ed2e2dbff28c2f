"""Full service of one run: what a policy costs once every miss is paid for.

The service itself is `lab.replay.service`; what many runs come to is
`lab.replay.compare.service`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from lab.replay.service import Serviced, serve
from lab.replay.story import Story
from lab.replay.subjects import subject_for
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.evidence.demands import HeadText, demands_of
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS


def full_service(
    run: Run,
    window_tokens: int,
    *,
    profiles: Sequence[Profile],
    policy: str,
    common: Set[str] = frozenset(),
) -> Serviced:
    """Replay one run in one window and pay for every miss.

    Args:
        run: the recording.
        window_tokens: the context window.
        profiles: whose caches and prices to reckon with.
        policy: a preset, a policy of the frame or an adversary.
        common: values that are no evidence (`ullage.tools.replay.evidence.common`).
    """
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    demands = demands_of(
        story, lengths, HeadText.of(wire, run.request), common
    )
    subject = subject_for(run, window_tokens, policy, demands)
    return serve(run, story, demands, subject, profiles)
