"""Truncate: a tool result too large for its kind is shown in part, before it is first sent.

The cut is a pure function of the result's text, its tool and the settings, so it comes out
the same in every session and needs no record (DESIGN §10). Limits are generous and by kind
of tool (`frontier`: flat limits lose the lines an agent quotes from files).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ullage.edits import Cut, Replace
from ullage.messages import Text
from ullage.notices import RECALL_TOOLS
from ullage.policy import ToolKind, kind_of
from ullage.stages.shorten import shorten
from ullage.transcript import Spot
from ullage.window import Window

__all__ = ["LIMIT_CHARS", "truncate"]

LIMIT_CHARS: Mapping[ToolKind, int] = {
    "shell": 6_000,
    "web": 8_000,
    "other": 8_000,
    "search": 16_000,
    "read": 40_000,
}


def truncate(
    window: Window,
    /,
    *,
    limit_chars: Mapping[ToolKind, int] = LIMIT_CHARS,
    tools: Mapping[str, ToolKind] | None = None,
) -> Sequence[Cut]:
    """Cuts for every fresh result that is over the limit of its kind.

    Args:
        window: the window, extended to the boundary at hand.
        limit_chars: the most characters shown, by kind of tool.
        tools: the kind of a tool whose name does not tell it.
    """
    cuts = []
    for spot in window.results(window.fresh, window.size):
        leaf = window.transcript.leaf(spot)
        if not isinstance(leaf, Text) or len(leaf.text) <= min(limit_chars.values()):
            continue
        tool = window.tool_of(spot)
        if tool.removeprefix(window.words.prefix) in RECALL_TOOLS:
            continue  # what was called back is bounded, and never set aside again (F78)
        kind = (tools or {}).get(tool) or kind_of(tool)
        limit = limit_chars[kind]
        if len(leaf.text) > limit:
            cut = _cut(window, spot, kind, limit)
            if cut is not None:
                cuts.append(cut)
    return cuts


def _cut(window: Window, spot: Spot, kind: ToolKind, limit: int) -> Cut | None:
    output = window.transcript.output(spot)
    if output is None:
        return None
    head_share = 0.4 if kind == "shell" else 0.7
    shown = shorten(output.text, limit, output.ref, window.words, head_share=head_share)
    if shown is None:
        return None
    why = f"{len(output.text):,} characters, over {limit:,} for {kind} tools"
    place = window.transcript.place(spot)
    return Cut(Replace(place, output.ref, shown, "truncated", why), (output,))
