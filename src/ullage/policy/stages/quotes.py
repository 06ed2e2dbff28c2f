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
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heapreplace, merge
from itertools import chain

from ullage.policy.stages.facts import SENTENCE
from ullage.policy.stages.shorten import level, safe_cut

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


class Texts:
    """Texts in the order in which they were said, ready to be quoted.

    A text that comes again counts where it was said last. The texts are kept apart by whether
    they demand something, so that quoting looks only at what it has room for.

    Args:
        texts: the first of them.

    Attributes:
        least_chars: of each text the least that is worth showing.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts: list[str] = []
        self.least_chars: list[int] = []
        self._demands: dict[str, int] = {}  # each text once, by where it was said last
        self._small_talk: dict[str, int] = {}
        self._earlier: dict[str, list[int]] = {}  # where else it was said, oldest first
        for text in texts:
            self.append(text)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def append(self, text: str) -> None:
        """Take in what was said next."""
        number = len(self._texts)
        self._texts.append(text)
        self.least_chars.append(min(len(text), _LEAST_CHARS))
        for newest in (self._demands, self._small_talk):
            if text in newest:
                self._earlier.setdefault(text, []).append(newest.pop(text))
                newest[text] = number
                return
        newest = self._demands if _DEMANDS.search(text) else self._small_talk
        newest[text] = number

    @property
    def distinct(self) -> int:
        """How many different texts there are."""
        return len(self._demands) + len(self._small_talk)

    def by_rank(self, edges: Set[int]) -> Iterator[int]:
        """The number of each different text: the edges, what demands something, the others.

        Of each the newest come first.
        """
        kinds = self._demands, self._small_talk
        first = list[int]()
        for newest in kinds:
            numbers = [at for at in edges if newest.get(self._texts[at]) == at]
            first += sorted(numbers, reverse=True)
        later = chain.from_iterable(reversed(newest.values()) for newest in kinds)
        return chain(first, (number for number in later if number not in edges))

    def by_age(self) -> Iterator[int]:
        """The number of each different text, the newest first."""
        demands, small_talk = self._demands.values(), self._small_talk.values()
        return merge(reversed(demands), reversed(small_talk), reverse=True)

    def repeated(self, numbers: Container[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Which of these texts were said before, and where, the oldest first."""
        for text, earlier in self._earlier.items():
            newest = self._demands if text in self._demands else self._small_talk
            if newest[text] in numbers:
                yield newest[text], earlier


def quotes(
    texts: Texts | Sequence[str],
    room_chars: int,
    *,
    frame_chars: int = 0,
    keeps_first: bool = False,
    ref_of: Callable[[int], str] | None = None,
) -> dict[int, str]:
    """The quotations that fit, by the number of their text.

    The work is proportional to the room, however many texts there are.

    Args:
        texts: what was said, oldest first.
        room_chars: characters for all quotations, with what stands around them.
        frame_chars: characters that stand around each.
        keeps_first: the first text is the task and comes before all others.
        ref_of: what opens a text, by its number; without it what is left out is in the index alone.
    """
    if not isinstance(texts, Texts):
        texts = Texts(texts)
    if not texts:
        return {}
    edges = {len(texts) - 1, 0 if keeps_first else len(texts) - 1}

    def opened_by(number: int) -> str:
        return _INDEX if ref_of is None else f"ref={ref_of(number)}"

    chosen, chars = _chosen(texts, edges, room_chars, frame_chars)
    lines = dict[int, str]()
    if ref_of is not None and len(chosen) < texts.distinct:
        lines_chars = int(room_chars * _LINES_SHARE)
        chosen = chosen[: bisect_right(chars, room_chars - lines_chars)]
        lines = _lines(texts, set(chosen), lines_chars, frame_chars, opened_by)
    room_chars -= (
        sum(map(len, lines.values())) + (len(lines) + len(chosen)) * frame_chars
    )
    shown = dict[int, str]()
    for number, height in _heights(texts, chosen, edges, room_chars).items():
        text = texts[number]
        is_whole = len(text) <= height
        shown[number] = text if is_whole else _excerpt(text, height, opened_by(number))
    room_chars -= sum(map(len, shown.values()))
    shown |= lines
    return shown | _again(texts, shown, room_chars, frame_chars)


def _chosen(
    texts: Texts, edges: Set[int], room: int, frame_chars: int
) -> tuple[list[int], list[int]]:
    """The texts of which a beginning fits, by their rank, up to the first that does not fit.

    Beside each are the characters that it and those before it take.
    """
    chosen, chars = list[int](), list[int]()
    least_chars, taken = texts.least_chars, 0
    for number in texts.by_rank(edges):
        taken += least_chars[number] + frame_chars
        if taken > room:
            break
        chosen.append(number)
        chars.append(taken)
    return chosen, chars


def _lines(
    texts: Texts,
    chosen: Set[int],
    room: int,
    frame_chars: int,
    opened_by: Callable[[int], str],
) -> dict[int, str]:
    """Lines in place of the newest texts that are not chosen."""
    lines = dict[int, str]()
    for number in texts.by_age():
        if number in chosen:
            continue
        line = _ASIDE.format(len(texts[number]), opened_by(number))
        room -= len(line) + frame_chars
        if room < 0:
            break
        lines[number] = line
    return lines


def _again(
    texts: Texts, shown: Mapping[int, str], room: int, frame_chars: int
) -> dict[int, str]:
    """What stands where a text that is shown was said before, the oldest first."""
    again = dict[int, str]()
    places = [
        (earlier[0], 0, number, earlier) for number, earlier in texts.repeated(shown)
    ]
    heapify(places)
    while places:
        at, nth, number, earlier = places[0]
        line = min(texts[number], _AGAIN, key=len)
        fits = len(line) + frame_chars <= room
        if fits:
            again[at] = line
            room -= len(line) + frame_chars
        if fits and nth + 1 < len(earlier):
            heapreplace(places, (earlier[nth + 1], nth + 1, number, earlier))
        else:
            heappop(places)  # what does not fit now never will: room only shrinks
    return again


def _heights(
    texts: Texts, chosen: Sequence[int], edges: Set[int], room: int
) -> dict[int, int]:
    """How many characters of each chosen text are shown: all of the edges, if that can be."""
    heights, others = dict[int, int](), list(chosen)
    least = sum(texts.least_chars[number] for number in chosen)
    for number in [number for number in chosen if number in edges]:
        rest = least - texts.least_chars[number]
        if len(texts[number]) + rest <= room:
            heights[number] = len(texts[number])
            others.remove(number)
            least = rest
            room -= len(texts[number])
    height = level([len(texts[number]) for number in others], room)
    return heights | dict.fromkeys(others, height)


def _excerpt(text: str, chars: int, opened_by: str) -> str:
    """A text of at most so many characters: whole, or what it demands, its head and its tail."""
    if len(text) <= chars:
        return text
    marker = len(_CUT.format(len(text), opened_by))
    spans, room = list[tuple[int, int]](), int(chars * _DEMANDS_SHARE)
    sentences = (
        found for found in SENTENCE.finditer(text) if _DEMANDS.search(found[0])
    )
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
        shown += (_CUT.format(start - at, opened_by) if start > at else "") + text[
            start:stop
        ]
        at = stop
    return shown
