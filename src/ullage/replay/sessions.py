"""The session a recorded run is replayed with."""

from __future__ import annotations

from functools import partial

from ullage.replay.readers import Run
from ullage.replay.rewire import MODELS
from ullage.session import Session
from ullage.stages.policy import Policy
from ullage.values.limits import Limits

__all__ = ["model_of", "session_for"]


def model_of(run: Run) -> str:
    """The model of a run; one of its format where the recording names none."""
    return str(run.request.get("model") or MODELS[run.format])


def session_for(run: Run, policy: Policy, window_tokens: int) -> partial[Session]:
    """Makes sessions that keep this run in a window; recall is on if the policy offers it."""
    return partial(
        Session,
        model_of(run),
        policy=policy,
        limits=Limits(window_tokens=window_tokens),
        format=run.format,
        recall=policy.toolset.offered,
    )
