"""What reported usage teaches about our estimates.

A provider reports the tokens of the whole prompt with every reply. Between its number and ours
lie an offset we cannot see (hidden prompts, schemas, reminders) and a scale (another
tokeniser). The offset need not be known: the last report is an anchor, and only what was added
or taken away since is estimated,

    tokens(e) = reported + scale · (e - estimated)

The scale is the median of the slopes between successive reports, weighed by how much changed,
with the cold estimate (slope 1) as one more among them. A median does not follow one
reply whose usage was summed over a turn, or a prompt that grew by something we did not see.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Slope: TypeAlias = tuple[float, int]
"""Tokens reported for each token estimated, and how many estimated tokens say so."""

MIN_SCALE = 0.5
MAX_SCALE = 2.5
UNSEEN_TOKENS = 150_000
"""The most that may be in a prompt unseen by us: hidden prompts, tools, media, server state."""

_KEPT_SLOPES = 16
_LEAST_CHANGE = 32
_LEAST_GROWTH = 500
_LEAST_SLOPE = 0.1
"""Of ``_LEAST_GROWTH`` tokens that we estimate more, no tokeniser makes less than this share."""
_COLD_WEIGHT = 400
_SHARE_EXACT = 0.08
_SHARE_ESTIMATE = 0.25
_SHARE_OF_REPORT = 0.005


class Calibration(Struct, frozen=True):
    """An estimate's correction, learnt from pairs (reported, estimated) of one conversation.

    A value: pure, deterministic, and small enough to be kept with the session's state. Begin a
    new one when the model changes.

    Attributes:
        exact: whether the estimates come from the provider's own tokeniser.
        reported_tokens: what the last accepted report said of its prompt; 0 before any.
        estimated_tokens: what we had estimated for that prompt.
        replies: accepted reports.
        scale: tokens for each estimated token of change.
        slopes: the last observations the scale rests on.
        removed_tokens: what was taken out of the reported prompt since, as we had estimated it.
    """

    exact: bool = False
    reported_tokens: int = 0
    estimated_tokens: int = 0
    replies: int = 0
    scale: float = 1.0
    slopes: tuple[Slope, ...] = ()
    removed_tokens: int = 0

    def observe(self, reported: int, estimated: int) -> Calibration:
        """The calibration after one more reply.

        Reports that cannot be a prompt's size are ignored: none or 0, as streams without
        usage have, far less than was sent (cached tokens left out) and far more. So is a count
        that stands still while the prompt grows: a provider cut the prompt silently.
        """
        if (
            reported <= 0
            or estimated < 0
            or not _is_plausible(reported, estimated)
        ):
            return self
        if self._stands_still(reported, estimated):
            return self
        slopes = self._with_slope(reported - self.reported_tokens, estimated)
        return Calibration(
            exact=self.exact,
            reported_tokens=reported,
            estimated_tokens=estimated,
            replies=self.replies + 1,
            scale=_weighed_median(slopes),
            slopes=slopes,
        )

    def apply(self, estimated: int) -> int:
        """Tokens the provider will count where we estimate ``estimated``.

        Grows with ``estimated``; the identity before the first report.
        """
        if not self.replies:
            return estimated
        change = self.scale * (estimated - self.estimated_tokens)
        anchored = self.reported_tokens + change
        least = MIN_SCALE * estimated
        most = MAX_SCALE * estimated + UNSEEN_TOKENS
        return round(max(least, min(anchored, most)))

    def upper(self, estimated: int) -> int:
        """A number of tokens the provider is not expected to exceed, for hard limits.

        The margin is a share of what was not in the prompt last reported, and of what of that is
        gone: everything before the first report, little where only a little was added, and
        everything again where little is left of it.
        """
        share = _SHARE_EXACT if self.exact else _SHARE_ESTIMATE
        change = estimated - self.estimated_tokens
        changed = min(change + 2 * self.removed_tokens, estimated)
        margin = share * max(changed, abs(change))
        margin += _SHARE_OF_REPORT * self.reported_tokens
        return self.apply(estimated) + round(margin)

    def most(self, limit_tokens: int) -> int:
        """The most that may be estimated so that `upper` of it is within a limit."""
        low = 0
        high = 3 * limit_tokens
        while low < high:
            middle = (low + high + 1) // 2
            if self.upper(middle) <= limit_tokens:
                low = middle
            else:
                high = middle - 1
        return low

    def without(self, removed_tokens: int) -> Calibration:
        """The calibration once so much was taken out, in all, as we estimate it."""
        return replace(self, removed_tokens=removed_tokens)

    def _stands_still(self, reported: int, estimated: int) -> bool:
        """Whether the prompt grew, and the provider's count of it did not."""
        growth = estimated - self.estimated_tokens
        if not self.replies or growth < _LEAST_GROWTH:
            return False
        return abs(reported - self.reported_tokens) < _LEAST_SLOPE * growth

    def _with_slope(
        self, change_reported: int, estimated: int
    ) -> tuple[Slope, ...]:
        """The slopes kept, with the one of this report if enough has changed for one."""
        change = estimated - self.estimated_tokens
        if not self.replies or abs(change) < _LEAST_CHANGE:
            return self.slopes
        slope = min(max(change_reported / change, MIN_SCALE), MAX_SCALE)
        return (*self.slopes, (slope, abs(change)))[-_KEPT_SLOPES:]


def _is_plausible(reported: int, estimated: int) -> bool:
    """Whether a prompt we estimate so may be reported so."""
    return (
        MIN_SCALE * estimated - 200
        <= reported
        <= MAX_SCALE * estimated + UNSEEN_TOKENS
    )


def _weighed_median(slopes: tuple[Slope, ...]) -> float:
    """The slope with half of the weight on either side, the cold estimate included."""
    weighed = sorted((*slopes, (1.0, _COLD_WEIGHT)))
    half = sum(weight for _, weight in weighed) / 2
    below = 0
    for slope, weight in weighed:
        below += weight
        if below >= half:
            return slope
    return 1.0
