"""The evidence metric on trial: its controls, on recorded runs (`metrics` N).

    python -m lab.bench.controls FOLDER [--most 20] [--calls 40] [--share 0.2 --share 0.5]

N1 everything kept scores 1, nothing kept scores 0; N2 the demands of other tasks are not met
by chance; N3 the adversaries rank below recency; N6 nothing ranks above the oracle; and no
adversary reaches all the floors behind which cost is compared. Then full service, and the
working set of the runs. Prints a table each; the status is 1 if a control fails.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from lab.replay.adversaries import ADVERSARIES
from lab.replay.compare.bootstrap import Interval
from lab.replay.compare.comparison import compared
from lab.replay.compare.rows import JudgedRow, judged_row
from lab.replay.compare.service import service_of
from lab.replay.curves import (
    farthest,
    least_recent,
    lives,
    survival,
    touches,
    waste,
)
from lab.replay.frame import FRAMES
from lab.replay.many import SERVED, TRIED, Tried
from lab.replay.past import PageLibrary
from lab.replay.story import Story
from lab.replay.watch import Tally, Watch, evidence_of
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.engines import open_engine
from ullage.tools.replay.evidence.atoms import Atom
from ullage.tools.replay.evidence.common import common_in, task_of
from ullage.tools.replay.evidence.demands import Demands, HeadText, demands_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.many import Job, Replayer, ResultFile, replay_all
from ullage.tools.replay.readers import Run, read
from ullage.tools.replay.rows import rows_of
from ullage.wires import FORMATS

PROFILE = PROFILES["anthropic-5m"]
DONORS = 5
CAPACITIES = (8_000, 16_000, 32_000, 64_000, 128_000)
PAID = ("default", "recency", "masking", "last_call", "call_tails")
AGES = (1, 3, 10, 30, 100)


def told(run: Run, common: frozenset[str]) -> tuple[Story, list[int], Demands]:
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    return (
        story,
        lengths,
        demands_of(story, lengths, HeadText.of(wire, run.request), common),
    )


# ── N1 and N2 ────────────────────────────────────────────────────────────────────────────


def kept_all_and_none(run: Run, common: frozenset[str]) -> tuple[Tally, Tally]:
    """Everything kept, and only what users and the system say, the newest results included."""
    story, lengths, demands = told(run, common)
    found = []
    for keeps in (True, False):
        watch = Watch(story, demands, PageLibrary())
        for number, length in enumerate(lengths):
            view = [
                m
                for i, m in enumerate(run.messages[:length])
                if keeps or story.is_fixed(i)
            ]
            watch.see(number, length, view)
        found.append(evidence_of(watch.verdicts).far)
    return found[0], found[1]


def shuffled(
    runs: list[Run], common: frozenset[str], seed: int = 0
) -> tuple[int, int]:
    """Of the demands of other tasks, how many a whole history holds by chance."""
    draw, hits, asked = random.Random(seed), 0, 0
    wanted = [(task_of(run), _first_uses(run, common)) for run in runs]
    for run in runs:
        others = [
            atoms for task, atoms in wanted if atoms and task != task_of(run)
        ]
        story = Story(FORMATS[run.format], run.messages)
        for atoms in draw.sample(others, min(DONORS, len(others))):
            for atom in atoms:
                asked += 1
                places = story.before(atom, len(run.messages))
                hits += any(piece.by == "tool" for _, piece in places)
    return hits, asked


def _first_uses(run: Run, common: frozenset[str]) -> list[Atom]:
    demands = chain.from_iterable(told(run, common)[2])
    return [demand.atom for demand in demands if demand.use == "first"]


# ── N3, N6, and the floors ───────────────────────────────────────────────────────────────


def replays(
    runs: list[Run],
    policies: tuple[str, ...],
    share: float,
    job: Job,
    jobs: int,
    replayer: Replayer = TRIED,
) -> list[tuple[str, Tried]]:
    """Every run under every policy, in this share of its largest request."""
    wanted = (("", run, 0) for run in runs)
    tries = tuple((policy, share) for policy in policies)
    with open_engine("processes", jobs) as engine:
        found = replay_all(
            wanted, tries, job, engine, ResultFile(None), replayer
        )
        return [
            (name, done) for name, done, _ in found if isinstance(done, Tried)
        ]


def ranked(
    runs: list[Run], share: float, job: Job, jobs: int
) -> Iterator[str]:
    """Print how the policies rank; yield what is wrong with it.

    A policy that drops what the model wrote must be judged by the re-use series as well
    (`metrics`, limits), and recency and every adversary drop it. So N3 ranks by first uses and
    re-uses together. The first uses alone stand beside.
    """
    found = replays(runs, (*FRAMES, *ADVERSARIES, "default"), share, job, jobs)
    rows = {row.policy: row for row in rows_of(found, judged_row)}
    beside = {
        point.policy: point
        for point in compared(found, [*rows.values()], "recency").points
    }
    print(
        f"\nvisible at age 4 and more, mean over runs; budget {share:.0%} of the raw peak"
    )
    print(
        f"  {'':16} {'all uses':>8} {'first':>6}  {'first, to recency':24} floors not reached"
    )
    for policy, row in sorted(
        rows.items(), key=lambda item: -_height(item[1])
    ):
        line = f"  {policy:16} {_height(row):8.3f} {row.evidence.visible or 0:6.3f}"
        told_as = _difference(beside[policy].visible)
        print(f"{line}  {told_as:24} {', '.join(row.below) or 'none'}")
    for name in ADVERSARIES:
        if _height(rows[name]) >= _height(rows["recency"]):
            yield f"N3: {name} is not below recency"
        if not rows[name].below:
            yield f"floors: {name} passes them all"
    for policy, row in rows.items():
        if (row.evidence.visible or 0) > (
            rows["belady"].evidence.visible or 0
        ):
            yield f"N6: {policy} is above the oracle"


def _height(row: JudgedRow) -> float:
    return row.evidence.both.mean or 0.0


def _difference(found: Interval | None) -> str:
    return (
        ""
        if found is None
        else f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    )


# ── full service, and the working set ────────────────────────────────────────────────────


def paid(runs: list[Run], share: float, job: Job, jobs: int) -> None:
    """Print what each policy costs at full service, of what keeping everything costs."""
    found = replays(runs, PAID, share, job, jobs, SERVED)
    print(f"\nfull service at {share:.0%} of the raw peak, {PROFILE.name}")
    for policy in PAID:
        service = service_of(
            done.served
            for _, done in found
            if done.policy == policy and done.served is not None
        )
        assert service is not None
        usd = service.usd[PROFILE.name]
        print(f"  {policy:16} {usd.pooled:.2f} of keep-all", end="")
        print(f" (median {usd.median:.2f}, worst tenth {usd.worst_tenth:.2f})")
        names = (
            "faults",
            "tries",
            "wrong",
            "repeated",
            "failed",
            "over_limit",
        )
        print(
            "   "
            + ", ".join(f"{name} {getattr(service, name):,}" for name in names)
        )


def working_set(runs: list[Run], common: frozenset[str]) -> None:
    count = Judge().text
    spans, unused = [], []
    kept: dict[int, tuple[list[Any], list[Any]]] = {
        size: ([], []) for size in CAPACITIES
    }
    for run in runs:
        story, lengths, demands = told(run, common)
        seen = touches(story, lengths, demands, count)
        played = lives(story, lengths, seen, demands)
        spans += [(life.calls, life.needed) for life in played]
        unused += [share for share in (waste(played),) if share is not None]
        for size, (lru, oracle) in kept.items():
            lru += [
                share
                for share in (least_recent(seen, size),)
                if share is not None
            ]
            oracle += [
                share for share in (farthest(seen, size),) if share is not None
            ]
    curve = survival(spans)
    alive = [
        next((s for age, s in reversed(curve) if age <= limit), 1.0)
        for limit in AGES
    ]
    print(
        "\nM4 results not yet demanded after",
        *AGES,
        "calls:",
        *(f"{s:.1%}" for s in alive),
    )
    print(
        f"   result tokens never demanded, mean over runs: {_mean(unused):.1%}"
    )
    for size, (lru, oracle) in kept.items():
        print(
            f"   cache of {size:>7,} tokens: LRU {_mean(lru):.1%}, Belady {_mean(oracle):.1%}"
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# ── the command ──────────────────────────────────────────────────────────────────────────


def main() -> int:
    options = _options()
    every = [run for path in options.paths for run in _runs(path)]
    started = time.perf_counter()
    common = common_in(every)
    print(f"{len(every):,} runs; stop list: {len(common):,} values", end=" ")
    print(f"in {time.perf_counter() - started:.0f} s")
    hits, asked = shuffled(every, common)
    print(
        f"N2 shuffled demands: {hits:,} of {asked:,} met by chance = {hits / max(asked, 1):.2%}"
    )
    failed = hits > 0.02 * asked
    long = [run for run in every if len(boundaries(run)) >= options.calls]
    chosen = random.Random(0).sample(long, min(options.most, len(long)))
    full, none = Tally(), Tally()
    for run in chosen:
        one, other = kept_all_and_none(run, common)
        full, none = full + one, none + other
    print(
        f"N1 {len(chosen)} of {len(long)} runs of {options.calls} calls and more;",
        end=" ",
    )
    print(
        f"all kept: {full.er_line}, lost {full.lost:g}; none kept: {none.er_line}"
    )
    failed |= full.er_line != 1 or full.lost > 0
    job = Job((PROFILE,), common=tuple(sorted(common)))
    for share in options.share:
        for trouble in ranked(chosen, share, job, options.jobs):
            print(f"FAILED {trouble}")
            failed = True
        paid(chosen, share, job, options.jobs)
    working_set(chosen, common)
    return int(failed)


def _runs(path: Path) -> list[Run]:
    files = sorted(path.glob("*.jsonl.gz")) if path.is_dir() else [path]
    return [run for file in files for run in read(file)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument(
        "--most", type=int, default=20, help="runs to replay, drawn by lot"
    )
    parser.add_argument(
        "--calls", type=int, default=40, help="the fewest calls of such a run"
    )
    parser.add_argument(
        "--share", type=float, action="append", help="of the raw peak"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.share = options.share or [0.2, 0.5]
    return options


if __name__ == "__main__":
    sys.exit(main())
