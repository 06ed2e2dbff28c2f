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
from collections.abc import (
    Callable,
    Container,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from heapq import heapify, heappop, heapreplace, merge
from typing import NamedTuple

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
        self._demands: dict[
            str, int
        ] = {}  # each text once, by where it was said last
        self._small_talk: dict[str, int] = {}
        self._earlier: dict[
            str, list[int]
        ] = {}  # where else it was said, oldest first
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
        kinds = (self._demands, self._small_talk)
        for newest in kinds:
            numbers = [
                edge for edge in edges if newest.get(self._texts[edge]) == edge
            ]
            yield from sorted(numbers, reverse=True)
        for newest in kinds:
            for number in reversed(newest.values()):
                if number not in edges:
                    yield number

    def by_age(self) -> Iterator[int]:
        """The number of each different text, the newest first."""
        demands = reversed(self._demands.values())
        small_talk = reversed(self._small_talk.values())
        return merge(demands, small_talk, reverse=True)

    def repeated(
        self, numbers: Container[int]
    ) -> Iterator[tuple[int, Sequence[int]]]:
        """Which of these texts were said before, and where, the oldest first."""
        for text, earlier in self._earlier.items():
            number = self._demands.get(text)
            if number is None:
                number = self._small_talk[text]
            if number in numbers:
                yield number, earlier


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
    newest = len(texts) - 1
    edges = {0, newest} if keeps_first else {newest}

    def opened_by(number: int) -> str:
        return _INDEX if ref_of is None else f"ref={ref_of(number)}"

    chosen, chars = _chosen(texts, edges, room_chars, frame_chars)
    lines = dict[int, str]()
    if ref_of is not None and len(chosen) < texts.distinct:
        # not all fit: some of the room goes to lines that name what is set aside
        lines_chars = int(room_chars * _LINES_SHARE)
        count = bisect_right(chars, room_chars - lines_chars)
        chosen = chosen[:count]
        lines = _lines(
            texts,
            set(chosen),
            room=lines_chars,
            frame_chars=frame_chars,
            opened_by=opened_by,
        )
    frames = len(lines) + len(chosen)
    room_chars -= frames * frame_chars
    room_chars -= _chars(lines)
    quoted = dict[int, str]()
    for number, height in _heights(texts, chosen, edges, room_chars).items():
        text = texts[number]
        if len(text) > height:
            text = _excerpt(text, height, opened_by(number))
        quoted[number] = text
    room_chars -= _chars(quoted)
    quoted |= lines
    return quoted | _again(texts, quoted, room_chars, frame_chars)


def _chars(quotations: Mapping[int, str]) -> int:
    """Characters of quotations, without what stands around them."""
    return sum(map(len, quotations.values()))


def _chosen(
    texts: Texts,
    edges: Set[int],
    room: int,
    frame_chars: int,
) -> tuple[list[int], list[int]]:
    """The texts of which a beginning fits, by their rank, up to the first that does not fit.

    Beside each are the characters that it and those before it take.
    """
    chosen = list[int]()
    sums = list[int]()
    least_chars = texts.least_chars
    total = 0
    for number in texts.by_rank(edges):
        total += least_chars[number] + frame_chars
        if total > room:
            break
        chosen.append(number)
        sums.append(total)
    return chosen, sums


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


class _Repeat(NamedTuple):
    """A place where a text was said that is quoted further below; they sort by their places.

    Attributes:
        place: the number of the text there.
        nth: which of the earlier places it is.
        number: the number of the text where it is quoted.
        earlier: every earlier place.
    """

    place: int
    nth: int
    number: int
    earlier: Sequence[int]

    def next(self) -> _Repeat | None:
        """The next place of the same text, or None."""
        nth = self.nth + 1
        if nth == len(self.earlier):
            return None
        return _Repeat(self.earlier[nth], nth, self.number, self.earlier)


def _again(
    texts: Texts,
    quoted: Mapping[int, str],
    room: int,
    frame_chars: int,
) -> dict[int, str]:
    """What stands where a text that is shown was said before, the oldest first."""
    again = dict[int, str]()
    repeats = []
    for number, earlier in texts.repeated(quoted):
        repeats.append(_Repeat(earlier[0], 0, number, earlier))
    heapify(repeats)
    while repeats:
        repeat = repeats[0]
        line = min(texts[repeat.number], _AGAIN, key=len)
        chars = len(line) + frame_chars
        following = None
        if chars <= room:
            again[repeat.place] = line
            room -= chars
            following = repeat.next()
        if following is None:
            heappop(
                repeats
            )  # what does not fit now never will: room only shrinks
        else:
            heapreplace(repeats, following)
    return again


def _heights(
    texts: Texts,
    chosen: Sequence[int],
    edges: Set[int],
    room: int,
) -> dict[int, int]:
    """How many characters of each chosen text are shown: all of the edges, if that can be."""
    heights = dict[int, int]()
    least = sum(texts.least_chars[number] for number in chosen)
    # an edge is quoted whole if the others keep their least beside it
    for number in chosen:
        if number not in edges:
            continue
        chars = len(texts[number])
        least_of_rest = least - texts.least_chars[number]
        if chars + least_of_rest <= room:
            heights[number] = chars
            least = least_of_rest
            room -= chars
    # what is left is poured over the others alike
    leveled = [number for number in chosen if number not in heights]
    sizes = [len(texts[number]) for number in leveled]
    height = level(sizes, room)
    return heights | dict.fromkeys(leveled, height)


def _excerpt(text: str, chars: int, opened_by: str) -> str:
    """Of a text in at most so many characters what it demands, its head and its tail."""
    longest_gap = _CUT.format(len(text), opened_by)
    gap_chars = len(longest_gap)
    demands_chars = int(chars * _DEMANDS_SHARE)
    demands = _demanding_spans(text, demands_chars, gap_chars)
    ends_chars = chars - gap_chars
    for start, stop in demands:
        ends_chars -= stop - start + gap_chars
    ends_chars = max(ends_chars, 0)
    total = len(text)
    head_chars = int(ends_chars * _HEAD_SHARE)
    tail_start = safe_cut(text, total - ends_chars + head_chars)
    tail_chars = total - tail_start
    head_stop = safe_cut(text, ends_chars - tail_chars)
    spans = []
    for start, stop in demands:
        if head_stop <= start and stop <= tail_start:
            spans.append((start, stop))
    spans.append((tail_start, total))
    excerpt = text[:head_stop]
    reached = head_stop
    for start, stop in spans:
        if start > reached:
            excerpt += _CUT.format(start - reached, opened_by)
        excerpt += text[start:stop]
        reached = stop
    return excerpt


def _demanding_spans(
    text: str, room: int, gap_chars: int
) -> list[tuple[int, int]]:
    """Where the first sentences stand that demand or forbid something, as many as fit a room."""
    spans = list[tuple[int, int]]()
    for sentence in SENTENCE.finditer(text):
        if not _DEMANDS.search(sentence[0]):
            continue
        start, stop = sentence.span()
        room -= stop - start + gap_chars
        if room < 0:
            break
        spans.append((start, stop))
    return spans
