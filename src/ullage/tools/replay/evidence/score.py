"""The score of one run: of what its calls demand, how much was there when it was needed.

    demanded = visible + recallable (something the view leads to returns it) + lost

By age in calls; the headline is age 4 and more, weighted so that each call counts once.

A value is *visible* if one of the lines that gave it is in the view, or nearly: at least
four fifths of the line's words, in order, around the value, in one message. A value alone is
only *mentioned*: a bag of names would hold it too, and a model finds little in one. Of a long
line the 80 characters on either side count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from math import ceil
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import astuple

from ullage.tools.replay.evidence.atoms import (
    Atom,
    holds,
    places,
    plain,
    quotes,
    words,
)
from ullage.tools.replay.evidence.demands import (
    BUCKETS,
    Demand,
    Demands,
    HeadText,
    MessageText,
    RunHistory,
    bucket_of,
    demands_of,
    texts_of,
)
from ullage.tools.replay.readers import Run
from ullage.tools.replay.reading import Library, reachable_with
from ullage.wires import FORMATS

_SIDE_CHARS = 80
_SHARE = 0.8
_MOST_LINES = 64


class ValueContext(Struct, frozen=True):
    """The surroundings of a value: what is before and behind it in its line."""

    prefix: str
    suffix: str


class ParsedView(Struct, frozen=True):
    """One view, read.

    Attributes:
        texts: the texts of each message, in order.
        originals: the messages of the story that are in it as they were.
        new_texts: the texts of the messages that are not in the story.
    """

    texts: tuple[tuple[MessageText, ...], ...]
    originals: frozenset[int]
    new_texts: tuple[MessageText, ...]


class ViewReader:
    """Looks at the views of one story. A message is read once for as long as views hold it."""

    def __init__(self, story: RunHistory) -> None:
        self.story = story
        self._read: dict[int, tuple[Any, tuple[MessageText, ...]]] = {}
        self._lines: dict[tuple[Atom, int], tuple[ValueContext, ...]] = {}

    def look(self, messages: Sequence[Any]) -> ParsedView:
        """Read a view."""
        texts: list[tuple[MessageText, ...]] = []
        originals: set[int] = set()
        read: dict[int, tuple[Any, tuple[MessageText, ...]]] = {}
        for raw in messages:
            place = self.story.place_of(raw)
            if place is not None:
                originals.add(place)
                texts.append(self.story.pieces[place])
            else:
                cached = self._read.get(id(raw))
                read[id(raw)] = cached or (
                    raw,
                    tuple(texts_of(self.story.wire.parse(raw, "view"))),
                )
                texts.append(read[id(raw)][1])
        self._read = read
        new_texts = tuple(
            piece for _, pieces in read.values() for piece in pieces
        )
        return ParsedView(tuple(texts), frozenset(originals), new_texts)

    def shows(self, demand: Demand, view: ParsedView) -> bool:
        """Whether a view shows what a call demands, in evidence form."""
        if any(index in view.originals for index, _ in demand.sources):
            return True
        return any(self.is_in(demand, piece) for piece in view.new_texts)

    def is_in(self, demand: Demand, piece: MessageText) -> bool:
        """Whether a text shows what a call demands, in evidence form."""
        atom = demand.atom
        return (atom.kind != "quote" or quotes(piece.text, atom.text)) and any(
            _shows(piece.plain, at, atom.plain, line)
            for at in places(piece.plain, atom)
            for line in self._lines_of(demand)
        )

    def _lines_of(self, demand: Demand) -> tuple[ValueContext, ...]:
        key = (demand.atom, len(demand.sources))
        if key not in self._lines:
            self._lines[key] = lines_of(demand)
        return self._lines[key]


def lines_of(demand: Demand) -> tuple[ValueContext, ...]:
    """The lines that gave a value, newest text first, each once; the first 64.

    An old text with backslashes may read otherwise in the JSON that gave it; it is a line itself.
    """
    contexts: dict[ValueContext, None] = {}
    value = demand.atom.plain
    for _, piece in reversed(demand.sources):
        for at in islice(places(piece.plain, demand.atom), _MOST_LINES):
            contexts[line_at(piece.plain, at, at + len(value))] = None
        if len(contexts) >= _MOST_LINES:
            break
    return tuple(islice(contexts, _MOST_LINES)) or (ValueContext("", ""),)


def line_at(text: str, start: int, stop: int) -> ValueContext:
    """The line around a value; of a long one the 80 characters on either side."""
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", stop)
    end = len(text) if end < 0 else end
    if end - begin > 2 * _SIDE_CHARS + stop - start:
        begin = max(begin, start - _SIDE_CHARS)
        end = min(end, stop + _SIDE_CHARS)
    return ValueContext(text[begin:start], text[stop:end])


def _shows(text: str, at: int, value: str, line: ValueContext) -> bool:
    """Whether the text around a place is a source line, or nearly."""
    stop = at + len(value)
    if text.endswith(line.prefix, 0, at) and text.startswith(
        line.suffix, stop
    ):
        return True
    prefix_words = words(line.prefix)
    suffix_words = words(line.suffix)
    value_words = len(words(value))
    near_prefix = words(
        text[max(at - 2 * len(line.prefix) - _SIDE_CHARS, 0) : at]
    )
    near_suffix = words(text[stop : stop + 2 * len(line.suffix) + _SIDE_CHARS])
    shown_words = (
        value_words
        + _common(prefix_words, near_prefix)
        + _common(suffix_words, near_suffix)
    )
    return shown_words >= ceil(
        _SHARE * (value_words + len(prefix_words) + len(suffix_words))
    )


def _common(wanted_words: Sequence[str], text_words: Sequence[str]) -> int:
    """How many words two rows have in common, in order: bit by bit (Hyyrö 2004)."""
    positions: dict[str, int] = {}
    for at, word in enumerate(wanted_words):
        positions[word] = positions.get(word, 0) | 1 << at
    mask = (1 << len(wanted_words)) - 1
    row = mask
    for word in text_words:
        same = row & positions.get(word, 0)
        row = ((row + same) | (row - same)) & mask
    return len(wanted_words) - row.bit_count()


class DemandVerdict(Struct, frozen=True):
    """What became of one demand in the view of its call.

    Attributes:
        demand: the demand.
        visible: whether the view showed it.
        lost: neither in view nor under any ref that the view leads to.
    """

    demand: Demand
    visible: bool
    lost: bool = False


class DemandTally(Struct, frozen=True):
    """A sum over demands: of counts, or of weights.

    Attributes:
        demanded: all of them.
        visible: shown in evidence form.
        lost: nothing the view leads to holds it. What is neither can be recalled.
    """

    demanded: float = 0
    visible: float = 0
    lost: float = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            *(
                a + b
                for a, b in zip(astuple(self), astuple(other), strict=True)
            )
        )


class EvidenceScore(Struct, frozen=True):
    """What one replay kept in view of what was needed.

    Attributes:
        first: counts of first uses by bucket of age.
        far: first uses of age 4 and more, by weight: the headline.
    """

    first: Mapping[str, DemandTally]
    far: DemandTally


class EvidenceMeter:
    """Watches the views of one run, call by call.

    Attributes:
        verdicts: what became of each demand so far.
    """

    def __init__(
        self, story: RunHistory, demands: Demands, library: Library
    ) -> None:
        self.story = story
        self.demands = demands
        self.library = library
        self.verdicts: list[DemandVerdict] = []
        self._sight = ViewReader(story)

    def see(
        self, number: int, length: int, messages: Sequence[Any]
    ) -> list[DemandVerdict]:
        """Judge the view of one call, before which ``length`` messages came."""
        verdicts = self.judge(number, length, self._sight.look(messages))
        self.verdicts += verdicts
        return verdicts

    def judge(
        self, number: int, length: int, view: ParsedView
    ) -> list[DemandVerdict]:
        """What becomes of the demands of a call in its view."""
        demands = self.demands[number]
        visible = [self._sight.shows(demand, view) for demand in demands]
        refs: Sequence[str] = ()
        if not all(visible):
            texts = (piece.text for pieces in view.texts for piece in pieces)
            named = (
                pointer.ref
                for text in texts
                for pointer in self.library.named(text)
            )
            refs = reachable_with(self.library.leads, dict.fromkeys(named))
        return [
            DemandVerdict(
                demand,
                is_there,
                not is_there and not self._can_open(refs, demand.atom),
            )
            for demand, is_there in zip(demands, visible, strict=True)
        ]

    def missed(self, number: int) -> None:
        """There was no view for this call: all it demands is lost."""
        self.verdicts += [
            DemandVerdict(d, visible=False, lost=True)
            for d in self.demands[number]
        ]

    def evidence(self) -> EvidenceScore:
        """What was in view so far, summed up."""
        tallies = dict.fromkeys(BUCKETS, DemandTally())
        far = DemandTally()
        for verdict in self.verdicts:
            demand = verdict.demand
            if demand.use == "first":
                tallies[bucket_of(demand.age)] += _tally(verdict, 1)
                far += _tally(verdict, demand.weight if demand.is_far else 0)
        return EvidenceScore(
            {
                bucket: tally
                for bucket, tally in tallies.items()
                if tally.demanded
            },
            far,
        )

    def _can_open(self, refs: Sequence[str], atom: Atom) -> bool:
        return any(holds_in(self.library.whole(ref), atom) for ref in refs)


def watch_over(
    run: Run,
    lengths: Sequence[int],
    library: Library,
    common: Set[str],
    user_tools: tuple[str, ...] = (),
) -> EvidenceMeter:
    """Watch a run, in which the user answers by these tools too."""
    wire = FORMATS[run.format]
    story = RunHistory(wire, run.messages, user_tools=user_tools)
    return EvidenceMeter(
        story,
        demands_of(story, lengths, HeadText.of(wire, run.request), common),
        library,
    )


def holds_in(text: str, atom: Atom) -> bool:
    """Whether a page holds a value."""
    if atom.kind == "quote":
        return quotes(text, atom.text)
    longest = max(words(atom.text), key=len, default="")
    # Most texts hold no such word, and unescaping them all would be slow.
    if longest.isascii() and longest not in text:
        return False
    return holds(_plain(text), atom)


_plain = lru_cache(maxsize=1024)(plain)


def _tally(verdict: DemandVerdict, weight: float) -> DemandTally:
    return DemandTally(weight, weight * verdict.visible, weight * verdict.lost)
