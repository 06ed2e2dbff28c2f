"""Two matchers of the evidence metric, written apart, on the same runs (`metrics` N4).

    python -m bench.matchers FILE [--most 8]

The first is `ullage.replay.evidence`; the second is `tests.replay.second_matcher`, written from
the definition alone. What both call a demand is looked for by both in the same views: every old
result cut to its head and its tail, or the newest messages alone. Runs in Chat Completions only,
and without the stop list, which is the same for both.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import click

from tests.replay import second_matcher as second
from ullage.formats import FORMATS
from ullage.replay.boundaries import boundaries
from ullage.replay.evidence.demands import Head, demands_of
from ullage.replay.evidence.frame import frame
from ullage.replay.evidence.past import Memo, Past
from ullage.replay.evidence.sight import Sight
from ullage.replay.evidence.story import Story
from ullage.replay.gates import Judge
from ullage.replay.readers import Run, read

_BUDGET_SHARE = 0.3
_LEAST_CALLS = 40


def compared(run: Run, budget_share: float = _BUDGET_SHARE) -> Counter[str]:
    """How often the two agree on what is demanded, and on what a view shows."""
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    mine = demands_of(story, lengths, Head.of(wire, run.request))
    numbers = _calls(run.messages)
    theirs = {
        (demand.call_index, demand.atom): demand
        for demand in second.demands(run.messages, [], frozenset())
        if demand.first_use
    }
    found: Counter[str] = Counter()
    judge, memo, sight = Judge(), Memo(), Sight(story)
    budget = int(budget_share * judge.tokens(run.messages))
    for number, (length, demands) in enumerate(zip(lengths, mine.by_call, strict=True)):
        first = {d.atom.text: d for d in demands if d.use == "first"}
        others = {atom: d for (call, atom), d in theirs.items() if call == numbers[length]}
        found["only the first demands"] += len(first.keys() - others.keys())
        found["only the second demands"] += len(others.keys() - first.keys())
        shared = first.keys() & others.keys()
        found["both demand"] += len(shared)
        for name in ("head_tail", "recency") if shared else ():
            past = Past(story, length, number, judge, memo)
            view = frame(name, mine)(past, budget).messages
            looked = sight.look(view)
            for atom in shared:
                one = sight.seen(first[atom], looked) == "line"
                other = second.visible(others[atom], view)
                found[f"{name}: " + ("alike" if one == other else f"first {one}")] += 1
    return found


def _calls(messages: list[dict]) -> dict[int, int]:
    """The second matcher's number of the call made by the reply that begins at a message."""
    replies = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    return {at: number for number, at in enumerate(replies, 1)}


@click.command()
@click.argument("file")
@click.option("--most", default=8, show_default=True, help="How many runs.")
def main(file: str, most: int) -> None:
    """Compare the two on the first runs of a file that have forty calls or more."""
    runs = (run for run in read(file) if isinstance(run, Run) and run.format == "openai-chat")
    chosen = islice((run for run in runs if len(boundaries(run)) >= _LEAST_CALLS), most)
    total: Counter[str] = Counter()
    for run in chosen:
        total.update(compared(run))
    for name, count in sorted(total.items()):
        click.echo(f"{count:>8,}  {name}")


if __name__ == "__main__":
    main()
