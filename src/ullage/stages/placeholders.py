"""Placeholders: what stands where an old output or old arguments left the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from ullage.values.messages import Media, Text, ToolCall
from ullage.values.notices import ref_line

__all__ = ["DIGEST_SHARES", "bare_placeholder", "digested", "head_and_marker", "placeholder"]

_PAGE_GONE = "[ullage: this page has left the window. Make the same call to read it again.]"
_loads = msgspec.json.Decoder().decode


def placeholder(window: Window, spot: Location, /) -> Cut | None:
    """Ours: a few words and the ref; of arguments, a stub that is still valid JSON."""
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    if edit is not None and edit.is_late:
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
            if window.words.is_recall(window.tool_of(spot)):
                return _cut(window, spot, output, _PAGE_GONE, keep=False)
            shown = window.words.placeholder(output.ref, text)
            is_shorter = len(shown) < len(edit.text if edit is not None else text)
            return _cut(window, spot, output, shown) if is_shorter else None
        case _:
            return None


DIGEST_SHARES: Mapping[ToolKind, float] = {
    "read": 0.25,
    "shell": 0.12,
    "search": 0.12,
    "web": 0.12,
    "other": 0.12,
}
"""What of an output its digest may hold, by kind of tool: of files most is used again."""


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
    """Ours for what is old: of an output the lines that tell most, of speech its beginning.

    All else is as `placeholder` has it.

    Args:
        window: the window at the boundary at hand.
        spot: the leaf.
        shares: what of what was shown before the digest may hold, by kind of tool.
        least_chars: characters that every digest may have.
        most_chars: the most that one may have.
        said_chars: what is kept of what the model said.
    """
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    edit = window.shown(spot[0]).get(spot[1:])
    if not isinstance(leaf, Text) or output is None:
        return placeholder(window, spot)
    if edit is not None and edit.is_late:
        return None
    text, words, tool = leaf.text, window.words, window.tool_of(spot)
    seen_chars = len(text if edit is None else edit.text)
    if words.is_recall(tool):
        return placeholder(window, spot)
    if window.transcript.messages[spot[0]].role == "assistant":
        shown = f"{text[: safe_cut(text, said_chars)]}{words.unsaid(output.ref, len(text))}"
    else:
        room = int(min(max(seen_chars * shares[kind_of(tool)], least_chars), most_chars))
        key = window.transcript.chain[0], "digest", output.ref, room
        told = REMEMBERED.get(key)
        if told is None:
            told = digest(text, room)
            REMEMBERED.put(key, told, len(told))
        shown = f"{words.digest(output.ref, len(text))}\n{told}"
    return _cut(window, spot, output, shown) if len(shown) < seen_chars else None


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
        why: the reason, as events tell it.
    """
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    if not isinstance(leaf, Text) or output is None:
        return None
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    seen = edit.text if edit is not None else leaf.text
    if len(seen) <= retain_chars or seen.endswith(marker):
        return None
    head = leaf.text[: safe_cut(leaf.text, retain_chars)]
    named = ref_line(output.ref, len(leaf.text), window.words.file_of(output.ref))
    shown = f"{head}\n\n{named}\n{marker}"
    if len(shown) >= len(seen):
        return None
    keep = not window.words.is_recall(window.tool_of(spot))
    return _cut(window, spot, output, shown, keep=keep, why=why)


def bare_placeholder(window: Window, spot: Location, /, *, words: str) -> Cut | None:
    """A document's: one line with the ref, in place of a whole text, image or file.

    Left alone is what has such a line already, and what would not be shorter with it, in
    characters and in tokens.

    Args:
        window: the window at the boundary at hand.
        spot: the result.
        words: the line. Field: ``ref``.
    """
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    if not isinstance(leaf, (Text, Media)) or output is None:
        return None
    if edit is not None and edit.is_late:
        return None
    keep = not window.words.is_recall(window.tool_of(spot))
    why = "all outputs together were over their budget"
    shown = words.format(ref=output.ref)
    if len(shown) >= len(edit.text if edit is not None else output.text):
        return None
    cut = _cut(window, spot, output, shown, keep=keep, why=why)
    return cut if window.meter.text(shown) < window.leaf_tokens(spot) else None


_WHY = "it was old, and a batch was due"


def _cut(
    window: Window,
    spot: Location,
    output: Output,
    shown: str,
    *,
    keep: bool = True,
    why: str = _WHY,
) -> Cut:
    """A cut; without ``keep`` nothing is put away, for a page of recall can be made again."""
    size = f"{len(output.text):,} characters" if output.kind == "text" else "a block"
    why = f"{why}; {size} set aside"
    replace = Replace(window.transcript.place(spot), output.ref, shown, "pruned", why)
    return Cut(replace, (output,) if keep else ())


def _stub(window: Window, spot: Location, call: ToolCall, output: Output) -> Cut | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    if window.signed(spot[0]) or window.words.is_recall(call.name):
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
