"""The score of one run: of what its calls demand, how much was there when it was needed.

    demanded = visible + recallable (something the view leads to returns it) + lost

By age in calls; the headline is age 4 and more, weighted so that each call counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import astuple

from ullage.replay.evidence.demands import BUCKETS, Demand, Demands, Head, bucket_of, demands_of
from ullage.replay.evidence.sight import Seen, Sight, View
from ullage.replay.evidence.story import Story
from ullage.replay.evidence.texts import Atom, holds, plain, quotes, words
from ullage.replay.readers import Run
from ullage.replay.reading import Library, reachable_with
from ullage.wires import FORMATS


class Verdict(Struct, frozen=True):
    """What became of one demand in the view of its call.

    Attributes:
        demand: the demand.
        seen: whether the view showed it.
        lost: neither in view nor under any ref that the view leads to.
    """

    demand: Demand
    seen: Seen
    lost: bool = False


class Tally(Struct, frozen=True):
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
        return type(self)(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Evidence(Struct, frozen=True):
    """What one replay kept in view of what was needed.

    Attributes:
        first: counts of first uses by bucket of age.
        far: first uses of age 4 and more, by weight: the headline.
    """

    first: Mapping[str, Tally]
    far: Tally


class Watch:
    """Watches the views of one run, call by call.

    Attributes:
        verdicts: what became of each demand so far.
    """

    def __init__(self, story: Story, demands: Demands, library: Library) -> None:
        self.story, self.demands, self.library = story, demands, library
        self.verdicts: list[Verdict] = []
        self._sight = Sight(story)

    def see(self, number: int, length: int, messages: Sequence[Any]) -> list[Verdict]:
        """Judge the view of one call, before which ``length`` messages came."""
        found = self.judge(number, length, self._sight.look(messages))
        self.verdicts += found
        return found

    def judge(self, number: int, length: int, view: View) -> list[Verdict]:
        """What becomes of the demands of a call in its view."""
        demands = self.demands[number]
        seen = [self._sight.seen(demand, view) for demand in demands]
        refs: Sequence[str] = ()
        if any(each != "line" for each in seen):
            texts = (piece.text for pieces in view.texts for piece in pieces)
            named = (pointer.ref for text in texts for pointer in self.library.named(text))
            refs = reachable_with(self.library.leads, dict.fromkeys(named))
        return [
            Verdict(demand, how, how != "line" and not self._can_open(refs, demand.atom))
            for demand, how in zip(demands, seen, strict=True)
        ]

    def missed(self, number: int) -> None:
        """There was no view for this call: all it demands is lost."""
        self.verdicts += [Verdict(d, "nothing", lost=True) for d in self.demands[number]]

    def evidence(self) -> Evidence:
        """What was in view so far, summed up."""
        first = dict.fromkeys(BUCKETS, Tally())
        far = Tally()
        for verdict in self.verdicts:
            demand = verdict.demand
            if demand.use == "first":
                first[bucket_of(demand.age)] += _tally(verdict, 1)
                far += _tally(verdict, demand.weight if demand.is_far else 0)
        return Evidence({bucket: tally for bucket, tally in first.items() if tally.demanded}, far)

    def _can_open(self, refs: Sequence[str], atom: Atom) -> bool:
        return any(holds_in(self.library.whole(ref), atom) for ref in refs)


def watch_over(run: Run, lengths: Sequence[int], library: Library, common: Set[str]) -> Watch:
    """Watch a run."""
    wire = FORMATS[run.format]
    story = Story(wire, run.messages)
    return Watch(story, demands_of(story, lengths, Head.of(wire, run.request), common), library)


def holds_in(text: str, atom: Atom) -> bool:
    """Whether a page holds a value."""
    if atom.kind == "quote":
        return quotes(text, atom.text)
    longest = _longest(atom.text)
    if longest.isascii() and longest not in text:  # by far the most, and unescaping is slow
        return False
    return holds(_plain(text), atom)


@lru_cache(maxsize=1024)
def _longest(text: str) -> str:
    return max(words(text), key=len, default="")


_plain = lru_cache(maxsize=1024)(plain)


def _tally(verdict: Verdict, weight: float) -> Tally:
    return Tally(weight, weight * (verdict.seen == "line"), weight * verdict.lost)
