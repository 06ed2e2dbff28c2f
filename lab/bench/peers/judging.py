"""The same judge for all: what one contestant made of one run, in one window.

legal      `breaks_wire`: rules of the wire that the view breaks and the recording does not
said       user and system text verbatim in the view, whatever the contestant tells of it
evidence   `ullage.tools.replay.evidence`: visible, opened by the contestant's own tool, or lost
cost       `ullage.tools.replay.cost.cache`: what the provider's prompt cache would have charged
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from msgspec import Struct

from lab.bench.peers.contestants import Contestant, Refused
from lab.bench.peers.process import Trouble
from lab.replay.many import Tried, tried
from lab.replay.past import Memo, Past, budget_of
from lab.replay.story import Story
from lab.replay.watch import Watch
from ullage.tools.replay.calls import boundaries, model_of
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.evidence.demands import Demands, HeadText, demands_of
from ullage.tools.replay.gates import Judge, breaks_wire
from ullage.tools.replay.readers import Run
from ullage.tools.replay.run import RunSums
from ullage.wires import FORMATS, Format


class Case(Struct, frozen=True):
    """One run, read once for all contestants.

    Attributes:
        run: the recording.
        request: everything of the request but its messages.
        wire: its format.
        story: its messages, read.
        lengths: how many messages stood before each call.
        demands: what each call demands of the history.
        judge: counts tokens.
        head: the head of the request, as text.
    """

    run: Run
    request: dict[str, Any]
    wire: Format
    story: Story
    lengths: list[int]
    demands: Demands
    judge: Judge
    head: str

    def budget_tokens(self, window_tokens: int) -> int:
        """What the messages may take in a window: it less the head and room for the reply."""
        return budget_of(self.run, window_tokens, self.judge)


class Score(Struct, frozen=True):
    """What came out.

    Attributes:
        replayed: the sums, as of `ullage replay`; None if the contestant failed.
        refused: calls for which the library made no view.
        unsaid: views without some text of the user or the system.
        trouble: how the contestant failed; empty if it did not.
    """

    replayed: Tried | None
    refused: int = 0
    unsaid: int = 0
    trouble: str = ""


Make = Callable[[Case, int], Contestant]
"""Makes the contestant for a case and a window."""


def case_of(run: Run, common: Set[str]) -> Case:
    """Read a run on the Chat wire.

    Args:
        run: the recording, in OpenAI Chat messages.
        common: values that are no evidence.
    """
    wire = FORMATS[run.format]
    request = {**run.request, "model": model_of(run)}
    lengths = boundaries(run)
    story = Story(wire, run.messages)
    demands = demands_of(story, lengths, HeadText.of(wire, request), common)
    return Case(
        run, request, wire, story, lengths, demands, Judge(), head_of(request)
    )


def score(
    case: Case,
    window_tokens: int,
    name: str,
    make: Make,
    profiles: Sequence[Profile],
) -> Score:
    """Put one contestant through one run."""
    budget, memo = case.budget_tokens(window_tokens), Memo()
    sums = RunSums(case.run, profiles)
    illegal = refused = 0
    try:
        contestant = make(case, window_tokens)
        watch = Watch(case.story, case.demands, contestant.library)
        for number, length in enumerate(case.lengths):
            past = Past(case.story, length, number, case.judge, memo)
            try:
                view = contestant.view(past, budget)
            except Refused:
                refused += 1
                watch.missed(number)
                continue
            history = case.run.messages[:length]
            illegal += breaks_wire(case.run.format, history, view)
            watch.see(number, length, view)
            tokens = sums.add(number, view)
            sums.over_limit += tokens > budget
    except Trouble as trouble:
        return Score(None, trouble=str(trouble))
    sums.fit_ms = contestant.times_ms
    broken = {"G1": illegal} if illegal else {}
    replayed = sums.result(name, window_tokens, watch.evidence(), {}, broken)
    return Score(tried(replayed), refused, watch.unsaid)
