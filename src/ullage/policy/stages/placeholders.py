"""Placeholders: what is shown where an old output or old arguments left the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
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
from ullage.policy.stages.names import (
    KnownNames,
    dialogue_names,
    visible_texts,
)
from ullage.policy.stages.shorten import safe_cut

PAGE_GONE = "[ullage: this page has left the window. Make the same call to read it again.]"
_TRIES = 5
"""A price is doubled less often than this."""
_VALUE_CHARS = 160
"""An argument of more is cut in a stub."""


def placeholder(
    window: Window, spot: Location, /, *, why: str = ""
) -> ProposedEdit | None:
    """Ours: a few words and the ref; of arguments, a stub that is still valid JSON."""
    output = _set_aside(window, spot)
    if output is None:
        return None
    words = window.words
    match window.transcript.leaf(spot):
        case ToolCall() as call:
            stub = _stub(window, spot, call, output.ref)
            if stub is None:
                return None
            return _shorter(window, spot, output, stub)
        case Media(mime=mime, kind=kind):
            line = words.media(output.ref, mime or kind)
            return _cut(window, spot, output, line, why)
        case Text() if window.is_recall(spot):
            return _cut(window, spot, output, PAGE_GONE)
        case Text(text=text):
            line = words.placeholder(output.ref, text)
            return _shorter(window, spot, output, line)
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

    Args:
        window: the window at the boundary at hand.
        spots: the results.
        price: what a line has to earn for each character (`ullage.policy.stages.digest`). It is
            doubled, but not without end, while all digests have more than ``most_share``.
        most_chars: the most characters of one digest.
        most_share: the most of all digests, as a share of the characters of all results.

    Returns:
        What follows the ref of each result that can be set aside.
    """
    outputs = dict[Location, Output]()
    # the newest first: what several tell stays where it was told last
    for spot in sorted(spots, reverse=True):
        output = window.transcript.output(spot)
        if output is not None:
            outputs[spot] = output
    dialogue = dialogue_names(window)
    texts = visible_texts(window, spots)
    root = window.transcript.chain[0]
    key = (
        root,
        "digests",
        tuple(output.ref for output in outputs.values()),
        hash(dialogue),
        hash(tuple(texts)),
        price,
        most_chars,
        most_share,
    )
    digests: list[str] | None = REMEMBERED.get(key)
    if digests is None:
        known = KnownNames.of(dialogue, texts, root)
        originals = [output.text for output in outputs.values()]
        digests = _digests(
            originals,
            known,
            price=price,
            most_chars=most_chars,
            most_share=most_share,
        )
        REMEMBERED.put(key, digests, sum(len(digest) for digest in digests))
    return dict(zip(outputs, digests, strict=True))


def _digests(
    texts: Sequence[str],
    known: KnownNames,
    price: int,
    most_chars: int,
    most_share: float,
) -> list[str]:
    """The digest of each text, at the price at which they have no more than their share."""
    ranked = [read(text, known, price) for text in texts]
    most = sum(len(text) for text in texts) * most_share
    digests = [lines.digest(price, most_chars) for lines in ranked]
    for _ in range(1, _TRIES):
        if sum(len(digest) for digest in digests) <= most:
            break
        price *= 2
        digests = [lines.digest(price, most_chars) for lines in ranked]
    return digests


def head_and_marker(
    window: Window,
    spot: Location,
    /,
    *,
    retain_chars: int,
    marker: str,
    why: str,
) -> ProposedEdit | None:
    """A document's: the first characters, the ref where the marker names none, the marker.

    Left alone is what is not text, what already ends in the marker, and what would not
    become shorter.
    """
    output = _set_aside(window, spot, again=True)
    if output is None or not isinstance(window.transcript.leaf(spot), Text):
        return None
    text = output.text
    shown_text = _shown_text(window, spot, output)
    if len(shown_text) <= retain_chars or shown_text.endswith(marker):
        return None
    head = text[: safe_cut(text, retain_chars)]
    named = ref_line(output.ref, len(text), window.words.file_of(output.ref))
    return _shorter(window, spot, output, f"{head}\n\n{named}\n{marker}", why)


def bare_placeholder(
    window: Window, spot: Location, /, *, words: str
) -> ProposedEdit | None:
    """A document's: one line with the ref, in place of a whole text, image or file.

    Left alone is what has such a line already, and what would not be shorter with it, in
    characters and in tokens.

    The field of the line is ``ref``.
    """
    output = _set_aside(window, spot)
    if output is None or not isinstance(
        window.transcript.leaf(spot), (Text, Media)
    ):
        return None
    line = words.format(ref=output.ref)
    tokens = window.meter.text(line)
    if tokens >= window.leaf_tokens(spot):
        return None
    reason = "all outputs together were over their budget"
    return _shorter(window, spot, output, line, reason)


def _set_aside(
    window: Window, spot: Location, *, again: bool = False
) -> Output | None:
    """What a leaf is set aside as; None for what cannot be or, but for ``again``, was.

    What a program reads stays whole, and so do the user's words.
    """
    transcript = window.transcript
    edit = window.edit_at(spot)
    if edit is not None and edit.was_sent and not again:
        return None
    if transcript.reader(spot[0], spot[1]) == "program":
        return None
    words = transcript.user_words(spot[0], spot[1])
    if words and isinstance(transcript.leaf(spot), Text):
        return None
    return transcript.output(spot)


def _shown_text(window: Window, spot: Location, output: Output) -> str:
    """A leaf as the view has it."""
    edit = window.edit_at(spot)
    return output.text if edit is None else edit.text


def _shorter(
    window: Window,
    spot: Location,
    output: Output,
    text: str,
    reason: str = "",
) -> ProposedEdit | None:
    """A cut, if it makes what is shown shorter."""
    if len(text) >= len(_shown_text(window, spot, output)):
        return None
    return _cut(window, spot, output, text, reason)


def _cut(
    window: Window,
    spot: Location,
    output: Output,
    text: str,
    reason: str = "",
) -> ProposedEdit:
    """A cut. A page of recall is not set aside: the same call makes it again."""
    if not reason:
        tokens = f"{window.tokens:,} of {window.limit_tokens:,} tokens"
        reason = f"it was old, and the view held {tokens}"
    size = "a block"
    if output.kind == "text":
        size = f"{len(output.text):,} characters"
    edit = Replace(
        address=window.transcript.address(spot),
        ref=output.ref,
        text=text,
        kind="pruned",
        why=f"{reason}; {size} set aside",
    )
    return ProposedEdit(edit, () if window.is_recall(spot) else (output,))


def _stub(
    window: Window,
    spot: Location,
    call: ToolCall,
    ref: str,
) -> str | None:
    """Arguments with their long strings left out: the same keys, still valid JSON."""
    fields = fields_of(call.arguments)
    if fields is None:
        return None
    if window.signed(spot[0]) or window.is_recall(spot):
        return None
    stub = {}
    for key, item in fields.items():
        stub[key] = _short(item)
    chars = len(call.arguments)
    stub["_ullage"] = window.words.arguments(ref, chars)
    return canon.canonical_json(stub)


def _short(value: Any) -> Any:
    """An argument in a stub: as it was, or of a long one its beginning or its size."""
    if isinstance(value, str):
        if len(value) <= _VALUE_CHARS:
            return value
        head = value[: _VALUE_CHARS // 2]
        rest_chars = len(value) - len(head)
        return f"{head}[… {rest_chars:,} characters …]"
    if isinstance(value, (dict, list)):
        chars = len(canon.canonical_json(value))
        if chars > _VALUE_CHARS:
            return f"[… {chars:,} characters of JSON …]"
    return value
