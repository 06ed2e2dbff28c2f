"""Prune: old tool outputs and large old call arguments leave the view, in batches.

One stage, in four questions, each answered by a plain function:

    wanted       how many tokens should be won now?     `ullage.stages.pressure`
    protected    where does what must stay begin?       `ullage.stages.pressure`
    candidates   what may leave, in which order?        here
    show         what stands in its place?              `ullage.stages.placeholders`

Ours starts over a high-water mark, goes down to a low-water mark, and does not start at all
unless it wins enough (an irreducible floor above the low-water mark must not make it fire at
every turn, failures F23 and F33). What is shown twice goes first, then what was called back,
then the oldest. The newest tokens are protected, widened to whole turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from ullage.edits import Cut, Replace
from ullage.messages import Media, Text, ToolCall, ToolResult
from ullage.stages import rough
from ullage.stages.placeholders import placeholder
from ullage.stages.pressure import newest_share, over_share
from ullage.transcript import Spot, leaves_of
from ullage.window import Window

__all__ = [
    "Candidates",
    "Show",
    "oldest_first",
    "prune",
    "results_only",
    "rough_won",
    "strings_only",
    "tokens_won",
]

_PLACEHOLDER_TOKENS = 70
_SMALL_TOKENS = 150
"""Results and arguments of no more than this are not worth a placeholder."""

Wanted: TypeAlias = Callable[[Window], int | None]
"""How many tokens are to be won, or None if there is no pressure."""

Protected: TypeAlias = Callable[[Window], tuple[int, int]]
"""Message and part index where what must stay begins."""

Candidates: TypeAlias = Callable[[Window, tuple[int, int]], Sequence[Spot]]
"""What may leave, in the order in which it leaves, given where what must stay begins."""


class Show(Protocol):
    """Says what stands in place of a leaf."""

    def __call__(self, window: Window, spot: Spot, /) -> Cut | None:
        """The cut of one leaf, or None if it stays."""


def tokens_won(window: Window, spot: Spot, cut: Cut) -> int:
    """Tokens that a cut of a leaf wins, by the window's own count."""
    shown = window.edit_tokens(cut.edit) if isinstance(cut.edit, Replace) else 0
    return window.leaf_tokens(spot) - shown


def rough_won(window: Window, spot: Spot, cut: Cut, *, retain_chars: int) -> int:
    """Tokens that a head of ``retain_chars`` wins by the rough estimate, its marker not counted.

    The three-layer document counts so: what the text was before, less what is kept of it.
    """
    shown, leaf = window.shown(spot[0]).get(spot[1:]), window.transcript.leaf(spot)
    text = shown.text if shown is not None else leaf.text if isinstance(leaf, Text) else ""
    return rough.text_tokens(text) - rough.text_tokens(text[:retain_chars])


def oldest_first(window: Window, protected: tuple[int, int]) -> Sequence[Spot]:
    """Results and arguments worth a placeholder: superseded ones first, then the oldest."""
    spots = [spot for spot in _spots(window, protected) if window.leaf_tokens(spot) > _SMALL_TOKENS]
    newest = _newest_of_each_call(window) if spots else {}
    return sorted(spots, key=lambda spot: not _superseded(window, spot, newest))


def results_only(window: Window, protected: tuple[int, int]) -> Sequence[Spot]:
    """Every result, the oldest first."""
    stop = protected[0] + 1 if protected[1] else protected[0]
    found = window.results(0, min(stop, window.size))
    return [spot for spot in found if spot[:2] < protected]


def strings_only(window: Window, protected: tuple[int, int]) -> Sequence[Spot]:
    """Every result that is one string, and not a list of blocks, the oldest first."""
    return [spot for spot in results_only(window, protected) if _is_string(window, spot)]


def _is_string(window: Window, spot: Spot) -> bool:
    part = window.transcript.messages[spot[0]].parts[spot[1]]
    return isinstance(part, ToolResult) and part.is_string


def prune(
    window: Window,
    /,
    *,
    wanted: Wanted = partial(over_share, high=0.75, low=0.40),
    protected: Protected = partial(newest_share, share=0.12),
    candidates: Candidates = oldest_first,
    show: Show = placeholder,
    won: Callable[[Window, Spot, Cut], int] = tokens_won,
    least_share: float = 0.10,
) -> Sequence[Cut]:
    """Cuts that win what is wanted, or none.

    Args:
        window: the window at the boundary at hand.
        wanted: how many tokens are to be won; None ends it there.
        protected: where what must stay begins.
        candidates: what may leave, in order.
        show: what stands in its place.
        won: how many tokens one cut wins.
        least_share: do nothing unless at least this share of the limit can be won.
    """
    need = wanted(window)
    if need is None:
        return ()
    least = window.limit_tokens * least_share
    spots = candidates(window, protected(window))
    if least > 0:
        most = sum(window.leaf_tokens(spot) - _PLACEHOLDER_TOKENS for spot in spots)
        if most < least:
            return ()
    cuts, total = [], 0
    for spot in spots:
        if total >= need:
            break
        cut = show(window, spot)
        if cut is not None:
            cuts.append(cut)
            total += won(window, spot, cut)
    return cuts if total >= least else ()


def _spots(window: Window, protected: tuple[int, int]) -> Iterator[Spot]:
    stop = protected[0]
    for index in range(window.settled_to(stop, _is_settled), stop):
        if window.hidden(index):
            continue
        for number, part in enumerate(window.transcript.messages[index].parts):
            if isinstance(part, ToolCall):
                yield index, number, 0
        yield from window.results(index, index + 1)


def _is_settled(window: Window, index: int) -> bool:
    """Whether nothing of a message is left to prune: it was, or is condensed, or too small."""
    if window.hidden(index):
        return True
    shown, signed = window.shown(index), window.signed(index)
    message = window.transcript.messages[index]
    leaves = leaves_of(message)
    for (number, item, leaf), tokens in zip(leaves, window.leaf_counts(index), strict=True):
        edit = shown.get((number, item))
        if tokens <= _SMALL_TOKENS or (edit is not None and edit.kind != "truncated"):
            continue
        part = message.parts[number]
        if isinstance(part, ToolResult) and isinstance(leaf, (Text, Media)):
            return False
        if isinstance(part, ToolCall) and not signed:
            return False
    return True


def _newest_of_each_call(window: Window) -> dict[tuple[str, str], int]:
    """Where each distinct call (name and arguments) was last made."""
    newest: dict[tuple[str, str], int] = {}
    for index in range(window.settled_to(window.size, _is_settled), window.size):
        for call in window.transcript.messages[index].calls:
            newest[call.name, call.arguments] = index
    return newest


def _superseded(window: Window, spot: Spot, newest: dict[tuple[str, str], int]) -> bool:
    """Whether the same call was made again later, or the result was only called back."""
    call = window.transcript.call_for(spot[0], spot[1])
    if call is None:
        return False
    if window.words.is_recall(call.name):
        return True
    return newest.get((call.name, call.arguments), -1) >= spot[0]
