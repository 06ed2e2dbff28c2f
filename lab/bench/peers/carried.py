"""What peers cost that have to carry everything, beside the default, paired over runs.

``python -m lab.bench.peers.carried PATH…``: the runs and rules of `lab.replay.carried`, in which
peers make the views (`lab.bench.peers`). A peer is given every doubt: its own tools stand in no
head, and whatever it took out is opened by one page if any name in its view opens something.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from lab.bench.peers.arena import Entry
from lab.bench.peers.catalog import PEERS
from lab.bench.peers.contestants import Peer, Refused
from lab.bench.peers.environments import python_of
from lab.bench.peers.process import PeerProcess, Trouble
from lab.replay.carried.__main__ import is_wanted, pairs_of, rows_of, window_of
from lab.replay.carried.carry import Carried, Carrier, Sent
from lab.replay.carried.policies import POLICIES
from lab.replay.carried.recalling import one_page
from lab.replay.carried.sight import View
from lab.replay.carried.table import NOTES, paired_table, table_of
from lab.replay.past import Memo, Past, budget_of
from lab.replay.split import SIDES, Side
from lab.replay.story import Story
from ullage.core.tokens.catalog import lookup
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.calls import boundaries, model_of
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Damage, Run
from ullage.wires import FORMATS


def requests_of(
    run: Run, peer: Peer, budget_tokens: int
) -> Iterator[Sent | None]:
    """The requests of a run that a peer makes; None where it makes none.

    Args:
        run: the recording, in OpenAI Chat messages.
        peer: the peer at the beginning of the run.
        budget_tokens: what messages may take.
    """
    story, judge, memo = (
        Story(FORMATS[run.format], run.messages),
        Judge(),
        Memo(),
    )
    head = head_of(run.request)

    def opens(ref: str, view: View) -> bool:
        return bool(peer.library.named(view.text))

    for number, length in enumerate(boundaries(run)):
        try:
            shown = peer.view(
                Past(story, length, number, judge, memo), budget_tokens
            )
        except Refused:
            yield None
            continue
        yield Sent(head, shown, one_page(opens), budget_tokens)


@click.command("lab.bench.peers.carried")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--peer",
    "names",
    multiple=True,
    type=click.Choice([p.name for p in PEERS]),
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
@click.option(
    "--root",
    default=".peers",
    show_default=True,
    type=click.Path(path_type=Path),
)
def command(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    windows: tuple[int | None, ...],
    side: Side,
    least_tokens: int,
    sample: int | None,
    seed: int,
    root: Path,
) -> None:
    """Carry recorded runs of OpenAI Chat messages under peers, and beside them the default."""
    entries = [
        Entry(
            peer.name,
            note.name,
            python_of(peer.name, peer.requirements, root),
            peer.adapter,
        )
        for peer in PEERS
        if not names or peer.name in names
        for note in peer.policies
    ]
    damage, wanted = (
        list[Damage](),
        partial(is_wanted, side, least_tokens, None),
    )
    every = (run for _, run, _ in runs_in(paths, damage, is_wanted=wanted))
    runs = [run for run in every if run.format == "openai-chat"]
    if sample is not None and sample < len(runs):
        runs = random.Random(seed).sample(runs, sample)
    found: dict[tuple[str, int | None, str], list[Carried]] = {}
    with ExitStack() as processes:
        carry = Carry(entries, processes)
        for number, run in enumerate(runs, 1):
            print(f"run {number} of {len(runs)}", file=sys.stderr, flush=True)
            for name, window, carried in carry(run, windows):
                found.setdefault((name, window, "all"), []).append(carried)
    console = Console(width=180)
    console.print(table_of(rows_of(found)))
    console.print(NOTES, style="dim", highlight=False)
    console.print(paired_table(list(pairs_of(found))))


class Carry:
    """The default and every peer over a run, each peer in one process throughout."""

    def __init__(self, entries: Sequence[Entry], processes: ExitStack) -> None:
        self._entries, self._open = entries, processes
        self._processes: dict[Path, PeerProcess] = {}

    def __call__(
        self, run: Run, windows: Sequence[int | None]
    ) -> Iterator[tuple[str, int | None, Carried]]:
        """What each makes of a run in every window.

        A run on which a peer fails counts for nobody, so that all are judged by the same runs.
        """
        carrier, made = Carrier(run), list[tuple[str, int | None, Carried]]()
        for window in windows:
            made.append(
                (
                    "ullage",
                    window,
                    carrier.under(POLICIES["default"](), window),
                )
            )
            budget = budget_of(
                run, window or lookup(model_of(run)).window_tokens, Judge()
            )
            for entry in self._entries:
                try:
                    carried = carrier.judged(
                        requests_of(
                            run, self._peer(entry, run, budget), budget
                        )
                    )
                except Trouble as trouble:
                    print(
                        f"a run is left out: {entry.name} {trouble}",
                        file=sys.stderr,
                    )
                    self._processes.pop(entry.adapter).end()
                    return
                made.append((entry.name, window, carried))
        yield from made

    def _peer(self, entry: Entry, run: Run, budget_tokens: int) -> Peer:
        process = self._processes.get(entry.adapter)
        if process is None:
            process = self._open.enter_context(
                PeerProcess(entry.python, entry.adapter, seconds=60.0)
            )
            self._processes[entry.adapter] = process
        tools = run.request.get("tools", [])
        return Peer(
            process, entry.policy, budget_tokens, tools, run_seconds=600.0
        )


if __name__ == "__main__":
    command()
