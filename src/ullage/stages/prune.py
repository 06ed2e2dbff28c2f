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
from ullage.transcript import Spot, output_of
from ullage.window import SMALL_TOKENS, Window

__all__ = ["prune"]

_PLACEHOLDER_TOKENS = 70
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
    stop = window.tail(int(limit * protect))
    cuts, won = [], 0
    for spot, tokens in _candidates(window, stop):
        cut = _placeholder(window, spot)
        if cut is not None:
            cuts.append(cut)
            won += tokens - _PLACEHOLDER_TOKENS
        if won >= wanted:
            break
    return cuts if won >= limit * least else ()


def _candidates(window: Window, stop: int) -> Iterator[tuple[Spot, int]]:
    """Spots that may leave the view, in the order in which they should."""
    spots = [
        (spot, tokens)
        for spot in _spots(window, stop)
        if (tokens := window.leaf_tokens(spot)) > SMALL_TOKENS
    ]
    newest = _newest_of_each_call(window)
    first = [pair for pair in spots if _superseded(window, pair[0], newest)]
    gone = {spot for spot, _ in first}
    yield from first
    yield from (pair for pair in spots if pair[0] not in gone)


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


def _placeholder(window: Window, spot: Spot) -> Cut | None:
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    if edit is not None and edit.kind != "truncated":
        return None
    leaf = window.transcript.leaf(spot)
    if isinstance(leaf, ToolCall):
        return _stub(window, spot, leaf)
    if isinstance(leaf, Media):
        return _without_media(window, spot, leaf)
    if not isinstance(leaf, Text):
        return None
    call = window.transcript.call_for(spot[0], spot[1])
    ref = canon.ref_of(leaf.text)
    if call is not None and call.name.removeprefix(window.words.prefix) in RECALL_TOOLS:
        text = "[ullage: this page has left the window. Make the same call to read it again.]"
        return _cut(window, spot, leaf.text, ref, text, keep=False)
    text = window.words.placeholder(ref, leaf.text)
    shown = edit.text if edit is not None else leaf.text
    return _cut(window, spot, leaf.text, ref, text) if len(text) < len(shown) else None


def _without_media(window: Window, spot: Spot, media: Media) -> Cut | None:
    output = output_of(media)
    if output is None:
        return None
    text = window.words.media(output.ref, media.mime or media.kind)
    why = "the window was over its high-water mark; an image or document set aside"
    replace = Replace(window.transcript.place(spot), output.ref, text, "pruned", why)
    return Cut(replace, (output,))


def _cut(window: Window, spot: Spot, text: str, ref: str, shown: str, *, keep: bool = True) -> Cut:
    why = f"the window was over its high-water mark; {len(text):,} characters set aside"
    place = window.transcript.place(spot)
    return Cut(Replace(place, ref, shown, "pruned", why), (Output(ref, text),) if keep else ())


def _stub(window: Window, spot: Spot, call: ToolCall) -> Cut | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    if window.signed(spot[0]) or call.name.removeprefix(window.words.prefix) in RECALL_TOOLS:
        return None
    try:
        value = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    ref = canon.ref_of(call.arguments)
    stub = {key: _short(item) for key, item in value.items()}
    stub["_ullage"] = window.words.arguments(ref, len(call.arguments))
    text = canon.canonical_json(stub)
    return (
        _cut(window, spot, call.arguments, ref, text) if len(text) < len(call.arguments) else None
    )


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 160 else f"{value[:80]}[… {len(value) - 80:,} characters …]"
    if isinstance(value, (dict, list)):
        text = canon.canonical_json(value)
        return value if len(text) <= 160 else f"[… {len(text):,} characters of JSON …]"
    return value
