"""What the user said in a run of messages, word for word as far as there is room.

Rules are short and pastes are long. So the room is poured over all texts alike, as water over
cups: each is quoted whole up to one common height, and what is higher loses its middle.
"""

from __future__ import annotations

from collections.abc import Sequence

from ullage.stages.shorten import ends_of, level

__all__ = ["quotes"]

_LEAST_CHARS = 240
"""A quotation below this says nothing; rather fewer of them, the newest."""
_AGAIN = "(the same words as further below)"
_CUT = "\n[… {:,} characters: see the index …]\n"


def quotes(texts: Sequence[str], room_chars: int) -> dict[int, str]:
    """The quotations that fit, by the number of their text.

    Args:
        texts: what was said, oldest first.
        room_chars: the most characters of all quotations together.
    """
    newest = {text: number for number, text in enumerate(texts)}
    whole, held = list[int](), 0
    for number in sorted(newest.values(), reverse=True):
        held += min(len(texts[number]), _LEAST_CHARS)
        if held > room_chars:
            break
        whole.append(number)
    height = level([len(texts[number]) for number in whole], room_chars)
    shown = {n: ends_of(texts[n], height, _CUT) for n in whole}
    room_chars -= sum(map(len, shown.values()))
    for number, text in enumerate(texts):
        said_again = newest[text] != number and newest[text] in shown
        if said_again and len(_AGAIN) < min(len(text), room_chars):
            shown[number] = _AGAIN
            room_chars -= len(_AGAIN)
    return shown
