"""Media that a provider would refuse leave the view, whatever their tokens.

One image over a limit makes every later request fail, and forty screenshots weigh more than a
request may while their tokens fit (failures F60, F61).
"""

from __future__ import annotations

from typing import NamedTuple

from ullage.core.contract.bound import editable_from
from ullage.core.history.measures import Measure
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.history.window import Window
from ullage.core.tokens.models import family_of
from ullage.core.tokens.payload import image_size
from ullage.core.values.edits import ProposedEdit
from ullage.core.values.limits import ANTHROPIC_MEDIA, OTHER_MEDIA, MediaLimits
from ullage.core.values.messages import Media
from ullage.policy.stages.placeholders import placeholder

_WHY = "the provider would refuse a request with it"


class _Medium(NamedTuple):
    """Where a medium stands, its longest side, 0 if it has none, and its length as it is sent."""

    spot: Location
    side_px: int
    sent_bytes: int


def refused_media(window: Window) -> list[ProposedEdit]:
    """Cuts of the media that would be refused: what is too large, and the oldest of too many."""
    if not (
        holders := window.transcript.marked("media", window.read_from, window.size)
    ):
        return []
    limits = (
        ANTHROPIC_MEDIA if "claude" in family_of(window.meter.model) else OTHER_MEDIA
    )
    held = (each for at in holders for each in window.transcript.once(_MEDIA, at))
    shown = [
        each
        for each in held
        if not (window.hidden(each.spot[0]) or window.edit_at(each.spot))
    ]
    small = [each for each in shown if limits.takes(each.side_px, each.sent_bytes)]
    kept = small[_excess(small, limits, window.context_tokens) :]
    start = editable_from(window)
    gone = (each.spot for each in shown if each not in kept and each.spot[0] >= start)
    cuts = (placeholder(window, spot, why=_WHY) for spot in gone)
    return [cut for cut in cuts if cut is not None]


def _excess(media: list[_Medium], limits: MediaLimits, context_tokens: int) -> int:
    """How many of the oldest go: none, or half of what may be sent, so that it is done seldom."""
    is_small = context_tokens <= limits.small_window_tokens
    most = limits.images_small_window if is_small else limits.images
    if any(each.side_px > limits.many_side_px for each in media):
        most = min(most, limits.many_images)
    sizes = [each.sent_bytes for each in media]
    if len(media) <= most and sum(sizes) <= limits.request_bytes:
        return 0
    first = max(len(media) - most // 2, 0)
    while first < len(media) - 1 and sum(sizes[first:]) > limits.request_bytes // 2:
        first += 1
    return first


def _media(transcript: Transcript, index: int) -> tuple[_Medium, ...]:
    leaves = leaves_of(transcript.messages[index])
    found = [
        ((index, part, item), leaf)
        for part, item, leaf in leaves
        if isinstance(leaf, Media)
    ]
    return tuple(
        _Medium(spot, max(image_size(leaf.data)), len(leaf.data))
        for spot, leaf in found
    )


_MEDIA = Measure("ullage.media", _media)
