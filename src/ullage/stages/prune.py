"""Prune: old tool outputs and large old call arguments become placeholders, in batches.

A batch is rare and deep: it starts over a high-water mark, goes down to a low-water mark,
and does not start at all unless it wins enough (an irreducible floor above the low-water
mark must not make it fire at every turn, failures F23 and F33). What is shown twice goes
first, then what was called back, then the oldest. The newest tokens are protected, widened
to whole turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ullage import canon
from ullage.edits import Cut, Replace
from ullage.effects import Output
from ullage.messages import Media, Text, ToolCall
from ullage.notices import RECALL_TOOLS
from ullage.transcript import Spot
from ullage.window import SMALL_TOKENS, Window

__all__ = ["placeholder", "prune"]

_PLACEHOLDER_TOKENS = 70
_PAGE_GONE = "[ullage: this page has left the window. Make the same call to read it again.]"
_loads = msgspec.json.Decoder().decode


def prune(
    window: Window,
    /,
    *,
    high: float = 0.75,
    low: float = 0.40,
    protect: float = 0.12,
    least: float = 0.10,
) -> Sequence[Cut]:
    """Cuts that bring the window from over ``high`` down to ``low``, or none.

    Args:
        window: the window at the boundary at hand.
        high: start above this share of the limit.
        low: stop at this share of the limit.
        protect: the newest share of the limit is left alone, widened to whole turns.
        least: do nothing unless at least this share of the limit can be won.
    """
    limit = window.limit_tokens
    if window.within(int(limit * high)):
        return ()
    wanted = window.estimate - int(limit * low)
    spots = _large(window, window.tail(int(limit * protect)))
    if sum(spots.values()) - _PLACEHOLDER_TOKENS * len(spots) < limit * least:
        return ()
    cuts, won = [], 0
    for spot, tokens in _in_order(window, spots):
        cut = placeholder(window, spot)
        if cut is not None:
            cuts.append(cut)
            won += tokens - _PLACEHOLDER_TOKENS
        if won >= wanted:
            break
    return cuts if won >= limit * least else ()


def _large(window: Window, stop: int) -> dict[Spot, int]:
    """The tokens of each spot worth a placeholder, oldest first."""
    spots = ((spot, window.leaf_tokens(spot)) for spot in _spots(window, stop))
    return {spot: tokens for spot, tokens in spots if tokens > SMALL_TOKENS}


def _in_order(window: Window, spots: dict[Spot, int]) -> Iterator[tuple[Spot, int]]:
    """The spots in the order in which they should leave the view."""
    newest = _newest_of_each_call(window)
    first = [spot for spot in spots if _superseded(window, spot, newest)]
    yield from ((spot, spots[spot]) for spot in first)
    gone = set(first)
    yield from (pair for pair in spots.items() if pair[0] not in gone)


def _spots(window: Window, stop: int) -> Iterator[Spot]:
    start = window.settled_to(stop)
    for index in range(start, stop):
        if window.hidden(index):
            continue
        for number, part in enumerate(window.transcript.messages[index].parts):
            if isinstance(part, ToolCall):
                yield index, number, 0
        yield from window.results(index, index + 1)


def _newest_of_each_call(window: Window) -> dict[tuple[str, str], int]:
    """Where each distinct call (name and arguments) was last made."""
    newest: dict[tuple[str, str], int] = {}
    for index in range(window.settled_to(window.size), window.size):
        for call in window.transcript.messages[index].calls:
            newest[call.name, call.arguments] = index
    return newest


def _superseded(window: Window, spot: Spot, newest: dict[tuple[str, str], int]) -> bool:
    """Whether the same call was made again later, or the result was only called back."""
    call = window.transcript.call_for(spot[0], spot[1])
    if call is None:
        return False
    if call.name.removeprefix(window.words.prefix) in RECALL_TOOLS:
        return True
    return newest.get((call.name, call.arguments), -1) >= spot[0]


def placeholder(window: Window, spot: Spot) -> Cut | None:
    """The cut that sets aside what stands at a spot, or None where it must or may stay."""
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    if edit is not None and edit.kind != "truncated":
        return None
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    if output is None:
        return None
    match leaf:
        case ToolCall():
            return _stub(window, spot, leaf, output)
        case Media(mime=mime, kind=kind):
            return _cut(window, spot, output, window.words.media(output.ref, mime or kind))
        case Text(text=text):
            call = window.transcript.call_for(spot[0], spot[1])
            if call is not None and call.name.removeprefix(window.words.prefix) in RECALL_TOOLS:
                return _cut(window, spot, output, _PAGE_GONE, keep=False)
            shown = window.words.placeholder(output.ref, text)
            is_shorter = len(shown) < len(edit.text if edit is not None else text)
            return _cut(window, spot, output, shown) if is_shorter else None
        case _:
            return None


def _cut(window: Window, spot: Spot, output: Output, shown: str, *, keep: bool = True) -> Cut:
    size = f"{len(output.text):,} characters" if output.kind == "text" else "a block"
    why = f"the window was over its high-water mark; {size} set aside"
    replace = Replace(window.transcript.place(spot), output.ref, shown, "pruned", why)
    return Cut(replace, (output,) if keep else ())


def _stub(window: Window, spot: Spot, call: ToolCall, output: Output) -> Cut | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    if window.signed(spot[0]) or call.name.removeprefix(window.words.prefix) in RECALL_TOOLS:
        return None
    try:
        value = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    stub = {key: _short(item) for key, item in value.items()}
    stub["_ullage"] = window.words.arguments(output.ref, len(call.arguments))
    text = canon.canonical_json(stub)
    return _cut(window, spot, output, text) if len(text) < len(call.arguments) else None


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 160 else f"{value[:80]}[… {len(value) - 80:,} characters …]"
    if isinstance(value, (dict, list)):
        text = canon.canonical_json(value)
        return value if len(text) <= 160 else f"[… {len(text):,} characters of JSON …]"
    return value
