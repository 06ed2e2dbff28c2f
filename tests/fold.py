"""The engine run by hand, with nobody to ask for summaries."""

from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn import engine
from ullage.core.turn.active_policy import ActivePolicy, PolicyResolution
from ullage.policy.stages.default import SAFEGUARDS

ACTIVE = ActivePolicy(PolicyRecord("default", recall=True))


def fit(window, ledger, policy, active=ACTIVE, **more):
    """What the engine decides; it may not ask for anything."""
    steps = engine.fit(
        window, PolicyResolution(active, ledger), policy, SAFEGUARDS, **more
    )
    try:
        asked = next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"nobody was there to ask, and it asked {asked}")
