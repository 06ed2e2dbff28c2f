"""Placeholders: what is shown where an old output or old arguments left the view."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ullage.core.contract.kinds import fields_of
from ullage.core.history import canon
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.effects import Output
from ullage.core.values.messages import Media, Text, ToolCall
from ullage.core.values.notices import ref_line
from ullage.policy.stages.digest import read
from ullage.policy.stages.names import Known, said_in, told_in
from ullage.policy.stages.shorten import safe_cut

PAGE_GONE = (
    "[ullage: this page has left the window. Make the same call to read it again.]"
)
_TRIES = 5
"""A price is doubled less often than this."""
_VALUE_CHARS = 160
"""An argument of more is cut in a stub."""


def placeholder(
    window: Window, spot: Location, /, *, why: str = ""
) -> ProposedEdit | None:
    """Ours: a few words and the ref; of arguments, a stub that is still valid JSON."""
    output, words = _kept(window, spot), window.words
    if output is None:
        return None
    match window.transcript.leaf(spot):
        case ToolCall() as call:
            stub = _stub(window, spot, call, output.ref)
            return None if stub is None else _shorter(window, spot, output, stub)
        case Media(mime=mime, kind=kind):
            return _cut(
                window, spot, output, words.media(output.ref, mime or kind), why
            )
        case Text() if window.is_recall(spot):
            return _cut(window, spot, output, PAGE_GONE)
        case Text(text=text):
            return _shorter(window, spot, output, words.placeholder(output.ref, text))
        case _:
            return None


def digests_of(
    window: Window,
    spots: Set[Location],
    *,
    price: int,
    most_chars: int,
    most_share: float,
) -> Mapping[Location, str]:
    """The digest of each result; remembered, for they depend on content alone.

    The newest chooses first, so that what several tell stays where it was told last.

    A line has to earn ``price`` for each character (`ullage.policy.stages.digest`). That is
    doubled, but not without end, while all digests have more than ``most_share`` of the characters
    of all results; one digest has ``most_chars`` at most.
    """
    found = {
        spot: window.transcript.output(spot) for spot in sorted(spots, reverse=True)
    }
    outputs = {spot: output for spot, output in found.items() if output is not None}
    said, told = said_in(window), told_in(window, spots)
    refs = tuple(output.ref for output in outputs.values())
    root = window.transcript.chain[0]
    key = (
        root,
        "digests",
        refs,
        hash(said),
        hash(tuple(told)),
        price,
        most_chars,
        most_share,
    )
    digests: list[str] | None = REMEMBERED.get(key)
    if digests is None:
        known = Known.of(said, told, root)
        readings = [read(output.text, known, price) for output in outputs.values()]
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
) -> ProposedEdit | None:
    """A document's: the first characters, the ref where the marker names none, the marker.

    Left alone is what is not text, what already ends in the marker, and what would not
    become shorter.
    """
    output = _kept(window, spot, again=True)
    if output is None or not isinstance(window.transcript.leaf(spot), Text):
        return None
    text, shown = output.text, _shown(window, spot, output)
    if len(shown) <= retain_chars or shown.endswith(marker):
        return None
    named = ref_line(output.ref, len(text), window.words.file_of(output.ref))
    head = text[: safe_cut(text, retain_chars)]
    return _shorter(window, spot, output, f"{head}\n\n{named}\n{marker}", why)


def bare_placeholder(
    window: Window, spot: Location, /, *, words: str
) -> ProposedEdit | None:
    """A document's: one line with the ref, in place of a whole text, image or file.

    Left alone is what has such a line already, and what would not be shorter with it, in
    characters and in tokens.

    The field of the line is ``ref``.
    """
    output = _kept(window, spot)
    if output is None or not isinstance(window.transcript.leaf(spot), (Text, Media)):
        return None
    line = words.format(ref=output.ref)
    if window.meter.text(line) >= window.leaf_tokens(spot):
        return None
    return _shorter(
        window, spot, output, line, "all outputs together were over their budget"
    )


def _kept(window: Window, spot: Location, *, again: bool = False) -> Output | None:
    """What a leaf is set aside as; None for what cannot be or, but for ``again``, was.

    What a program reads stays whole, and so do the user's words.
    """
    transcript, edit = window.transcript, window.edit_at(spot)
    is_gone = edit is not None and edit.was_sent and not again
    is_programs = transcript.reader(spot[0], spot[1]) == "program"
    is_words = isinstance(transcript.leaf(spot), Text) and transcript.words(
        spot[0], spot[1]
    )
    return None if is_gone or is_programs or is_words else transcript.output(spot)


def _shown(window: Window, spot: Location, output: Output) -> str:
    edit = window.edit_at(spot)
    return output.text if edit is None else edit.text


def _shorter(
    window: Window, spot: Location, output: Output, text: str, why: str = ""
) -> ProposedEdit | None:
    """A cut, if it makes what is shown shorter."""
    is_shorter = len(text) < len(_shown(window, spot, output))
    return _cut(window, spot, output, text, why) if is_shorter else None


def _cut(
    window: Window, spot: Location, output: Output, text: str, why: str = ""
) -> ProposedEdit:
    """A cut. A page of recall is not set aside: the same call makes it again."""
    if not why:
        why = f"it was old, and the view held {window.tokens:,} of {window.limit_tokens:,} tokens"
    size = f"{len(output.text):,} characters" if output.kind == "text" else "a block"
    place, why = window.transcript.address(spot), f"{why}; {size} set aside"
    edit = Replace(place, output.ref, text, "pruned", why)
    return ProposedEdit(edit, () if window.is_recall(spot) else (output,))


def _stub(window: Window, spot: Location, call: ToolCall, ref: str) -> str | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    fields = fields_of(call.arguments)
    if fields is None or window.signed(spot[0]) or window.is_recall(spot):
        return None
    stub = {key: _short(item) for key, item in fields.items()}
    stub["_ullage"] = window.words.arguments(ref, len(call.arguments))
    return canon.canonical_json(stub)


def _short(value: Any) -> Any:
    if isinstance(value, str):
        left = f"[… {len(value) - _VALUE_CHARS // 2:,} characters …]"
        return (
            value
            if len(value) <= _VALUE_CHARS
            else f"{value[: _VALUE_CHARS // 2]}{left}"
        )
    if isinstance(value, (dict, list)):
        chars = len(canon.canonical_json(value))
        return value if chars <= _VALUE_CHARS else f"[… {chars:,} characters of JSON …]"
    return value
