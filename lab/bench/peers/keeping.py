"""What a policy keeps whole, and whether it does the same again (`metrics` G3 and G4).

These ask less than `ullage.tools.replay.gates`, which looks at every view and goes by bytes: a
library may write what it kept as JSON or number its lines. Here a result is kept whole if at the
last call of the run it stands in the view, or each of its lines is in what one ref of the view
opens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lab.bench.peers.contestants import Contestant, Refused
from lab.bench.peers.judging import Case, Make
from lab.bench.peers.process import Trouble
from lab.reading import results, visible
from lab.replay.past import Memo, Past
from ullage.tools.replay.evidence.atoms import plain
from ullage.tools.replay.reading import Library, reachable_with

_LEAST_CHARS = 200
"""A shorter result, such as "ok", is in many texts by chance."""


class Keep(Struct, frozen=True):
    """What one contestant kept of one run.

    Attributes:
        results: tool results of the history at the last call for which there was a view.
        shown: of them whole in that view.
        opened: of the others those that the contestant's own tool returns whole.
        views: calls.
        differing: of them those with another view in a second pass, from the beginning and in
            a process of its own.
        trouble: how the contestant failed; empty if it did not.
    """

    results: int = 0
    shown: int = 0
    opened: int = 0
    views: int = 0
    differing: int = 0
    trouble: str = ""


def keep(case: Case, window_tokens: int, make: Make) -> Keep:
    """Put one contestant through one run, twice.

    Args:
        case: the run.
        window_tokens: the window.
        make: makes the contestant, in a process of its own each time.
    """
    try:
        contestant = make(case, window_tokens)
        once = [*_views(case, window_tokens, contestant)]
        number = max(
            (n for n, view in enumerate(once) if view is not None), default=0
        )
        history = case.run.messages[: case.lengths[number]]
        found = _whole(history, once[number] or (), contestant.library)
        again = _views(case, window_tokens, make(case, window_tokens))
        differing = sum(
            one != other for one, other in zip(once, again, strict=True)
        )
    except Trouble as trouble:
        return Keep(trouble=str(trouble))
    return Keep(*found, views=len(once), differing=differing)


def _views(
    case: Case, window_tokens: int, contestant: Contestant
) -> Iterator[Sequence[Any] | None]:
    """The view of each call, None where the library refused."""
    budget, memo = case.budget_tokens(window_tokens), Memo()
    for number, length in enumerate(case.lengths):
        try:
            yield contestant.view(
                Past(case.story, length, number, case.judge, memo), budget
            )
        except Refused:
            yield None


def _whole(
    history: Sequence[Any], view: Sequence[Any], library: Library
) -> tuple[int, int, int]:
    """How many results there are, how many the view shows, and how many more it leads to."""
    texts = [
        text
        for message in history
        for _, texts in results(message)
        for text in texts
    ]
    long = [text for text in texts if len(text) >= _LEAST_CHARS]
    seen = [*visible(view)]
    hidden = [
        text for text in long if not any(text in shown for shown in seen)
    ]
    named = [pointer.ref for text in seen for pointer in library.named(text)]
    refs = reachable_with(library.leads, named) if hidden else []
    kept = [plain(library.whole(ref)) for ref in refs]
    opened = sum(any(_has_lines(one, text) for one in kept) for text in hidden)
    return len(long), len(long) - len(hidden), opened


def _has_lines(kept: str, text: str) -> bool:
    return all(line.strip() in kept for line in plain(text).splitlines())


def markdown_of_keeps(keeps: Mapping[tuple[int, str], Sequence[Keep]]) -> str:
    """A row for each window and contestant, for a document."""
    rows = [
        [
            "window",
            "policy",
            "runs",
            "results",
            "in view",
            "read back",
            "gone",
            "differing",
        ]
    ]
    rows += [["--:", "---", *["--:"] * 6]]
    rows += [
        [f"{window // 1000}k", name, *_cells(of)]
        for (window, name), of in keeps.items()
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(keeps: Sequence[Keep]) -> list[str]:
    done = [one for one in keeps if not one.trouble]
    total, shown, opened = (
        sum(getattr(one, name) for one in done)
        for name in ("results", "shown", "opened")
    )
    views, differing = (
        sum(one.views for one in done),
        sum(one.differing for one in done),
    )
    return [
        str(len(done))
        if len(done) == len(keeps)
        else f"{len(done)} of {len(keeps)}",
        *(
            f"{count:,}"
            for count in (total, shown, opened, total - shown - opened)
        ),
        f"{differing:,} of {views:,}",
    ]
