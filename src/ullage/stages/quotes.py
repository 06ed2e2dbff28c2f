"""What the user said in a run of messages, word for word as far as there is room.

Rules are short and pastes are long. The newest text and the task are quoted whole where that
leaves the others a beginning. What is left is poured over these alike, as water over cups: each is
quoted whole up to one common height, and what is higher keeps what it demands or forbids, its head
and its tail. Where there is not room for all, the newest text comes first, then what demands or
forbids something, then small talk, the newest of each first. Of the rest, the oldest small talk, a
line stands with what opens it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

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
_LINES_SHARE = 0.2
"""Lines in place of texts have no more of the room than this."""
_CUT = "\n[… {:,} characters: {} …]\n"
_ASIDE = "[{:,} characters set aside: {}]"
_INDEX = "see the index"


def quotes(
    texts: Sequence[str],
    room_chars: int,
    *,
    frame_chars: int = 0,
    keeps_first: bool = False,
    refs: Sequence[str] = (),
) -> dict[int, str]:
    """The quotations that fit, by the number of their text.

    Args:
        texts: what was said, oldest first.
        room_chars: characters for all quotations, with what stands around them.
        frame_chars: characters that stand around each.
        keeps_first: the first text is the task and comes before all others.
        refs: what opens each text; without them what is left out is in the index alone.
    """
    newest = {text: number for number, text in enumerate(texts)}
    edges = {len(texts) - 1, 0 if keeps_first else -1}
    opened_by = [f"ref={ref}" for ref in refs] or [_INDEX] * len(texts)

    def rank(number: int) -> tuple[bool, bool, int]:
        return number in edges, _DEMANDS.search(texts[number]) is not None, number

    order = sorted(newest.values(), key=rank, reverse=True)
    least = [min(len(text), _LEAST_CHARS) + frame_chars for text in texts]
    chosen = order[: _fitting([least[number] for number in order], room_chars)]
    lines = dict[int, str]()
    if refs and len(chosen) < len(order):
        lines_chars = int(room_chars * _LINES_SHARE)
        quoted_chars = room_chars - lines_chars
        chosen = order[: _fitting([least[number] for number in order], quoted_chars)]
        rest = sorted(set(order).difference(chosen), reverse=True)
        asides = [_ASIDE.format(len(texts[number]), opened_by[number]) for number in rest]
        count = _fitting([len(aside) + frame_chars for aside in asides], lines_chars)
        lines = dict(zip(rest[:count], asides[:count], strict=True))
    room_chars -= sum(map(len, lines.values())) + (len(lines) + len(chosen)) * frame_chars
    heights = _heights(texts, chosen, edges, room_chars)
    shown = {n: _excerpt(texts[n], height, opened_by[n]) for n, height in heights.items()}
    room_chars -= sum(map(len, shown.values()))
    shown |= lines
    for number, text in enumerate(texts):
        again = min(text, _AGAIN, key=len)
        said_again = newest[text] != number and newest[text] in shown
        if said_again and len(again) + frame_chars <= room_chars:
            shown[number] = again
            room_chars -= len(again) + frame_chars
    return shown


def _fitting(sizes: Sequence[int], room: int) -> int:
    """How many of these sizes fit a room, from the first on."""
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)


def _heights(
    texts: Sequence[str], chosen: Sequence[int], edges: Set[int], room: int
) -> dict[int, int]:
    """How many characters of each chosen text are shown: all of the edges, if that can be."""
    heights, others = dict[int, int](), list(chosen)
    for number in [number for number in chosen if number in edges]:
        rest = sum(min(len(texts[other]), _LEAST_CHARS) for other in others if other != number)
        if len(texts[number]) + rest <= room:
            heights[number] = len(texts[number])
            others.remove(number)
            room -= len(texts[number])
    height = level([len(texts[number]) for number in others], room)
    return heights | dict.fromkeys(others, height)


def _excerpt(text: str, chars: int, opened_by: str) -> str:
    """A text of at most so many characters: whole, or what it demands, its head and its tail."""
    if len(text) <= chars:
        return text
    marker = len(_CUT.format(len(text), opened_by))
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
        shown += (_CUT.format(start - at, opened_by) if start > at else "") + text[start:stop]
        at = stop
    return shown
