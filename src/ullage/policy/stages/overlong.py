"""Overlong: a text that is over a limit of its own is cut, however much room the window has.

Providers bound a single text apart from the window (OpenAI: ``string_above_max_length``). The
limit is learnt from a refusal. A result is shown as on arrival, by kind of tool; any other
text as the guard shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ullage.core.contract.bound import editable_from
from ullage.core.contract.kinds import head_share_of, kind_of
from ullage.core.history import canon
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.effects import Output
from ullage.core.values.limits import TextLimit
from ullage.core.values.messages import ToolCall
from ullage.policy.stages.shorten import shorten, utf8_bytes
from ullage.policy.stages.shrink import texts_of

_MEASURES: Mapping[str, Callable[[str], int]] = {
    "characters": len,
    "bytes": utf8_bytes,
}
"""How long a text is, by the unit of a provider's limit."""


def overlong(window: Window, limit: TextLimit) -> Sequence[ProposedEdit]:
    """Cuts of every text that is shown with more than a provider takes of one.

    Args:
        window: the window at the boundary at hand.
        limit: the most of one text.
    """
    editable = editable_from(window)
    messages = [index for index in window.visible if index >= editable]
    measure = _MEASURES[limit.unit]
    cuts = []
    for spot, _ in texts_of(window, messages):
        size = measure(_shown(window, spot))
        if size <= limit.most:
            continue
        cut = _cut(window, spot, limit)
        if cut is not None:
            cuts.append(cut)
    return cuts


def _shown(window: Window, spot: Location) -> str:
    """The text at a spot, as the view has it."""
    edit = window.edit_at(spot)
    if edit is not None:
        return edit.text
    leaf = window.transcript.leaf(spot)
    if isinstance(leaf, ToolCall):
        return leaf.arguments
    return str(getattr(leaf, "text", ""))


def _cut(
    window: Window, spot: Location, limit: TextLimit
) -> ProposedEdit | None:
    """A cut of one text to the limit; None where nothing of it may be set aside."""
    output = window.transcript.output(spot)
    if output is None:
        return None
    original = output.text
    measure = _MEASURES[limit.unit]
    text = _excerpt(window, spot, output, limit)
    # its ref alone is the least that may be shown
    if text is None or measure(text) > limit.most:
        text = window.words.aside(output.ref, len(original))
    reason = (
        f"{measure(original):,} {limit.unit} in one text, "
        f"and the provider takes {limit.most:,}"
    )
    is_result = bool(window.tool_of(spot))
    edit = Replace(
        address=window.transcript.address(spot),
        ref=output.ref,
        text=text,
        kind="truncated" if is_result else "cut",
        why=reason,
    )
    return ProposedEdit(edit, (output,))


def _excerpt(
    window: Window,
    spot: Location,
    output: Output,
    limit: TextLimit,
) -> str | None:
    """What is shown of a text; of arguments, that they are set aside."""
    original = output.text
    if isinstance(window.transcript.leaf(spot), ToolCall):
        notice = window.words.arguments(output.ref, len(original))
        return canon.canonical_json({"_ullage": notice})
    chars = len(original)
    size = _MEASURES[limit.unit](original)
    return shorten(
        original,
        limit.most * chars // max(size, chars, 1),
        output.ref,
        window.words,
        head_share=head_share_of(kind_of(window.tool_of(spot))),
    )
