"""Run the fuzzer for a time, in several processes, and say what was tried."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from fuzz.histories import case
from ullage import Limits, Session
from ullage.formats import FORMATS
from ullage.formats.rules import problems_of
from ullage.replay import reading

BATCH = 200
EDITS = ("truncated", "pruned", "condensed", "cut", "reasoning")


def try_one(seed: int, number: int) -> tuple[list[str], frozenset[str], set[str]]:
    """What is wrong with any view of one history; its features; the kinds of its edits."""
    format, request, window, features = case(seed, number, sorted(FORMATS))
    wire = FORMATS[format]
    messages = wire.history(request)
    if problems_of(format, messages):
        return ["the generated history is not legal"], features, set()
    session = Session("", limits=Limits(window_tokens=window), format=format, recall=True)
    wrong = []
    lengths = [i for i in range(1, len(messages)) if _speaks(messages, i)]
    for length in [*lengths, len(messages)]:
        view = session.fit({**request, wire.key: messages[:length]})
        shown = wire.history(view)
        wrong += [f"{problem.rule} at {length}" for problem in problems_of(format, shown)]
        if session.window.estimate > session.window.limit_tokens:
            wrong.append(f"over the limit at {length}")
    wrong += _lost(session, messages, shown)
    return wrong, features, {event.kind for event in session.events} & set(EDITS)


def _speaks(messages: list, index: int) -> bool:
    """Whether a reply begins here (a message, or an item, of the model)."""
    return _is_models(messages[index]) and not _is_models(messages[index - 1])


def _is_models(raw: dict) -> bool:
    if "role" in raw:
        return raw["role"] in ("assistant", "model")
    return not str(raw.get("type", "")).endswith("_output")


def _lost(session: Session, messages: list, shown: list) -> list[str]:
    """Results that are neither visible nor reachable from what is."""
    texts, opened = list(reading.visible(shown)), {}
    reading.reachable(session, texts, opened)
    reachable, together = {*texts, *opened.values()}, "\n".join(texts)
    originals = [t for m in messages for _, found in reading.results(m) for t in found]
    return [
        "a result is lost"
        for text in originals
        if text not in reachable and not (len(text) <= 80 and text in together)
    ]


def try_batch(seed: int, start: int) -> tuple[int, Counter, list[tuple[int, list[str]]]]:
    """Histories ``start`` to ``start + BATCH``: how many were not trivial, what they held."""
    seen, found, edited = Counter(), [], 0
    for number in range(start, start + BATCH):
        wrong, features, edits = try_one(seed, number)
        edited += bool(edits)
        seen.update(f"{feature} × {edit}" for feature in features for edit in edits)
        if wrong:
            found.append((number, sorted(set(wrong))))
    return edited, seen, found


@click.command()
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--start", default=0, show_default=True, help="Number of the first history.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True)
@click.option("--resume", type=click.Path(path_type=Path), help="Go on from, and write, this file.")
@click.option("--only", type=int, help="Try one history, and say what is wrong with it.")
def main(
    seconds: float, seed: int, start: int, jobs: int, resume: Path | None, only: int | None
) -> None:
    """Fuzz for a time; the status is 1 if anything was found."""
    if only is not None:
        click.echo(try_one(seed, only))
        return
    done = json.loads(resume.read_text()) if resume and resume.exists() else {}
    start, tried, edited = done.get("next", start), done.get("tried", 0), done.get("edited", 0)
    seen, found = Counter(done.get("seen", {})), done.get("found", [])
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        while time.monotonic() < end and len(found) < 20:
            starts = [start + BATCH * n for n in range(4 * jobs)]
            for more, kinds, wrong in pool.map(try_batch, [seed] * len(starts), starts):
                tried, edited = tried + BATCH, edited + more
                seen.update(kinds)
                found += wrong
            start = starts[-1] + BATCH
            state = {"next": start, "tried": tried, "edited": edited, "seen": seen, "found": found}
            if resume:
                resume.write_text(json.dumps(state))
    click.echo(f"seed {seed}: {tried:,} histories, {edited:,} of them edited, {len(found)} wrong")
    for name, count in sorted(seen.items()):
        click.echo(f"{count:>10,}  {name}")
    for number, wrong in found[:20]:
        click.echo(f"history {number}: {', '.join(wrong)}")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
