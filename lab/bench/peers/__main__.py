"""The same runs through other libraries' policies and ours: ``python -m lab.bench.peers``.

Each peer runs in an environment of its own, made once from pinned requirements; every view is
judged here, by one judge. Without paths a run made up here is used.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click
import msgspec
from rich.console import Console

from lab.bench.peers.arena import Arena, Entry
from lab.bench.peers.catalog import PEERS
from lab.bench.peers.environments import python_of
from lab.bench.peers.generated import generated_run
from lab.bench.peers.judging import Score
from lab.bench.peers.keeping import Keep, markdown_of_keeps
from lab.bench.peers.process import Trouble
from lab.bench.peers.sample import sample_of
from lab.bench.peers.table import Line, lines_of, markdown_of, table_of
from ullage.tools.replay.cost.prices import profile_named
from ullage.tools.replay.readers import Run

CHARGED = ("anthropic-5m", "openai-5", "deepseek")
"""Three ways to charge for a cache: written at markers, found by itself, and nearly free."""


@click.command()
@click.argument(
    "paths", nargs=-1, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--window",
    "windows",
    multiple=True,
    type=int,
    help="In tokens: 16000 and 32000.",
)
@click.option(
    "--most", default=40, show_default=True, help="Runs to draw by lot."
)
@click.option(
    "--peak", default=30_000, show_default=True, help="Leave out smaller runs."
)
@click.option(
    "--peer",
    "names",
    multiple=True,
    type=click.Choice([p.name for p in PEERS]),
)
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    help="The most one answer may take.",
)
@click.option(
    "--run-seconds",
    default=120.0,
    show_default=True,
    help="And one run, of processor time.",
)
@click.option(
    "--minutes",
    default=60.0,
    show_default=True,
    help="Begin no run after these.",
)
@click.option(
    "--root",
    default=".peers",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the peers' environments are, or are made.",
)
@click.option("--json", "shape", flag_value="json", help="Print JSON.")
@click.option(
    "--markdown",
    "shape",
    flag_value="markdown",
    help="Print the table for the docs.",
)
@click.option(
    "--keeps",
    "shape",
    flag_value="keeps",
    help="Print what stays whole, and is so twice.",
)
def main(
    paths: tuple[Path, ...],
    windows: tuple[int, ...],
    most: int,
    peak: int,
    names: tuple[str, ...],
    seconds: float,
    run_seconds: float,
    minutes: float,
    root: Path,
    shape: str | None,
) -> None:
    """Score every peer on the runs of PATHS (files or folders, as `ullage replay` takes them)."""
    windows = windows or (16_000, 32_000)
    entries, missing = _installed(names, root.absolute())
    runs, common = (
        sample_of(paths, most, peak)
        if paths
        else ([generated_run()], frozenset())
    )
    profiles = [profile_named(name) for name in CHARGED]
    seed = "random" if shape == "keeps" else "0"
    found: Mapping[tuple[int, str], Sequence[Score | Keep]]
    with Arena(
        entries,
        profiles,
        seconds=seconds,
        run_seconds=run_seconds,
        hash_seed=seed,
    ) as arena:
        if shape == "keeps":
            found = kept = _gathered(
                runs, minutes, lambda run: arena.keeps(run, windows, common)
            )
            print(markdown_of_keeps(kept))
        else:
            found = scored = _gathered(
                runs, minutes, lambda run: arena.scores(run, windows, common)
            )
            _show(lines_of(scored), shape)
    for line in _notes(found, missing, arena.versions):
        print(line, file=sys.stderr if shape == "json" else sys.stdout)


Judged = TypeVar("Judged", Score, Keep)


def _gathered(
    runs: Sequence[Run],
    minutes: float,
    judged: Callable[[Run], Iterator[tuple[int, str, Judged]]],
) -> dict[tuple[int, str], list[Judged]]:
    """What came of each window and contestant, a run at a time, the windows in order."""
    results: dict[tuple[int, str], list[Judged]] = {}
    last_s = time.monotonic() + minutes * 60
    for number, run in enumerate(runs, 1):
        if time.monotonic() > last_s:
            break
        print(f"run {number} of {len(runs)}", file=sys.stderr, flush=True)
        for window, name, one in judged(run):
            results.setdefault((window, name), []).append(one)
    return dict(sorted(results.items(), key=lambda item: item[0][0]))


def _installed(
    names: Sequence[str], root: Path
) -> tuple[list[Entry], dict[str, str]]:
    """The policies of what could be installed, and why the others could not."""
    entries: list[Entry] = []
    missing: dict[str, str] = {}
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        try:
            python = python_of(peer.name, peer.requirements, root)
        except Trouble as trouble:
            missing[peer.name] = str(trouble)
            continue
        entries += [
            Entry(peer.name, note.name, python, peer.adapter)
            for note in peer.policies
        ]
    return entries, missing


def _show(lines: Sequence[Line], shape: str | None) -> None:
    if shape == "json":
        print(msgspec.json.encode(lines).decode())
    elif shape == "markdown":
        print(markdown_of(lines))
    else:
        Console(width=max(Console().width, 200)).print(table_of(lines))


def _notes(
    found: Mapping[tuple[int, str], Sequence[Score | Keep]],
    missing: dict[str, str],
    versions: dict[str, str],
) -> Iterator[str]:
    for (window, name), results in found.items():
        troubles = Counter(one.trouble for one in results if one.trouble)
        for trouble, runs in troubles.items():
            yield f"{name} at {window // 1000}k failed in {runs} runs: {trouble}"
    for name, why in missing.items():
        yield f"not scored: {name} {why}"
    told = ", ".join(
        f"{name} {version}" for name, version in sorted(versions.items())
    )
    yield f"{datetime.now(UTC).date().isoformat()}; {told or 'no peer'}"


if __name__ == "__main__":
    main()
