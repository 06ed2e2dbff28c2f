"""Media that a provider would refuse leave the view, whatever its tokens.

One image over a limit makes every later request fail, and forty screenshots weigh more than a
request may while their tokens fit (failures F60, F61).
"""

from __future__ import annotations

from typing import NamedTuple

from ullage.history.measures import Measure
from ullage.history.transcript import Location, Transcript, leaves_of
from ullage.history.window import Window
from ullage.stages.pressure import editable_from
from ullage.tokens.models import family_of
from ullage.tokens.payload import image_size
from ullage.values.edits import Cut, Replace
from ullage.values.limits import ANTHROPIC_MEDIA, OTHER_MEDIA, MediaLimits
from ullage.values.messages import Media

__all__ = ["refused_media"]

_LEFT_SHARE = 0.5
"""Of too many so much stays: the next one is no reason to cut again."""


class _Medium(NamedTuple):
    """A medium, where it stands, what it is, its longest side, and its length as it is sent."""

    spot: Location
    what: str
    side_px: int
    size_bytes: int


def refused_media(window: Window) -> list[Cut]:
    """Cuts of the media that would be refused: what is too large, and the oldest of too many."""
    if not window.total(_COUNT):
        return []
    is_claude = family_of(window.meter.model).startswith("claude")
    limits = ANTHROPIC_MEDIA if is_claude else OTHER_MEDIA
    shown = [each for at in range(window.read_from, window.size) for each in _shown(window, at)]
    gone = [each for each in shown if _is_too_large(each, limits)]
    gone += _oldest(window, [each for each in shown if each not in gone], limits)
    start = editable_from(window)
    return [_cut(window, each) for each in sorted(gone) if each.spot[0] >= start]


def _oldest(window: Window, media: list[_Medium], limits: MediaLimits) -> list[_Medium]:
    """The oldest, where together they are too many or too heavy; never the newest."""
    is_small = window.context_tokens <= limits.small_window_tokens
    most = limits.images_small_window if is_small else limits.images
    if any(each.side_px > limits.many_side_px for each in media):
        most = limits.many_images
    sizes = [each.size_bytes for each in media]
    if len(media) <= most and sum(sizes) <= limits.request_bytes:
        return []
    number, most_bytes = int(most * _LEFT_SHARE), limits.request_bytes * _LEFT_SHARE
    first = max(len(media) - number, 0)
    while first < len(media) - 1 and sum(sizes[first:]) > most_bytes:
        first += 1
    return media[:first]


def _is_too_large(medium: _Medium, limits: MediaLimits) -> bool:
    is_image = medium.side_px > 0
    most_bytes = limits.image_bytes * 4 // 3 + 4 if is_image else limits.request_bytes
    return medium.side_px > limits.side_px or medium.size_bytes > most_bytes


def _media(transcript: Transcript, index: int) -> list[_Medium]:
    leaves = leaves_of(transcript.messages[index])
    found = [((index, part, item), leaf) for part, item, leaf in leaves if isinstance(leaf, Media)]
    return [
        _Medium(
            spot,
            medium.mime or medium.kind,
            max(image_size(medium.data)) if medium.kind == "image" else 0,
            len(medium.data),
        )
        for spot, medium in found
    ]


_MEDIA = Measure("ullage.media", _media)


def _shown(window: Window, index: int) -> list[_Medium]:
    """The media of a message that are sent with it."""
    found = () if window.hidden(index) else window.transcript.once(_MEDIA, index)
    return [each for each in found if window.edit_at(each.spot) is None]


_COUNT = Measure[int]("ullage.shown_media", lambda window, index: len(_shown(window, index)))


def _cut(window: Window, medium: _Medium) -> Cut:
    output = window.transcript.output(medium.spot)
    assert output is not None  # every medium can be set aside
    text = window.words.media(output.ref, f"{medium.what}, {medium.size_bytes:,} bytes,")
    side = f"{medium.side_px:,} pixels a side, " if medium.side_px else ""
    why = f"{side}{medium.size_bytes:,} bytes: the provider would refuse the request"
    place = window.transcript.place(medium.spot)
    return Cut(Replace(place, output.ref, text, "cut", why), (output,))
