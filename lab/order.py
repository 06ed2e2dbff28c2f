"""In what order the layers of two documents first act on recorded runs: prune, compact, guard.

python -m lab.order PATH… [--window TOKENS] [--most RUNS]

Only runs that need room are counted: those of which a layer or the guard had to take something.
A summariser stands by that says a fixed sentence, well-formed for both documents.
"""

from __future__ import annotations

import logging
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click

from ullage import UllageError
from ullage.core.contract.policy import Policy
from ullage.documents import preset
from ullage.documents.presets.three_layer import COMPACTION
from ullage.policy.stages.rough import view_tokens
from ullage.session.session import Session
from ullage.tools.replay.calls import boundaries, request_of, session_for
from ullage.tools.replay.readers import Run, read

POLICIES = ("three_layer", "output_cache")
WINDOWS = (64_000, 128_000, 200_000)
ACTS = {"pruned": "prune", "compacted": "compact", "condensed": "guard"}
"""The kinds of event that tell of each."""
_SUMMARY = "\n\n".join(
    f"{heading}\nThe work goes on." for heading in COMPACTION.sections
)


class Played(NamedTuple):
    """One run under one policy.

    Attributes:
        order: what acted, in the order in which each acted first.
        asked: how often the summariser was asked.
        share: of the context, by the rough estimate, after the first compaction; None without one.
        fits: whether every view was within its limit.
    """

    order: tuple[str, ...]
    asked: int
    share: float | None
    fits: bool


def play(run: Run, policy: Policy, window_tokens: int) -> Played:
    """Fit each request that the recorded agent sent, in turn."""
    asked, share, fits = list[object](), None, True

    def summariser(question: object) -> str:
        asked.append(question)
        return f"<summary>{_SUMMARY}</summary>"

    session = session_for(run, policy, window_tokens)(summariser=summariser)
    for length in boundaries(run):
        try:
            session.fit(request_of(run, run.messages[:length]))
        except UllageError:
            fits = False
            break
        fits &= session.window.estimate <= session.window.limit_tokens
        if share is None and "compacted" in _kinds(session):
            share = view_tokens(session.window) / window_tokens
    order = tuple(
        dict.fromkeys(ACTS[kind] for kind in _kinds(session) if kind in ACTS)
    )
    return Played(order, len(asked), share, fits)


def _kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events]


def _may_need_room(run: Run, window_tokens: int) -> bool:
    """Whether its text has half a token for each of the window's, at four characters a token."""
    return len(str(run.messages)) / 4 > window_tokens / 2


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--window",
    "windows",
    multiple=True,
    type=int,
    default=WINDOWS,
    show_default=True,
)
@click.option(
    "--most",
    type=int,
    help="Stop after so many runs of each path that may need room.",
)
def main(
    paths: tuple[Path, ...], windows: tuple[int, ...], most: int | None
) -> None:
    """Print, for each policy and window, how many runs acted in which order."""
    logging.getLogger("ullage").setLevel(logging.CRITICAL)
    for window_tokens in windows:
        runs = [
            run
            for path in paths
            for run in islice(
                (r for r in read(path) if _may_need_room(r, window_tokens)),
                most,
            )
        ]
        for name in POLICIES:
            found = [play(run, preset(name), window_tokens) for run in runs]
            _say(
                name,
                window_tokens,
                [each for each in found if each.order or not each.fits],
            )


def _say(name: str, window_tokens: int, found: list[Played]) -> None:
    shares = [each.share for each in found if each.share is not None]
    after = (
        f"{median(shares):.0%}, at most {max(shares):.0%}"
        if shares
        else "never"
    )
    asked = sum(each.asked > 0 for each in found)
    click.echo(
        f"{name}, {window_tokens:,}: {len(found)} runs; the summariser was asked in {asked}; "
        f"after the first compaction {after}; {sum(not each.fits for each in found)} over the limit"
    )
    for order, count in Counter(each.order for each in found).most_common():
        click.echo(f"{count:>6}  {', '.join(order) or 'nothing'}")


if __name__ == "__main__":
    main()
