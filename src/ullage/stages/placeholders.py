"""Placeholders: what is shown where an old output or old arguments left the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ullage.history import canon
from ullage.history.remembered import REMEMBERED
from ullage.history.transcript import Location
from ullage.history.window import Window
from ullage.stages.digest import digest
from ullage.stages.policy import ToolKind, kind_of
from ullage.stages.shorten import safe_cut
from ullage.values.edits import Cut, Replace
from ullage.values.effects import Output
from ullage.values.messages import Content, Media, Part, Text, ToolCall
from ullage.values.notices import ref_line

__all__ = ["DIGEST_SHARES", "bare_placeholder", "digested", "head_and_marker", "placeholder"]

DIGEST_SHARES: Mapping[ToolKind, float] = {
    "read": 0.25,
    "shell": 0.12,
    "search": 0.12,
    "web": 0.12,
    "other": 0.12,
}
"""What of an output its digest may hold, by kind of tool: of files most is used again."""

_PAGE_GONE = "[ullage: this page has left the window. Make the same call to read it again.]"
_WHY = "it was old, and a batch was due"
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


def placeholder(window: Window, spot: Location, /) -> Cut | None:
    """Ours: a few words and the ref; of arguments, a stub that is still valid JSON."""
    leaf = _leaf(window, spot)
    return None if leaf is None else _placeholder(window, leaf)


def _placeholder(window: Window, leaf: _Leaf) -> Cut | None:
    words, output = window.words, leaf.output
    match leaf.original:
        case ToolCall() as call:
            return _stub(window, leaf, call)
        case Media(mime=mime, kind=kind):
            return _cut(window, leaf, words.media(output.ref, mime or kind))
        case Text() if words.is_recall(window.tool_of(leaf.spot)):
            return _cut(window, leaf, _PAGE_GONE)
        case Text(text=text):
            return _shorter(window, leaf, words.placeholder(output.ref, text))
        case _:
            return None


def digested(
    window: Window,
    spot: Location,
    /,
    *,
    shares: Mapping[ToolKind, float] = DIGEST_SHARES,
    least_chars: int = 200,
    most_chars: int = 3_000,
    said_chars: int = 200,
) -> Cut | None:
    """Ours for what is old: of an output a digest, of speech its beginning, else a placeholder.

    Args:
        window: the window at the boundary at hand.
        spot: the leaf.
        shares: what of what was shown before the digest may hold, by kind of tool.
        least_chars: characters that every digest may have.
        most_chars: the most that one may have.
        said_chars: what is kept of what the model said.
    """
    leaf = _leaf(window, spot)
    if leaf is None:
        return None
    output, words, tool = leaf.output, window.words, window.tool_of(spot)
    if not isinstance(leaf.original, Text) or words.is_recall(tool):
        return _placeholder(window, leaf)
    text = output.text
    if window.transcript.messages[spot[0]].role == "assistant":
        head = text[: safe_cut(text, said_chars)]
        return _shorter(window, leaf, f"{head}{words.unsaid(output.ref, len(text))}")
    room = int(min(max(len(leaf.shown) * shares[kind_of(tool)], least_chars), most_chars))
    key = window.transcript.chain[0], "digest", output.ref, room
    lines = REMEMBERED.get(key)
    if lines is None:
        lines = digest(text, room)
        REMEMBERED.put(key, lines, len(lines))
    return _shorter(window, leaf, f"{words.digest(output.ref, len(text))}\n{lines}")


def head_and_marker(
    window: Window, spot: Location, /, *, retain_chars: int, marker: str, why: str
) -> Cut | None:
    """A document's: the first characters, the ref where the marker names none, the marker.

    Left alone is what is not text, what already ends in the marker, and what would not
    become shorter.

    Args:
        window: the window at the boundary at hand.
        spot: the result.
        retain_chars: how many characters of the original stay.
        marker: the last characters of what is shown.
        why: the reason, as events report it.
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

    Args:
        window: the window at the boundary at hand.
        spot: the result.
        words: the line. Field: ``ref``.
    """
    leaf = _leaf(window, spot)
    if leaf is None or not isinstance(leaf.original, (Text, Media)):
        return None
    shown = words.format(ref=leaf.output.ref)
    cut = _shorter(window, leaf, shown, "all outputs together were over their budget")
    return cut if cut and window.meter.text(shown) < window.leaf_tokens(spot) else None


def _shorter(window: Window, leaf: _Leaf, shown: str, why: str = _WHY) -> Cut | None:
    """A cut, if it makes what is shown shorter."""
    return _cut(window, leaf, shown, why) if len(shown) < len(leaf.shown) else None


def _cut(window: Window, leaf: _Leaf, shown: str, why: str = _WHY) -> Cut:
    """A cut. A page of recall is not set aside: the same call makes it again."""
    spot, output = leaf.spot, leaf.output
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
