"""Placeholders: what is shown where an old output or old arguments left the view."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import msgspec

from ullage.history import canon
from ullage.history.remembered import REMEMBERED
from ullage.history.transcript import Location
from ullage.history.window import Window
from ullage.stages.digest import read
from ullage.stages.names import Known, said_in, told_in
from ullage.stages.shorten import safe_cut
from ullage.values.edits import Cut, Replace
from ullage.values.effects import Output
from ullage.values.messages import Content, Media, Part, Text, ToolCall
from ullage.values.notices import ref_line

__all__ = ["bare_placeholder", "digests_of", "head_and_marker", "placeholder"]

_PAGE_GONE = "[ullage: this page has left the window. Make the same call to read it again.]"
_TRIES = 5
"""A price is doubled less often than this."""
_VALUE_CHARS = 160
"""An argument of more is cut in a stub."""
_loads = msgspec.json.Decoder().decode


class _Leaf(NamedTuple):
    """A leaf that may be set aside: the original, what is kept of it, how it is shown now."""

    spot: Location
    original: Part | Content
    output: Output
    shown: str


def _leaf(window: Window, spot: Location, *, again: bool = False) -> _Leaf | None:
    """The leaf at a location; None for what cannot be set aside or, but for ``again``, was."""
    original, output = window.transcript.leaf(spot), window.transcript.output(spot)
    edit = window.edit_at(spot)
    if original is None or output is None or (edit is not None and edit.is_late and not again):
        return None
    return _Leaf(spot, original, output, output.text if edit is None else edit.text)


def placeholder(window: Window, spot: Location, /, *, why: str = "") -> Cut | None:
    """Ours: a few words and the ref; of arguments, a stub that is still valid JSON."""
    leaf = _leaf(window, spot)
    return None if leaf is None else _placeholder(window, leaf, why)


def _placeholder(window: Window, leaf: _Leaf, why: str = "") -> Cut | None:
    words, output = window.words, leaf.output
    match leaf.original:
        case ToolCall() as call:
            return _stub(window, leaf, call)
        case Media(mime=mime, kind=kind):
            return _cut(window, leaf, words.media(output.ref, mime or kind), why)
        case Text() if words.is_recall(window.tool_of(leaf.spot)):
            return _cut(window, leaf, _PAGE_GONE)
        case Text(text=text):
            return _shorter(window, leaf, words.placeholder(output.ref, text))
        case _:
            return None


def digests_of(
    window: Window, spots: Set[Location], *, price: int, most_chars: int, most_share: float
) -> Mapping[Location, str]:
    """The digest of each result; remembered, for they depend on content alone.

    The newest chooses first, so that what several tell stays where it was told last.

    Args:
        window: the window at the boundary at hand.
        spots: the results, which are texts.
        price: what a line has to earn for each character (`ullage.stages.digest`), doubled while
            all digests are longer than their share, but not without end.
        most_chars: the most characters of one digest.
        most_share: of the characters of all results.
    """
    found = {spot: window.transcript.output(spot) for spot in sorted(spots, reverse=True)}
    outputs = {spot: output for spot, output in found.items() if output is not None}
    said, told = said_in(window), told_in(window, spots)
    refs = tuple(output.ref for output in outputs.values())
    root = window.transcript.chain[0]
    key = root, "digests", refs, hash(said), hash(tuple(told)), price, most_chars, most_share
    digests: list[str] | None = REMEMBERED.get(key)
    if digests is None:
        known = Known.of(said, told, root)
        readings = [read(output.text, known) for output in outputs.values()]
        most = sum(len(output.text) for output in outputs.values()) * most_share
        digests = [each.digest(price, most_chars) for each in readings]
        for times in range(1, _TRIES):
            if sum(map(len, digests)) <= most:
                break
            digests = [each.digest(price << times, most_chars) for each in readings]
        REMEMBERED.put(key, digests, sum(map(len, digests)))
    return dict(zip(outputs, digests, strict=True))


def head_and_marker(
    window: Window, spot: Location, /, *, retain_chars: int, marker: str, why: str
) -> Cut | None:
    """A document's: the first characters, the ref where the marker names none, the marker.

    Left alone is what is not text, what already ends in the marker, and what would not
    become shorter.
    """
    leaf = _leaf(window, spot, again=True)
    if leaf is None or not isinstance(leaf.original, Text):
        return None
    if len(leaf.shown) <= retain_chars or leaf.shown.endswith(marker):
        return None
    text, ref = leaf.output.text, leaf.output.ref
    named = ref_line(ref, len(text), window.words.file_of(ref))
    return _shorter(
        window, leaf, f"{text[: safe_cut(text, retain_chars)]}\n\n{named}\n{marker}", why
    )


def bare_placeholder(window: Window, spot: Location, /, *, words: str) -> Cut | None:
    """A document's: one line with the ref, in place of a whole text, image or file.

    Left alone is what has such a line already, and what would not be shorter with it, in
    characters and in tokens.

    The field of the line is ``ref``.
    """
    leaf = _leaf(window, spot)
    if leaf is None or not isinstance(leaf.original, (Text, Media)):
        return None
    shown = words.format(ref=leaf.output.ref)
    cut = _shorter(window, leaf, shown, "all outputs together were over their budget")
    return cut if cut and window.meter.text(shown) < window.leaf_tokens(spot) else None


def _shorter(window: Window, leaf: _Leaf, shown: str, why: str = "") -> Cut | None:
    """A cut, if it makes what is shown shorter."""
    return _cut(window, leaf, shown, why) if len(shown) < len(leaf.shown) else None


def _cut(window: Window, leaf: _Leaf, shown: str, why: str = "") -> Cut:
    """A cut. A page of recall is not set aside: the same call makes it again."""
    spot, output = leaf.spot, leaf.output
    why = (
        why or f"it was old, and the view held {window.tokens:,} of {window.limit_tokens:,} tokens"
    )
    size = f"{len(output.text):,} characters" if output.kind == "text" else "a block"
    replace = Replace(
        window.transcript.place(spot), output.ref, shown, "pruned", f"{why}; {size} set aside"
    )
    return Cut(replace, () if window.words.is_recall(window.tool_of(spot)) else (output,))


def _stub(window: Window, leaf: _Leaf, call: ToolCall) -> Cut | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    if window.signed(leaf.spot[0]) or window.words.is_recall(call.name):
        return None
    try:
        value = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    stub = {key: _short(item) for key, item in value.items()}
    stub["_ullage"] = window.words.arguments(leaf.output.ref, len(call.arguments))
    return _shorter(window, leaf, canon.canonical_json(stub))


def _short(value: Any) -> Any:
    if isinstance(value, str):
        left = f"[… {len(value) - _VALUE_CHARS // 2:,} characters …]"
        return value if len(value) <= _VALUE_CHARS else f"{value[: _VALUE_CHARS // 2]}{left}"
    if isinstance(value, (dict, list)):
        chars = len(canon.canonical_json(value))
        return value if chars <= _VALUE_CHARS else f"[… {chars:,} characters of JSON …]"
    return value
