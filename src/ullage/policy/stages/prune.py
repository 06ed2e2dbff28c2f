"""Prune: old tool outputs leave the view in batches, each for something short in its place.

One stage, in four questions, each answered by a plain function:

    wanted       how many tokens should be won now?     `ullage.policy.stages.pressure`
    protected    where does what must stay begin?       `ullage.policy.stages.pressure`
    candidates   what may leave, in which order?        here
    show         what is shown in its place?            `ullage.policy.stages.placeholders`

Nothing is done unless that wins enough, or it would fire at every turn (failures F23 and F33). The
documents' presets are made of it; the default makes records instead
(`ullage.policy.stages.record`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from ullage.core.contract.bound import HELD, editable_from
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace, Skipped
from ullage.core.values.messages import Text, ToolResult
from ullage.policy.stages import rough
from ullage.policy.stages.placeholders import placeholder
from ullage.policy.stages.pressure import newest_share, over_share
from ullage.policy.stages.rent import LEFT_SHARE

_LEFT_TOKENS = 40
"""No more than these tokens, and `LEFT_SHARE`, are left of a leaf."""

Wanted: TypeAlias = Callable[[Window], int | None]
"""How many tokens are to be won, or None if there is no pressure."""

Protected: TypeAlias = Callable[[Window], tuple[int, int]]
"""Message and part index where what must stay begins."""

Candidates: TypeAlias = Callable[[Window, tuple[int, int]], Sequence[Location]]
"""What may leave, in the order in which it leaves, given where what must stay begins."""

Show: TypeAlias = Callable[[Window, Location], ProposedEdit | None]
"""What is shown in place of a leaf, or None if it stays."""


def tokens_won(window: Window, spot: Location, cut: ProposedEdit) -> int:
    """Tokens that a cut of a leaf wins, by the window's own count."""
    shown = window.edit_tokens(cut.edit) if isinstance(cut.edit, Replace) else 0
    return window.leaf_tokens(spot) - shown


def rough_won(
    window: Window, spot: Location, cut: ProposedEdit, *, retain_chars: int
) -> int:
    """Tokens that a head of ``retain_chars`` wins by the rough estimate, its marker not counted.

    The three-layer document counts so: what the text was before, less what is kept of it.
    """
    shown, leaf = window.edit_at(spot), window.transcript.leaf(spot)
    text = (
        shown.text if shown is not None else leaf.text if isinstance(leaf, Text) else ""
    )
    return rough.text_tokens(text) - rough.text_tokens(text[:retain_chars])


def results_only(window: Window, protected: tuple[int, int]) -> Sequence[Location]:
    """Every result, the oldest first."""
    stop = protected[0] + 1 if protected[1] else protected[0]
    found = window.results(0, min(stop, window.size))
    return [
        spot for spot in found if spot[:2] < protected and not window.is_pinned(spot)
    ]


def strings_only(window: Window, protected: tuple[int, int]) -> Sequence[Location]:
    """Every result that is one string, and not a list of blocks, the oldest first."""
    messages, spots = window.transcript.messages, results_only(window, protected)
    parts = ((spot, messages[spot[0]].parts[spot[1]]) for spot in spots)
    return [
        spot for spot, part in parts if isinstance(part, ToolResult) and part.is_string
    ]


def prune(
    window: Window,
    /,
    *,
    wanted: Wanted = partial(over_share, high=0.90, low=0.0),
    protected: Protected = partial(newest_share, share=0.12, most_tokens=4_000),
    candidates: Candidates = results_only,
    show: Show = placeholder,
    won: Callable[[Window, Location, ProposedEdit], int] = tokens_won,
    least_share: float = 0.20,
    least_tokens: int = 10_000,
) -> Sequence[ProposedEdit] | Skipped:
    """Cuts that win what is wanted, or none.

    Args:
        window: the window at the boundary at hand.
        wanted: how many tokens are to be won; None ends it there.
        protected: where what must stay begins.
        candidates: what may leave, in order.
        show: what is shown in its place.
        won: how many tokens one cut wins.
        least_share: do nothing unless at least this share of the limit can be won,
        least_tokens: or so many tokens, if that is less.
    """
    need = wanted(window)
    if need is None:
        return ()
    every, movable = candidates(window, protected(window)), editable_from(window)
    spots = [spot for spot in every if spot[0] >= movable]
    least = min(window.limit_tokens * least_share, least_tokens)
    cuts, total = list[ProposedEdit](), 0
    for spot in spots if need > 0 and _surely_won(window, spots) >= least else ():
        if (cut := show(window, spot)) is not None:
            cuts.append(cut)
            total += won(window, spot, cut)
        if total >= need:
            break
    is_held = (
        not cuts and len(spots) < len(every) and _surely_won(window, every) >= least
    )
    return Skipped(HELD) if is_held else cuts


def _surely_won(window: Window, spots: Sequence[Location]) -> float:
    """Tokens that the cuts of these leaves win at least, known before any of them is made."""
    tokens = map(window.leaf_tokens, spots)
    return sum(max(count * (1 - LEFT_SHARE) - _LEFT_TOKENS, 0) for count in tokens)
