"""The score of one run: of what its calls demand, how much was there when it was needed.

    demanded = visible + recoverable (a ref in view returns it) + lost

By age in calls; the headline is age 4 and more, weighted so that each call counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from ullage.replay.evidence.demands import (
    BUCKETS,
    Demand,
    Demands,
    Head,
    bucket_of,
    demands_of,
)
from ullage.replay.evidence.refs import Library, Shelf, holds_in, question, stubs_in
from ullage.replay.evidence.saying import leaves_unsaid
from ullage.replay.evidence.sight import Seen, Sight
from ullage.replay.evidence.story import Story
from ullage.replay.readers import Run
from ullage.replay.reading import reachable_with
from ullage.wires import FORMATS

__all__ = ["Evidence", "Tally", "Verdict", "Watch", "evidence_of", "watch_over"]

_TRIES = 3


class Verdict(Struct, frozen=True):
    """What became of one demand in the view of its call.

    Attributes:
        demand: the demand.
        seen: whether the view showed it.
        rank: the first of the refs in the order of the chooser whose page holds it; 0: none
            does. Of what is visible always 0.
        lost: neither in view nor under any ref that the view leads to.
    """

    demand: Demand
    seen: Seen
    rank: int = 0
    lost: bool = False


class Tally(Struct, frozen=True):
    """A sum over demands: of counts, or of weights.

    Attributes:
        demanded: all of them.
        visible: shown in evidence form (ER_line is its share).
        mentioned: the bare value is somewhere in the view (ER_atom is its share).
        recoverable_1: not visible, and the ref a reader would open first returns it.
        recoverable_3: one of the first three does.
        recoverable: any ref in view does, in one call (the bound, with hindsight).
        lost: nothing the view leads to holds it.
    """

    demanded: float = 0
    visible: float = 0
    mentioned: float = 0
    recoverable_1: float = 0
    recoverable_3: float = 0
    recoverable: float = 0
    lost: float = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def er_line(self) -> float | None:
        """The share that was visible, or None if nothing was demanded."""
        return self.visible / self.demanded if self.demanded else None


class Evidence(Struct, frozen=True):
    """What one replay kept in view of what was needed.

    Attributes:
        first: counts of first uses by bucket of age.
        reuse: counts of values the model had written before, by bucket.
        far: first uses of age 4 and more, by weight: the headline.
        far_reuse: the same of re-uses.
        line: first uses of every age, by weight.
        anchors: old texts of edits that stood in the history, of any age and use, counted.
        classes: how many values of all arguments are of each class; only the first two are
            scored.
        views: how many views there were.
        unsaid: of them those in which some text of the user or the system was missing.
    """

    first: dict[str, Tally]
    reuse: dict[str, Tally]
    far: Tally
    far_reuse: Tally
    line: Tally
    anchors: Tally
    classes: dict[str, int]
    views: int = 0
    unsaid: int = 0

    @property
    def both(self) -> Tally:
        """First uses and re-uses of age 4 and more: what a policy that drops the model's own
        words must be judged by (`metrics`, limits).
        """
        return self.far + self.far_reuse


class Watch:
    """Watches the views of one run, call by call.

    Attributes:
        verdicts: what became of each demand so far.
        views: how many views there were so far.
        unsaid: of them those in which some text of the user or the system was missing.
    """

    def __init__(self, story: Story, demands: Demands, library: Library) -> None:
        """Watch the run of this story, whose refs the library opens."""
        self.story, self.demands, self.library = story, demands, library
        self.verdicts: list[Verdict] = []
        self.views = self.unsaid = 0
        self._sight = Sight(story)

    def see(self, number: int, length: int, messages: Sequence[Any]) -> list[Verdict]:
        """Judge the view of one call, before which ``length`` messages stood."""
        view = self._sight.look(messages)
        self.views += 1
        self.unsaid += leaves_unsaid(self.story, length, view)
        demands = self.demands.by_call[number]
        if not demands:
            return []
        found = [Verdict(demand, self._sight.seen(demand, view)) for demand in demands]
        if any(verdict.seen != "line" for verdict in found):
            shelf, asked = (
                Shelf(stubs_in(view.texts, self.library.named)),
                question(self.story, length),
            )
            refs = reachable_with(self.library.leads, [s.pointer.ref for s in shelf.stubs])
            found = [v if v.seen == "line" else self._recall(v, shelf, asked, refs) for v in found]
        self.verdicts += found
        return found

    def missed(self, number: int) -> None:
        """There was no view for this call: all it demands is lost."""
        self.verdicts += [Verdict(d, "nothing", lost=True) for d in self.demands.by_call[number]]

    def evidence(self) -> Evidence:
        """What was in view so far, summed up."""
        found = evidence_of(self.verdicts, self.demands.classes)
        return replace(found, views=self.views, unsaid=self.unsaid)

    def _recall(self, verdict: Verdict, shelf: Shelf, asked: str, refs: Sequence[str]) -> Verdict:
        atom = verdict.demand.atom
        order = shelf.ranked(asked, atom)
        pages = (holds_in(self.library.page(stub.pointer), atom) for stub in order)
        rank = next((number for number, holding in enumerate(pages, 1) if holding), 0)
        lost = not rank and not any(holds_in(self.library.whole(ref), atom) for ref in refs)
        return Verdict(verdict.demand, verdict.seen, rank, lost)


def watch_over(run: Run, lengths: Sequence[int], library: Library, common: Set[str]) -> Watch:
    """Watch a run.

    Args:
        run: the recording.
        lengths: how many messages stood before each call.
        library: opens the refs in its views.
        common: values that are no evidence (`ullage.replay.evidence.common`).
    """
    wire = FORMATS[run.format]
    story = Story(wire, run.messages)
    return Watch(story, demands_of(story, lengths, Head.of(wire, run.request), common), library)


def evidence_of(verdicts: Iterable[Verdict], classes: Mapping[str, int]) -> Evidence:
    """The verdicts of one run, summed up."""
    found = list(verdicts)
    first = [v for v in found if v.demand.use == "first"]
    reuse = [v for v in found if v.demand.use == "reuse"]
    return Evidence(
        first=_by_bucket(first),
        reuse=_by_bucket(reuse),
        far=_far(first),
        far_reuse=_far(reuse),
        line=_sum(first),
        anchors=sum((_tally(v, 1) for v in found if v.demand.atom.kind == "quote"), Tally()),
        classes=dict(classes),
    )


def _by_bucket(verdicts: Sequence[Verdict]) -> dict[str, Tally]:
    sums = dict.fromkeys(BUCKETS, Tally())
    for verdict in verdicts:
        sums[bucket_of(verdict.demand.age)] += _tally(verdict, 1)
    return {bucket: tally for bucket, tally in sums.items() if tally.demanded}


def _far(verdicts: Sequence[Verdict]) -> Tally:
    return _sum([verdict for verdict in verdicts if verdict.demand.is_far])


def _sum(verdicts: Sequence[Verdict]) -> Tally:
    return sum((_tally(v, v.demand.weight) for v in verdicts), Tally())


def _tally(verdict: Verdict, weight: float) -> Tally:
    rank = verdict.rank
    return Tally(
        weight,
        weight * (verdict.seen == "line"),
        weight * (verdict.seen != "nothing"),
        weight * (rank == 1),
        weight * (0 < rank <= _TRIES),
        weight * (rank > 0),
        weight * verdict.lost,
    )
