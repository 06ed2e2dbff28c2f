"""The evidence metric on trial: its controls, on recorded runs (`metrics` N).

    python -m bench.controls FOLDER [--most 20] [--calls 40] [--share 0.2 --share 0.5]

N1 everything kept scores 1, nothing kept scores 0; N2 the demands of other tasks are not met
by chance; N3 the adversaries rank below recency; N6 nothing ranks above the oracle. An
adversary that shows as much as recency must at least cost more at full service. Then the
working set of the runs. Prints a table each; the status is 1 if a control fails.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from msgspec import Struct

from ullage.formats import FORMATS
from ullage.presets import NAMES
from ullage.replay.boundaries import boundaries
from ullage.replay.evidence.adversaries import ADVERSARIES
from ullage.replay.evidence.bootstrap import paired
from ullage.replay.evidence.common import common_in, task_of
from ullage.replay.evidence.curves import farthest, least_recent, lives, survival, touches, waste
from ullage.replay.evidence.demands import Demands, Head, demands_of
from ullage.replay.evidence.frame import FRAMES, frame
from ullage.replay.evidence.refs import PageLibrary
from ullage.replay.evidence.score import Tally, Watch, evidence_of
from ullage.replay.evidence.service import Serviced, cost_usd, serve
from ullage.replay.evidence.story import Story
from ullage.replay.evidence.subjects import FrameSubject, SessionSubject
from ullage.replay.evidence.texts import Atom
from ullage.replay.framed import replay_frame
from ullage.replay.gates import Judge
from ullage.replay.prices import PROFILES
from ullage.replay.readers import Run, read
from ullage.replay.run import replay_run

PROFILE = PROFILES["anthropic-5m"]
DONORS = 5
CAPACITIES = (8_000, 16_000, 32_000, 64_000, 128_000)
SERVED = ("default", "recency", "masking", "last_call", "call_tails")
AGES = (1, 3, 10, 30, 100)


def told(run: Run, common: frozenset[str]) -> tuple[Story, list[int], Demands]:
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    return story, lengths, demands_of(story, lengths, Head.of(wire, run.request), common)


def window_for(budget_tokens: int) -> int:
    """The window whose prompt may hold so many tokens (`ullage.limits`)."""
    return max(budget_tokens * 8 // 7, 0) if budget_tokens <= 114_688 else budget_tokens + 16_384


# ── N1 and N2 ────────────────────────────────────────────────────────────────────────────


def kept_all_and_none(run: Run, common: frozenset[str]) -> tuple[Tally, Tally]:
    """Everything kept, and only what users and the system say, the newest results included."""
    story, lengths, demands = told(run, common)
    found = []
    for keeps in (True, False):
        watch = Watch(story, demands, PageLibrary())
        for number, length in enumerate(lengths):
            view = [m for i, m in enumerate(run.messages[:length]) if keeps or story.is_fixed(i)]
            watch.see(number, length, view)
        found.append(evidence_of(watch.verdicts, {}).far)
    return found[0], found[1]


def shuffled(runs: list[Run], common: frozenset[str], seed: int = 0) -> tuple[int, int]:
    """Of the demands of other tasks, how many a whole history holds by chance."""
    draw, hits, asked = random.Random(seed), 0, 0
    wanted = [(task_of(run), _first_uses(run, common)) for run in runs]
    for run in runs:
        others = [atoms for task, atoms in wanted if atoms and task != task_of(run)]
        story = Story(FORMATS[run.format], run.messages)
        for atoms in draw.sample(others, min(DONORS, len(others))):
            for atom in atoms:
                asked += 1
                places = story.before(atom, len(run.messages))
                hits += any(piece.by == "result" for _, piece in places)
    return hits, asked


def _first_uses(run: Run, common: frozenset[str]) -> list[Atom]:
    return [demand.atom for demand in told(run, common)[2] if demand.use == "first"]


# ── N3 and N6 ────────────────────────────────────────────────────────────────────────────


class Point(Struct, frozen=True):
    """One run under one policy at one share of its raw peak."""

    run: str
    share: float
    policy: str
    er_line: float | None
    over_limit: int


def points(run: Run, *, shares: tuple[float, ...], common: frozenset[str]) -> list[Point]:
    found = []
    peak = Judge().tokens(run.messages)
    for share in shares:
        for policy in (*FRAMES, *ADVERSARIES, "default"):
            replay = replay_run if policy in NAMES else replay_frame
            window = window_for(int(peak * share))
            done = replay(run, window, profiles=[PROFILE], policy=policy, common=common)
            far = done.evidence.far
            found.append(Point(run.id, share, policy, far.er_line, done.over_limit))
    return found


def ranks(found: list[Point], share: float) -> Iterator[tuple[str, float, str, int]]:
    """Each policy's mean, its difference to recency, and how many calls were over budget."""
    by_policy = {
        policy: {p.run: p for p in found if p.policy == policy and p.share == share}
        for policy in dict.fromkeys(point.policy for point in found)
    }
    base = by_policy["recency"]
    for policy, of_run in by_policy.items():
        pairs = [
            (point.er_line, base[run].er_line)
            for run, point in of_run.items()
            if point.er_line is not None and base[run].er_line is not None
        ]
        if pairs:
            interval = paired([one - other for one, other in pairs])
            told_as = f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
            mean = sum(one for one, _ in pairs) / len(pairs)
            yield policy, mean, told_as, sum(p.over_limit for p in of_run.values())


# ── full service, and the working set ────────────────────────────────────────────────────


def serviced(
    run: Run, *, share: float, policies: tuple[str, ...], common: frozenset[str]
) -> list[tuple[str, Serviced]]:
    story, _, demands = told(run, common)
    window = window_for(int(Judge().tokens(run.messages) * share))
    found = []
    for policy in policies:
        if policy in NAMES:
            subject = SessionSubject(run, window, policy)
        else:
            chosen = ADVERSARIES.get(policy) or frame(policy, demands)
            subject = FrameSubject(run, window, chosen)
        found.append((policy, serve(run, story, demands, subject, (PROFILE,))))
    return found


def working_set(runs: list[Run], common: frozenset[str]) -> None:
    count = Judge().text
    spans, kept, unused = [], {size: ([], []) for size in CAPACITIES}, []
    for run in runs:
        story, lengths, demands = told(run, common)
        seen = touches(story, lengths, demands, count)
        lived = lives(story, lengths, seen, demands)
        spans += [(life.calls, life.needed) for life in lived]
        unused += [share for share in (waste(lived),) if share is not None]
        for size, (lru, oracle) in kept.items():
            lru += [share for share in (least_recent(seen, size),) if share is not None]
            oracle += [share for share in (farthest(seen, size),) if share is not None]
    curve = survival(spans)
    alive = [next((s for age, s in reversed(curve) if age <= limit), 1.0) for limit in AGES]
    print("\nM4 results not yet demanded after", *AGES, "calls:", *(f"{s:.1%}" for s in alive))
    print(f"   result tokens never demanded, mean over runs: {_mean(unused):.1%}")
    for size, (lru, oracle) in kept.items():
        print(f"   cache of {size:>7,} tokens: LRU {_mean(lru):.1%}, Belady {_mean(oracle):.1%}")


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
    print(f"N2 shuffled demands: {hits:,} of {asked:,} met by chance = {hits / max(asked, 1):.2%}")
    failed = hits > 0.02 * asked
    long = [run for run in every if len(boundaries(run)) >= options.calls]
    chosen = random.Random(0).sample(long, min(options.most, len(long)))
    full, none = Tally(), Tally()
    for run in chosen:
        one, other = kept_all_and_none(run, common)
        full, none = full + one, none + other
    print(f"N1 {len(chosen)} of {len(long)} runs of {options.calls} calls and more;", end=" ")
    print(f"all kept: {full.er_line}, lost {full.lost:g}; none kept: {none.er_line}")
    failed |= full.er_line != 1 or full.lost > 0
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        failed |= _ranking(pool, chosen, tuple(options.share), common)
    working_set(chosen, common)
    return int(failed)


def _ranking(
    pool: ProcessPoolExecutor, runs: list[Run], shares: tuple[float, ...], common: frozenset[str]
) -> bool:
    job = partial(points, shares=shares, common=common)
    found = [point for of_run in pool.map(job, runs) for point in of_run]
    failed = False
    for share in shares:
        rows = sorted(ranks(found, share), key=lambda row: -row[1])
        means = {policy: mean for policy, mean, _, _ in rows}
        print(f"\nER_line at age 4 and more, budget {share:.0%} of the raw peak")
        for policy, mean, difference, over in rows:
            mark = "must lose" if policy in ADVERSARIES else ""
            print(f"  {policy:16} {mean:.3f}  to recency {difference}  over {over:5}  {mark}")
        failed |= max(means.values()) > means["belady"]
        level = tuple(name for name in ADVERSARIES if means[name] >= means["recency"])
        paid = _services(pool, runs, share, (*SERVED, *level), common)
        failed |= any(paid[name] <= paid["recency"] for name in level)
    return failed


def _services(
    pool: ProcessPoolExecutor,
    runs: list[Run],
    share: float,
    policies: tuple[str, ...],
    common: frozenset[str],
) -> dict[str, float]:
    """What each policy costs at full service, of what keeping everything costs."""
    job = partial(serviced, share=share, policies=policies, common=common)
    by_policy: dict[str, list[Serviced]] = {}
    for policy, done in (pair for of_run in pool.map(job, runs) for pair in of_run):
        by_policy.setdefault(policy, []).append(done)
    print(f"\nfull service at {share:.0%} of the raw peak, {PROFILE.name}")
    found = {}
    for policy, done in by_policy.items():
        costs = [cost_usd(each) for each in done]
        paid, raw = (sum(column) for column in zip(*costs, strict=True))
        found[policy] = paid / raw
        shares = sorted(one / other for one, other in costs)
        sums = {
            name: sum(getattr(each, name) for each in done)
            for name in ("faults", "tries", "wrong", "repeated", "failed", "over_limit")
        }
        median, worst = shares[len(shares) // 2], shares[len(shares) * 9 // 10]
        print(f"  {policy:16} {paid / raw:.2f} of keep-all", end="")
        print(f" (median {median:.2f}, worst tenth {worst:.2f})")
        print("   " + ", ".join(f"{name} {count:,}" for name, count in sums.items()))
    return found


def _runs(path: Path) -> list[Run]:
    files = sorted(path.glob("*.jsonl.gz")) if path.is_dir() else [path]
    return [run for file in files for run in read(file)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=20, help="runs to replay, drawn by lot")
    parser.add_argument("--calls", type=int, default=40, help="the fewest calls of such a run")
    parser.add_argument("--share", type=float, action="append", help="of the raw peak")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.share = options.share or [0.2, 0.5]
    return options


if __name__ == "__main__":
    sys.exit(main())
