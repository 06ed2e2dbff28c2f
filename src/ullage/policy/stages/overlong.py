"""Overlong: a text that is over a limit of its own is cut, however much room the window has.

Providers bound a single text apart from the window (OpenAI: ``string_above_max_length``). The
limit is learnt from a refusal. A result is shown as at first sight, by kind of tool; any other
text as the guard shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from ullage.core.contract.bound import editable_from
from ullage.core.contract.kinds import head_share_of, kind_of
from ullage.core.history import canon
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.limits import TextLimit
from ullage.core.values.messages import ToolCall
from ullage.policy.stages.shorten import shorten, utf8_bytes
from ullage.policy.stages.shrink import texts_of

_MEASURES: Mapping[str, Callable[[str], int]] = {"characters": len, "bytes": utf8_bytes}


def overlong(window: Window, limit: TextLimit) -> Sequence[ProposedEdit]:
    """Cuts of every text that is shown with more than a provider takes of one.

    Args:
        window: the window at the boundary at hand.
        limit: the most of one text.
    """
    editable = editable_from(window)
    kept = [index for index in window.visible if index >= editable]
    measure = _MEASURES[limit.unit]
    spots = [
        spot
        for spot, _ in texts_of(window, kept)
        if measure(_shown(window, spot)) > limit.most
    ]
    cuts = (_cut(window, spot, limit) for spot in spots)
    return [cut for cut in cuts if cut is not None]


def _shown(window: Window, spot: Location) -> str:
    """The text at a spot, as the view has it."""
    edit = window.edit_at(spot)
    if edit is not None:
        return edit.text
    leaf = window.transcript.leaf(spot)
    return (
        leaf.arguments if isinstance(leaf, ToolCall) else str(getattr(leaf, "text", ""))
    )


def _cut(window: Window, spot: Location, limit: TextLimit) -> ProposedEdit | None:
    """A cut of one text to the limit; None where nothing of it may be set aside."""
    output = window.transcript.output(spot)
    if output is None:
        return None
    tool, measure = window.tool_of(spot), _MEASURES[limit.unit]
    original, ref, words = output.text, output.ref, window.words
    if isinstance(window.transcript.leaf(spot), ToolCall):
        shown: str | None = canon.canonical_json(
            {"_ullage": words.arguments(ref, len(original))}
        )
    else:
        most_chars = (
            limit.most * len(original) // max(measure(original), len(original), 1)
        )
        head_share = head_share_of(kind_of(tool))
        shown = shorten(original, most_chars, ref, words, head_share=head_share)
    if shown is None or measure(shown) > limit.most:
        shown = words.aside(ref, len(original))
    why = f"{measure(original):,} {limit.unit} in one text, and the provider takes {limit.most:,}"
    kind: Literal["truncated", "cut"] = "truncated" if tool else "cut"
    edit = Replace(window.transcript.address(spot), ref, shown, kind, why)
    return ProposedEdit(edit, (output,))
