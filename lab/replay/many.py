"""Many runs under presets, and under policies of the frame and adversaries, replayed alike."""

from __future__ import annotations

from functools import partial

from lab.replay.framed import FRAME_NAMES, replay_frame
from lab.replay.served import full_service
from lab.replay.service import Serviced
from lab.replay.watch import Evidence, watch_pages
from ullage.tools.replay.cost.prices import profiles_for
from ullage.tools.replay.many import Job, Replayer, replay_session
from ullage.tools.replay.readers import Run
from ullage.tools.replay.run import Replayed
from ullage.tools.replay.tracer import Tracer


class Tried(Replayed, frozen=True, kw_only=True):
    """A replay, and what it costs where every miss is paid for.

    Attributes:
        evidence: all that a yardstick asks.
        served: the same run at full service, if that was asked for.
    """

    evidence: Evidence
    served: Serviced | None = None


def replay(
    run: Run, window_tokens: int, job: Job, policy: str, *, serves: bool
) -> tuple[Tried, Tracer | None]:
    """Replay a run under a preset, a policy of the frame or an adversary."""
    common, profiles, tracer = (
        frozenset(job.common),
        profiles_for(job.profiles, run),
        None,
    )
    if policy in FRAME_NAMES:
        found = replay_frame(
            run, window_tokens, profiles=profiles, policy=policy, common=common
        )
    else:
        found, tracer = replay_session(
            run, window_tokens, job, policy, watch_pages
        )
    served = None
    if serves:
        served = full_service(
            run, window_tokens, profiles=profiles, policy=policy, common=common
        )
    return tried(found, served), tracer


def tried(found: Replayed, served: Serviced | None = None) -> Tried:
    """A replay, with what it costs where every miss is paid for."""
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return Tried(**fields, served=served)


TRIED = Replayer(partial(replay, serves=False), Tried, "tried")
SERVED = Replayer(partial(replay, serves=True), Tried, "served")
"""The same, and each run at full service too."""
