"""By limit: one stage in small windows, another in all others.

What is a good trade goes by the room. Where a few results fill the window, an account that says
little leaves little; where hundreds fit, the same share of it is more than anybody reads.

Its edits are recorded under the name of the stages that it chooses between
(`ullage.core.contract.policy.name_of`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ullage.core.contract.policy import Stage
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Skipped


def by_limit(
    window: Window,
    /,
    *,
    start_tokens: int,
    stop_tokens: int,
    within: Stage,
    otherwise: Stage,
) -> Sequence[ProposedEdit] | Skipped:
    """What one of two stages proposes.

    Args:
        window: the window at the boundary at hand.
        start_tokens: the smallest limit for which ``within`` decides,
        stop_tokens: and the one from which on it does not any more.
        within: decides between the two.
        otherwise: decides below and above them.
    """
    is_within = start_tokens <= window.limit_tokens < stop_tokens
    return (within if is_within else otherwise)(window)
