"""What the user said in a run of messages, word for word as far as there is room.

Rules are short and pastes are long. So the room is poured over all texts alike, as water over
cups: each is quoted whole up to one common height, and what is higher keeps what it demands or
forbids, its head and its tail. Where there is not room for all, the newest text comes first, then
what demands or forbids something, then small talk, the newest of each first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ullage.stages.facts import SENTENCE
from ullage.stages.shorten import level, safe_cut

USER_SHARE = 0.30
"""What the user said may take this share of the limit beside any summary."""
_DEMANDS = re.compile(
    r"(?i)\b(?:must|never|always|don't|do not|only|without|not allowed|require|has to|have to|"
    r"should|shall|avoid|ensure|make sure|prefer|keep|constraint|rule|important|at most|at least|"
    r"no more than|under no|except|unless|mustn't|can't|cannot|leave|from now on|remember|use)\b"
)
_LEAST_CHARS = 240
"""A quotation below this says nothing; rather fewer of them."""
_DEMANDS_SHARE = 0.5
_HEAD_SHARE = 0.67
_AGAIN = "(the same words as further below)"
_CUT = "\n[… {:,} characters: see the index …]\n"


def quotes(
    texts: Sequence[str], room_chars: int, *, frame_chars: int = 0, keeps_first: bool = False
) -> dict[int, str]:
    """The quotations that fit, by the number of their text.

    ``texts`` are oldest first; with ``keeps_first`` the first of them is the task and comes before
    all others. ``room_chars`` are for all quotations, with ``frame_chars`` around each.
    """
    newest = {text: number for number, text in enumerate(texts)}
    edges = {len(texts) - 1, 0 if keeps_first else -1}

    def rank(number: int) -> tuple[bool, bool, int]:
        return number in edges, _DEMANDS.search(texts[number]) is not None, number

    chosen, held = list[int](), 0
    for number in sorted(newest.values(), key=rank, reverse=True):
        held += min(len(texts[number]), _LEAST_CHARS) + frame_chars
        if held > room_chars:
            break
        chosen.append(number)
    room_chars -= len(chosen) * frame_chars
    height = level([len(texts[number]) for number in chosen], room_chars)
    shown = {number: _excerpt(texts[number], height) for number in chosen}
    room_chars -= sum(map(len, shown.values()))
    for number, text in enumerate(texts):
        again = min(text, _AGAIN, key=len)
        said_again = newest[text] != number and newest[text] in shown
        if said_again and len(again) + frame_chars <= room_chars:
            shown[number] = again
            room_chars -= len(again) + frame_chars
    return shown


def _excerpt(text: str, chars: int) -> str:
    """A text of at most so many characters: whole, or what it demands, its head and its tail."""
    if len(text) <= chars:
        return text
    marker = len(_CUT.format(len(text)))
    spans, room = list[tuple[int, int]](), int(chars * _DEMANDS_SHARE)
    sentences = (found for found in SENTENCE.finditer(text) if _DEMANDS.search(found[0]))
    for start, stop in (found.span() for found in sentences):
        room -= stop - start + marker
        if room < 0:
            break
        spans.append((start, stop))
    kept = max(chars - sum(stop - start + marker for start, stop in spans) - marker, 0)
    tail = safe_cut(text, len(text) - kept + int(kept * _HEAD_SHARE))
    head = safe_cut(text, kept - (len(text) - tail))
    inner = [(start, stop) for start, stop in spans if head <= start and stop <= tail]
    shown, at = text[:head], head
    for start, stop in (*inner, (tail, len(text))):
        shown += (_CUT.format(start - at) if start > at else "") + text[start:stop]
        at = stop
    return shown
