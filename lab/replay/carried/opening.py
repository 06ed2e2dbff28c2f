"""Which ref a reader opens for what it misses: ``python -m lab.replay.carried.opening PATH…``.

Far values that a reply needs and its view does not show are looked for as by `lab.replay.chooser`:
the refs in the view are ranked by BM25 over the words beside each and its call, and the question
is the reply with the value masked. One is right if what is kept under it holds the value. Beside
that stands the bound of all notices: the same reader where the words beside a ref are all that is
kept under it, and no index of a record stands among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from lab.replay.carried.__main__ import is_wanted, window_of
from lab.replay.carried.policies import POLICIES
from lab.replay.carried.sight import Reader
from lab.replay.carried.wants import wants_of
from lab.replay.chooser import SessionPages, Shelf, Stub, question, stubs_in
from lab.replay.split import SIDES, Side
from lab.replay.story import Story
from ullage.core.errors import OverLimitError
from ullage.core.tokens.catalog import lookup
from ullage.core.values.usage import Usage
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.calls import (
    boundaries,
    model_of,
    request_of,
    session_for,
)
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.evidence.atoms import Atom
from ullage.tools.replay.evidence.demands import (
    HeadText,
    MessageText,
    texts_of,
)
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Damage, Run
from ullage.wires import FORMATS

_NEVER = 1 << 30


class Looked(Struct, frozen=True):
    """Where the right ref stood in the order of a reader, the first at 0.

    Attributes:
        by_notice: by the words beside it.
        by_all: by all that is kept under it.
    """

    by_notice: int
    by_all: int


def looked(
    run: Run, policy_name: str, window_tokens: int | None
) -> list[list[Looked]]:
    """For each call that misses far values, where the right refs stood, value by value."""
    wire, lengths, judge = FORMATS[run.format], boundaries(run), Judge()
    story = Story(wire, run.messages)
    reader, wants = (
        Reader(story),
        wants_of(story, lengths, HeadText.of(wire, run.request)),
    )
    window = window_tokens or lookup(model_of(run)).window_tokens
    session = session_for(run, POLICIES[policy_name](), window)()
    library, found = SessionPages(session), list[list[Looked]]()
    for length, of in zip(lengths, wants, strict=True):
        try:
            fitted = session.fit(request_of(run, run.messages[:length]))
        except OverLimitError:
            continue
        raws = wire.history(fitted)
        view = reader.view(raws)
        missed = [
            value.atom
            for value in of.values
            if value.is_far and not view.shows(value)
        ]
        if missed:
            stubs = stubs_in(_pieces(story, raws), library.named)
            found.append(
                list(_looked(stubs, question(story, length), missed, library))
            )
        session.observe(
            Usage(
                fresh_tokens=judge.tokens(raws) + judge.text(head_of(fitted))
            )
        )
    return found


def _pieces(
    story: Story, raws: Sequence[object]
) -> Iterator[Sequence[MessageText]]:
    for raw in raws:
        place = story.place_of(raw)
        yield (
            story.pieces[place]
            if place is not None
            else tuple(texts_of(story.wire.parse(raw, "view")))
        )


def _looked(
    stubs: Sequence[Stub],
    asked: str,
    missed: Sequence[Atom],
    library: SessionPages,
) -> Iterator[Looked]:
    kept = {
        stub.pointer.ref: library.whole(stub.pointer.ref) for stub in stubs
    }
    outputs = [stub for stub in stubs if not library.leads(stub.pointer.ref)]
    notices = Shelf(stubs)
    everything = Shelf(
        [replace(stub, text=kept[stub.pointer.ref]) for stub in outputs]
    )
    for atom in missed:
        ranks = [
            next(
                (
                    rank
                    for rank, ref in enumerate(refs)
                    if atom.text in kept[ref]
                ),
                _NEVER,
            )
            for shelf in (notices, everything)
            for refs in [
                [stub.pointer.ref for stub in shelf.ranked(asked, atom)]
            ]
        ]
        yield Looked(*ranks)


@click.command("lab.replay.carried.opening")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--policy", default="default", type=click.Choice(tuple(POLICIES))
)
@click.option(
    "--window", "windows", multiple=True, callback=window_of, default=("own",)
)
@click.option(
    "--split",
    "side",
    type=click.Choice(SIDES),
    default="dev",
    show_default=True,
)
@click.option(
    "--least-tokens",
    default=60_000,
    show_default=True,
    help="Of the largest request.",
)
@click.option("--sample", type=int, help="So many runs, drawn by lot.")
@click.option("--seed", default=0, show_default=True, help="Of the lot.")
def command(
    paths: tuple[Path, ...],
    policy: str,
    windows: tuple[int | None, ...],
    side: Side,
    least_tokens: int,
    sample: int | None,
    seed: int,
) -> None:
    """Print how often the first ref, or one of the first three, is right."""
    damage, wanted = (
        list[Damage](),
        partial(is_wanted, side, least_tokens, None),
    )
    runs = [run for _, run, _ in runs_in(paths, damage, is_wanted=wanted)]
    if sample is not None and sample < len(runs):
        runs = random.Random(seed).sample(runs, sample)
    for window in windows:
        calls = [call for run in runs for call in looked(run, policy, window)]
        values = [[value] for call in calls for value in call]
        print(
            f"{window or 'own'}: {len(runs)} runs, {len(calls)} calls, {len(values)} values"
        )
        for name, groups in (("by call", calls), ("by value", values)):
            print(f"  {name:9} {_shares(groups)}")


def _shares(groups: Sequence[Sequence[Looked]]) -> str:
    """The first ref is right, one of three, and the same by all that is kept; in %."""
    told = []
    for what in ("by_notice", "by_all"):
        for most in (1, 3):
            each = [
                sum(getattr(one, what) < most for one in of) / len(of)
                for of in groups
            ]
            told.append(f"{100 * sum(each) / max(len(each), 1):.0f}")
    return "first {}, one of three {}; by all that is kept {}, {}".format(
        *told
    )


if __name__ == "__main__":
    command()
