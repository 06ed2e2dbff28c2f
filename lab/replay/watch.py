"""The score of one run, with all that a yardstick asks: re-uses, ranks of refs, words left out.

A reader opens refs in the order of the chooser (`lab.replay.chooser`); the rank of a demand is
the first whose page shows its line, as a view would have to. Where a tool searches all that left
the view by words, the question is put to it too, with the value masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec.structs import replace

from lab.replay.chooser import (
    PagedLibrary,
    SessionPages,
    Shelf,
    found_by_words,
    masked,
    question,
    stubs_in,
)
from lab.replay.saying import leaves_unsaid
from lab.replay.story import Story
from ullage.session.session import Session
from ullage.tools.replay.evidence import score
from ullage.tools.replay.evidence.atoms import Atom, holds, plain
from ullage.tools.replay.evidence.demands import (
    BUCKETS,
    Demands,
    HeadText,
    MessageText,
    bucket_of,
    demands_of,
)
from ullage.tools.replay.evidence.score import (
    DemandVerdict,
    ParsedView,
    holds_in,
)
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS

_TRIES = 3


class Ranked(DemandVerdict, frozen=True):
    """What became of one demand, and how soon a reader would find it.

    Attributes:
        rank: the first of the refs in the order of the chooser whose page shows its line; 0: none
            does. Of what is visible always 0.
        by_words: the page of a search by words that shows its line, from 1; 0: none of the first
            two does, or no tool takes words.
        mentioned: whether the bare value is in the view, without its line.
    """

    rank: int = 0
    by_words: int = 0
    mentioned: bool = False


class Tally(score.DemandTally, frozen=True):
    """A sum over demands: of counts, or of weights.

    Attributes:
        mentioned: the bare value is somewhere in the view (ER_atom is its share).
        recoverable_1: not visible, and the ref a reader would open first returns its line.
        recoverable_3: one of the first three does.
        recoverable: any ref in view does, in one call (the bound, with hindsight).
        found_1: not visible, and the first page of a search by words shows its line.
        found_2: one of the first two does.
    """

    mentioned: float = 0
    recoverable_1: float = 0
    recoverable_3: float = 0
    recoverable: float = 0
    found_1: float = 0
    found_2: float = 0

    @property
    def er_line(self) -> float | None:
        """The share that was visible, or None if nothing was demanded."""
        return self.visible / self.demanded if self.demanded else None


class Evidence(score.EvidenceScore, frozen=True, kw_only=True):
    """What one replay kept in view of what was needed.

    Attributes:
        reuse: counts of values the model had written before, by bucket.
        far_reuse: the same of re-uses.
        line: first uses of every age, by weight.
        anchors: old texts of edits that stood in the history, of any age and use, counted.
        views: how many views there were.
        unsaid: of them those in which some text of the user or the system was missing.
    """

    first: Mapping[str, Tally]
    far: Tally
    reuse: dict[str, Tally]
    far_reuse: Tally
    line: Tally
    anchors: Tally
    views: int = 0
    unsaid: int = 0

    @property
    def both(self) -> Tally:
        """First uses and re-uses of age 4 and more: what a policy that drops the model's own
        words must be judged by (`metrics`, limits).
        """
        return self.far + self.far_reuse


class Watch(score.EvidenceMeter):
    """Watches the views of one run, call by call.

    Attributes:
        views: how many views there were so far.
        unsaid: of them those in which some text of the user or the system was missing.
    """

    def __init__(
        self, story: Story, demands: Demands, library: PagedLibrary
    ) -> None:
        """Watch the run of this story, whose refs the library opens."""
        super().__init__(story, demands, library)
        self.story: Story = story
        self.library: PagedLibrary = library
        self.views = self.unsaid = 0

    def judge(
        self, number: int, length: int, view: ParsedView
    ) -> list[DemandVerdict]:
        """What becomes of the demands of a call in its view; each is a `Ranked`."""
        self.views += 1
        self.unsaid += leaves_unsaid(self.story, length, view)
        found = super().judge(number, length, view)
        if all(verdict.visible for verdict in found):
            return found
        shelf = Shelf(stubs_in(view.texts, self.library.named))
        asked = question(self.story, length)
        return [
            v if v.visible else self._ranked(v, view, shelf, asked)
            for v in found
        ]

    def evidence(self) -> Evidence:
        """What was in view so far, summed up."""
        found = evidence_of(self.verdicts)
        return replace(found, views=self.views, unsaid=self.unsaid)

    def _ranked(
        self,
        verdict: DemandVerdict,
        view: ParsedView,
        shelf: Shelf,
        asked: str,
    ) -> Ranked:
        atom = verdict.demand.atom
        order = shelf.ranked(asked, atom)
        rank = self._first(
            verdict, (self.library.page(stub.pointer) for stub in order)
        )
        found = self._first(
            verdict, found_by_words(self.library, masked(asked, atom))
        )
        is_lost, is_mentioned = verdict.lost and not rank, mentions(view, atom)
        return Ranked(
            verdict.demand, verdict.visible, is_lost, rank, found, is_mentioned
        )

    def _first(self, verdict: DemandVerdict, pages: Iterable[str]) -> int:
        """The first of these pages that shows the line of a demand, from 1; 0: none does."""
        demand = verdict.demand
        for number, page in enumerate(pages, 1):
            shown = (
                MessageText("tool", page, plain(page), 0)
                if holds_in(page, demand.atom)
                else None
            )
            if shown is not None and self._sight.is_in(demand, shown):
                return number
        return 0


def mentions(view: ParsedView, atom: Atom) -> bool:
    """Whether the bare value is in what a view has beside the messages of the run."""
    return any(
        piece.holds(atom) and holds(piece.plain, atom)
        for piece in view.new_texts
    )


def watch_over(
    run: Run,
    lengths: Sequence[int],
    library: PagedLibrary,
    common: Set[str],
    user_tools: tuple[str, ...] = (),
) -> Watch:
    """Watch a run; see `ullage.tools.replay.evidence.score.watch_over`."""
    wire = FORMATS[run.format]
    story = Story(wire, run.messages, user_tools=user_tools)
    return Watch(
        story,
        demands_of(story, lengths, HeadText.of(wire, run.request), common),
        library,
    )


def watch_pages(
    run: Run, lengths: Sequence[int], session: Session, common: Set[str]
) -> Watch:
    """Watch a session's views of a run; refs are opened page by page, by its own tools."""
    user_tools = session.settings.user_tools
    return watch_over(run, lengths, SessionPages(session), common, user_tools)


def evidence_of(verdicts: Iterable[DemandVerdict]) -> Evidence:
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
        anchors=sum(
            (_tally(v, 1) for v in found if v.demand.atom.kind == "quote"),
            Tally(),
        ),
    )


def _by_bucket(verdicts: Sequence[DemandVerdict]) -> dict[str, Tally]:
    sums = dict.fromkeys(BUCKETS, Tally())
    for verdict in verdicts:
        sums[bucket_of(verdict.demand.age)] += _tally(verdict, 1)
    return {bucket: tally for bucket, tally in sums.items() if tally.demanded}


def _far(verdicts: Sequence[DemandVerdict]) -> Tally:
    return _sum([verdict for verdict in verdicts if verdict.demand.is_far])


def _sum(verdicts: Sequence[DemandVerdict]) -> Tally:
    return sum((_tally(v, v.demand.weight) for v in verdicts), Tally())


def _tally(verdict: DemandVerdict, weight: float) -> Tally:
    rank, found = 0, 0
    if isinstance(verdict, Ranked):
        rank, found = verdict.rank, verdict.by_words
    is_mentioned = isinstance(verdict, Ranked) and verdict.mentioned
    return Tally(
        weight,
        weight * verdict.visible,
        weight * verdict.lost,
        weight * (verdict.visible or is_mentioned),
        weight * (rank == 1),
        weight * (0 < rank <= _TRIES),
        weight * (rank > 0),
        weight * (found == 1),
        weight * (found > 0),
    )
