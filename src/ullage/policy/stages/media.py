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
    """An image or a file.

    Attributes:
        spot: where it stands.
        side_px: its longest side, 0 if it has none.
        sent_bytes: its length as it is sent.
    """

    spot: Location
    side_px: int
    sent_bytes: int


def refused_media(window: Window) -> list[ProposedEdit]:
    """Cuts of the media that would be refused: what is too large, and the oldest of too many."""
    shown = _shown_media(window)
    if not shown:
        return []
    is_claude = "claude" in family_of(window.meter.model)
    limits = ANTHROPIC_MEDIA if is_claude else OTHER_MEDIA
    small = []
    for medium in shown:
        if limits.takes(medium.side_px, medium.sent_bytes):
            small.append(medium)
    excess = _excess(small, limits, window.context_tokens)
    staying = small[excess:]
    start = editable_from(window)
    cuts = []
    for medium in shown:
        if medium in staying or medium.spot[0] < start:
            continue
        cut = placeholder(window, medium.spot, why=_WHY)
        if cut is not None:
            cuts.append(cut)
    return cuts


def _shown_media(window: Window) -> list[_Medium]:
    """The media that the view shows, the oldest first."""
    transcript = window.transcript
    shown = []
    holders = transcript.marked("media", window.read_from, window.size)
    for index in holders:
        if window.hidden(index):
            continue
        for medium in transcript.once(_MEDIA, index):
            if not window.edit_at(medium.spot):
                shown.append(medium)
    return shown


def _excess(
    media: list[_Medium], limits: MediaLimits, context_tokens: int
) -> int:
    """How many of the oldest go: none, or half of what may be sent, so that it is done seldom."""
    most = _most_images(media, limits, context_tokens)
    total_bytes = sum(medium.sent_bytes for medium in media)
    if len(media) <= most and total_bytes <= limits.request_bytes:
        return 0
    # down to half: one by one would break the cache at every new image
    count = max(len(media) - most // 2, 0)
    for medium in media[:count]:
        total_bytes -= medium.sent_bytes
    for medium in media[count:-1]:  # the newest stays
        if total_bytes <= limits.request_bytes // 2:
            break
        total_bytes -= medium.sent_bytes
        count += 1
    return count


def _most_images(
    media: list[_Medium],
    limits: MediaLimits,
    context_tokens: int,
) -> int:
    """The most images of one request; fewer where one of them is large."""
    most = limits.images
    if context_tokens <= limits.small_window_tokens:
        most = limits.images_small_window
    largest_px = max((medium.side_px for medium in media), default=0)
    if largest_px > limits.many_side_px:
        most = min(most, limits.many_images)
    return most


def _media(transcript: Transcript, index: int) -> tuple[_Medium, ...]:
    """The media in a message."""
    media = []
    for number, item, leaf in leaves_of(transcript.messages[index]):
        if isinstance(leaf, Media):
            medium = _Medium(
                spot=(index, number, item),
                side_px=max(image_size(leaf.data)),
                sent_bytes=len(leaf.data),
            )
            media.append(medium)
    return tuple(media)


_MEDIA = Measure("ullage.media", _media)
