"""Truncate: a tool result too large is shown in part, before it is first sent.

A *shape* says which part: a pure function of the result's text, its tool and its settings, so
that it comes out the same in every session and needs no record (DESIGN §10). Ours is `by_kind`;
the documents' are in `ullage.policy.stages.shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from ullage.core.contract.kinds import (
    LIMIT_CHARS,
    ToolKind,
    head_share_of,
    kind_of,
)
from ullage.core.history import canon
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.effects import Output
from ullage.core.values.messages import Text, ToolResult
from ullage.core.values.notices import Words
from ullage.policy.stages.shorten import shorten
from ullage.policy.stages.squeeze import is_data

SLACK = 1.5
"""How many times its limit a text may have before it is cut to it,"""
DATA_SLACK = 3.0
"""and JSON."""


class Source(NamedTuple):
    """A text of a result as a shape sees it.

    Attributes:
        text: all of it.
        tool: the name of the tool that gave it.
        call_id: the id of the call it answers, for its first item; any other has none.
        earlier_texts: the texts before it in the same result.
        root: the chain of the empty history, another for each tenant.
        output: gives what the text is set aside as, where that is known.
    """

    text: str
    tool: str = ""
    call_id: str = ""
    earlier_texts: tuple[str, ...] = ()
    root: bytes = b""
    output: Callable[[], Output | None] = lambda: None

    @property
    def ref(self) -> str:
        """What opens the original."""
        output = self.output()
        return output.ref if output else canon.ref_of(self.text)


class TextSize(NamedTuple):
    """How much text there is: lines, as line feeds part them, and bytes of UTF-8."""

    lines: int
    bytes: int


class ShownExtent(NamedTuple):
    """How much of a result is shown.

    Attributes:
        original: the size of the original.
        excerpt: the size of what is shown of it.
        notice: the document's notice at the end; None if lines were cut and nothing else.
    """

    original: TextSize
    excerpt: TextSize
    notice: str | None = None


class ResultView(NamedTuple):
    """What is shown in a result's place.

    Attributes:
        text: what is shown.
        reason: why, with its numbers.
        extent: how much of the result that is, if known.
    """

    text: str
    reason: str
    extent: ShownExtent | None = None

    @property
    def left_out_bytes(self) -> int:
        """Bytes of the original that are not shown; 0 where the shape does not say."""
        extent = self.extent
        if extent is None:
            return 0
        return max(extent.original.bytes - extent.excerpt.bytes, 0)


Shape: TypeAlias = Callable[[Source, Words], ResultView | None]
"""Says what is shown in place of a result; None if it may stay whole."""


def by_kind(
    source: Source,
    words: Words,
    /,
    *,
    limit_chars: Mapping[ToolKind, int] = LIMIT_CHARS,
    slack: float = SLACK,
    data_slack: float = DATA_SLACK,
) -> ResultView | None:
    """Our own shape: head, tail and error lines, or smaller JSON, by kind of tool.

    Limits are generous, for flat ones lose the lines that an agent quotes from files (`frontier`).
    What is little over its limit is not cut: the middle that it would lose is asked for as often as
    the rest, and a page of it costs more than it would.

    Args:
        source: the text.
        words: the wording of the notice.
        limit_chars: the most characters shown of what is cut, by kind of tool.
        slack: nothing is cut that has at most so many times the limit.
        data_slack: the same of JSON, as it came or as a table.

    Returns:
        What is shown in its place; None where it stays whole.
    """
    chars = len(source.text)
    if chars <= min(limit_chars.values()):
        return None
    kind = kind_of(source.tool)
    limit = limit_chars[kind]
    head_share = head_share_of(kind)
    whole_chars = int(limit * slack)
    if chars > whole_chars and is_data(source.text):
        whole_chars = int(limit * data_slack)
    if chars <= whole_chars:
        return None
    # a pure function of these, so its result may be remembered between sessions
    ref = source.ref
    key = source.root, ref, limit, whole_chars, words, head_share
    view: str | None = REMEMBERED.get(key)
    if view is None:
        shorter = shorten(
            source.text,
            limit,
            ref,
            words,
            head_share=head_share,
            tables=True,
            whole_chars=whole_chars,
        )
        view = shorter or ""  # that none is shorter is remembered too
        REMEMBERED.put(key, view, len(view))
    if not view:
        return None
    reason = f"{chars:,} characters, over {limit:,} for {kind} tools"
    return ResultView(view, reason)


def truncate(
    window: Window, /, *, shape: Shape = by_kind
) -> Sequence[ProposedEdit]:
    """Cuts for every fresh result that its shape does not leave whole.

    Args:
        window: the window at the boundary at hand.
        shape: what is shown of a result.
    """
    cuts = []
    for spot in window.results(window.fresh, window.size):
        if spot in window.replaced_later:
            continue
        cut = cut_by(window, spot, shape)
        if cut is not None:
            cuts.append(cut)
    return cuts


def cut_by(
    window: Window, spot: Location, shape: Shape
) -> ProposedEdit | None:
    """The cut of one result, or None where its shape leaves it whole."""
    transcript = window.transcript
    index, number, item = spot
    result = transcript.messages[index].parts[number]
    leaf = transcript.leaf(spot)
    if not isinstance(leaf, Text) or not isinstance(result, ToolResult):
        return None
    # what was recalled is bounded, and never set aside again (F78)
    if window.is_recall(spot):
        return None
    earlier = [
        part.text for part in result.content[:item] if isinstance(part, Text)
    ]
    find_output = partial(transcript.output, spot)
    source = Source(
        text=leaf.text,
        tool=window.tool_of(spot),
        call_id="" if item else result.call_id,
        earlier_texts=tuple(earlier),
        root=transcript.chain[0],
        output=find_output,
    )
    view = shape(source, window.words)
    if view is None:
        return None
    output = find_output()
    if output is None:
        return None
    edit = Replace(
        address=transcript.address(spot),
        ref=output.ref,
        text=view.text,
        kind="truncated",
        why=view.reason,
        left_out_bytes=view.left_out_bytes,
    )
    return ProposedEdit(edit, (output,))
