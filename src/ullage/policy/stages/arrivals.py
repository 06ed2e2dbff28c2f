"""Arrivals: results that are new, and too large for what is left of the window.

A result that no request has shown yet can be cut without breaking anything before it. So it gives
way first: before a batch of old results leaves the view, and long before what users said does. What
is decided here goes by the room that there is, so unlike a cut on arrival it is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit
from ullage.core.values.messages import Text
from ullage.policy.stages.pressure import GUARD_SHARE
from ullage.policy.stages.shorten import level
from ullage.policy.stages.shrink import LEAST_TOKENS, cut_to
from ullage.policy.stages.truncate import Shape, by_kind, cut_by


def arrivals(window: Window) -> Iterator[Location]:
    """The texts of results that the model has not seen yet, but for pages of recall."""
    transcript = window.transcript
    for index in range(window.turn_start, window.size):
        if window.hidden(index):
            continue
        for spot in transcript.tool_results(index):
            if isinstance(
                transcript.leaf(spot), Text
            ) and not window.is_recall(spot):
                yield spot


def without_slack(
    window: Window,
    /,
    *,
    shape: Shape = partial(by_kind, slack=1.0, data_slack=1.0),
    least_share: float = 0.125,
) -> Sequence[ProposedEdit]:
    """Cuts of new results that would take much of the window, to the size that others are cut to.

    Args:
        window: the window at the boundary at hand.
        shape: what is shown of such a result.
        least_share: of the limit; no more than this is much.
    """
    least_tokens = int(window.limit_tokens * least_share)
    cuts = []
    for spot in arrivals(window):
        if window.leaf_tokens(spot) <= least_tokens:
            continue
        cut = cut_by(window, spot, shape)
        if cut is not None and _is_shorter(window, spot, cut):
            cuts.append(cut)
    return cuts


def _is_shorter(window: Window, spot: Location, cut: ProposedEdit) -> bool:
    """Whether a cut shows less of a result than is shown of it now."""
    edit = window.edit_at(spot)
    if edit is None:
        return True
    text: str = getattr(cut.edit, "text", "")
    return len(text) < len(edit.text)


def equal_shares(
    window: Window,
    /,
    *,
    start: float = GUARD_SHARE,
    target: float = 0.85,
    least_share: float = 0.40,
) -> Sequence[ProposedEdit]:
    """Cuts that bring new results to equal shares of what everything else leaves of the window.

    Nothing is cut where that would not do: then the guard decides what else has to leave.

    Args:
        window: the window at the boundary at hand.
        start: act when the upper bound of the view is above this share of the limit.
        target: bring it down to this share.
        least_share: of the limit; the new results have at least so much together.
    """
    limit = window.limit_tokens
    if window.within(int(limit * start), surely=True):
        return ()
    spots = list(arrivals(window))
    sizes = [window.leaf_tokens(spot) for spot in spots]
    # the results share what is left when everything else stays as it is
    rest_tokens = window.tokens - sum(sizes)
    most_tokens = window.calibration.most(int(limit * target))
    room_tokens = most_tokens - rest_tokens
    if room_tokens < limit * least_share:
        return ()  # the guard decides what else has to leave
    share = max(level(sizes, room_tokens), LEAST_TOKENS)
    cuts = []
    for spot, tokens in zip(spots, sizes, strict=True):
        cut = cut_to(window, spot, tokens, share)
        if cut is not None:
            cuts.append(cut)
    return cuts
