"""The default that shows no run of lines twice: an experiment, and no stage of ours.

Lines of a result that stand, four and more in a row, in an earlier result since the last batch are
left out at first sight, for a line that says so. A batch looks at the originals, as ever.

What a stage would need more: a result in the tail whose source a batch has condensed is to be shown
again whole, and a new process must come to the same (G3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.messages import Text
from ullage.policy.stages.truncate import truncate

_LINES, _LEAST_CHARS, _POINTER_CHARS = 4, 200, 70


def unrepeated(window: Window) -> Sequence[ProposedEdit]:
    """Cuts at first sight: what is too large, and what an earlier result has shown."""
    cuts = list(truncate(window))
    cut = {one.edit.address for one in cuts if isinstance(one.edit, Replace)}
    begin = max((placed.stop for placed in window.open_summaries), default=0)
    known = set[int]()
    for spot in window.results(begin, window.size):
        leaf = window.transcript.leaf(spot)
        if (
            not isinstance(leaf, Text)
            or window.transcript.address(spot) in cut
        ):
            continue
        if spot[0] >= window.fresh and spot not in window.replaced_later:
            made = _without(window, spot, leaf.text, known)
            cuts += [made] if made else []
        if window.edit_at(spot) is None:
            known.update(_runs(leaf.text))
    return cuts


def _without(
    window: Window, spot: Location, text: str, known: set[int]
) -> ProposedEdit | None:
    shown = "\n".join(_shown(text, known))
    output = window.transcript.output(spot)
    if output is None or len(text) - len(shown) < _LEAST_CHARS:
        return None
    place = window.transcript.address(spot)
    why = f"{len(text) - len(shown):,} characters stand in an earlier result"
    return ProposedEdit(
        Replace(place, output.ref, shown, "truncated", why), (output,)
    )


def _shown(text: str, known: set[int]) -> Iterator[str]:
    """The lines of a text, a pointer for each run of known ones that is worth it."""
    lines, runs = text.splitlines(), _runs(text)
    at = 0
    while at < len(lines):
        end = at
        while end < len(runs) and runs[end] in known:
            end += 1
        end += _LINES - 1 if end > at else 1
        if (
            sum(map(len, lines[at:end])) >= _LEAST_CHARS + _POINTER_CHARS
            and end > at + 1
        ):
            yield f"[ullage: lines {at + 1} to {end} stand in an earlier result]"
        else:
            yield from lines[at:end]
        at = end


@lru_cache(maxsize=20_000)
def _runs(text: str) -> tuple[int, ...]:
    """Each run of so many lines, as a hash."""
    lines = text.splitlines()
    return tuple(
        hash(tuple(lines[at : at + _LINES]))
        for at in range(len(lines) - _LINES + 1)
    )
