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
from ullage.policy.stages.carrying_cost import LEFT_SHARE
from ullage.policy.stages.placeholders import placeholder
from ullage.policy.stages.pressure import newest_share, over_share

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
    edit_tokens = (
        window.edit_tokens(cut.edit) if isinstance(cut.edit, Replace) else 0
    )
    return window.leaf_tokens(spot) - edit_tokens


def rough_won(
    window: Window,
    spot: Location,
    cut: ProposedEdit,
    *,
    retain_chars: int,
) -> int:
    """Tokens that a head of ``retain_chars`` wins by the rough estimate, its marker not counted.

    The three-layer document counts so: what the text was before, less what is kept of it.
    """
    text = _shown_text(window, spot)
    head = text[:retain_chars]
    return rough.text_tokens(text) - rough.text_tokens(head)


def _shown_text(window: Window, spot: Location) -> str:
    """The text of a leaf as the view has it; ``""`` for what is no text."""
    edit = window.edit_at(spot)
    if edit is not None:
        return edit.text
    leaf = window.transcript.leaf(spot)
    return leaf.text if isinstance(leaf, Text) else ""


def results_only(
    window: Window, protected: tuple[int, int]
) -> Sequence[Location]:
    """Every result, the oldest first."""
    stop, part = protected
    if part:  # some results of that message may leave
        stop += 1
    stop = min(stop, window.size)
    spots = []
    for spot in window.results(0, stop):
        if spot[:2] < protected and not window.is_pinned(spot):
            spots.append(spot)
    return spots


def strings_only(
    window: Window, protected: tuple[int, int]
) -> Sequence[Location]:
    """Every result that is one string, and not a list of blocks, the oldest first."""
    spots = []
    for spot in results_only(window, protected):
        index, number, _ = spot
        part = window.transcript.messages[index].parts[number]
        if isinstance(part, ToolResult) and part.is_string:
            spots.append(spot)
    return spots


def prune(
    window: Window,
    /,
    *,
    wanted: Wanted = partial(over_share, high=0.90, low=0.0),
    protected: Protected = partial(
        newest_share, share=0.12, most_tokens=4_000
    ),
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
    spots = candidates(window, protected(window))
    movable = editable_from(window)
    editable = [spot for spot in spots if spot[0] >= movable]
    least = min(window.limit_tokens * least_share, least_tokens)
    cuts = list[ProposedEdit]()
    if need > 0 and _surely_won(window, editable) >= least:
        cuts = _cuts(window, editable, need=need, show=show, won=won)
    if cuts or len(editable) == len(spots):
        return cuts
    # enough could be won, but thinking is bound to what would change: that is told
    if _surely_won(window, spots) >= least:
        return Skipped(HELD)
    return cuts


def _cuts(
    window: Window,
    spots: Sequence[Location],
    need: int,
    show: Show,
    won: Callable[[Window, Location, ProposedEdit], int],
) -> list[ProposedEdit]:
    """Cuts in the order of their places, until ``need`` tokens are won."""
    cuts = list[ProposedEdit]()
    total = 0
    for spot in spots:
        cut = show(window, spot)
        if cut is not None:
            cuts.append(cut)
            total += won(window, spot, cut)
        if total >= need:
            break
    return cuts


def _surely_won(window: Window, spots: Sequence[Location]) -> float:
    """Tokens that the cuts of these leaves win at least, known before any of them is made."""
    total = 0.0
    for spot in spots:
        tokens = window.leaf_tokens(spot)
        total += max(tokens * (1 - LEFT_SHARE) - _LEFT_TOKENS, 0)
    return total
