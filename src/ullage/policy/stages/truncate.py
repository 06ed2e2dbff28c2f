"""Truncate: a tool result too large is shown in part, before it is first sent.

A *shape* says which part: a pure function of the result's text, its tool and its settings, so
that it comes out the same in every session and needs no record (DESIGN §10). Ours is `by_kind`;
the documents' are in `ullage.policy.stages.shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from ullage.core.contract.kinds import LIMIT_CHARS, ToolKind, head_share_of, kind_of
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

SLACK, DATA_SLACK = 1.5, 3.0
"""How many times its limit a text may have, and JSON, before it is cut to it."""


class Source(NamedTuple):
    """A text of a result as a shape sees it.

    Attributes:
        text: all of it.
        tool: the name of the tool that gave it.
        call_id: the id of the call it answers, for its first item; any other has none.
        before: the texts before it in the same result.
        root: the chain of the empty history, another for each tenant.
        output: gives what the text is set aside as, where that is known.
    """

    text: str
    tool: str = ""
    call_id: str = ""
    before: tuple[str, ...] = ()
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


class Extent(NamedTuple):
    """How much of a result is shown.

    Attributes:
        whole: the size of the original.
        kept: the size of what of it is shown.
        notice: the document's notice at the end; None if lines were cut and nothing else.
    """

    whole: TextSize
    kept: TextSize
    notice: str | None = None


class Shown(NamedTuple):
    """What is shown in a result's place, why, with its numbers, and its extent if known."""

    text: str
    why: str
    extent: Extent | None = None

    @property
    def left_out_bytes(self) -> int:
        """Bytes of the original that are not shown; 0 where the shape does not say."""
        of = self.extent
        return 0 if of is None else max(of.whole.bytes - of.kept.bytes, 0)


Shape: TypeAlias = Callable[[Source, Words], Shown | None]
"""Says what is shown in place of a result; None if it may stay whole."""


def by_kind(
    source: Source,
    words: Words,
    /,
    *,
    limit_chars: Mapping[ToolKind, int] = LIMIT_CHARS,
    slack: float = SLACK,
    data_slack: float = DATA_SLACK,
) -> Shown | None:
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
    """
    chars = len(source.text)
    if chars <= min(limit_chars.values()):
        return None
    kind = kind_of(source.tool)
    limit, head_share = limit_chars[kind], head_share_of(kind)
    whole_chars = int(limit * slack)
    if chars > whole_chars and is_data(source.text):
        whole_chars = int(limit * data_slack)
    if chars <= whole_chars:
        return None
    ref = source.ref
    key = source.root, ref, limit, whole_chars, words, head_share
    shown: str | None = REMEMBERED.get(key)
    if shown is None:
        view = shorten(
            source.text,
            limit,
            ref,
            words,
            head_share=head_share,
            tables=True,
            whole_chars=whole_chars,
        )
        shown = view or ""
        REMEMBERED.put(key, shown, len(shown))
    why = f"{chars:,} characters, over {limit:,} for {kind} tools"
    return Shown(shown, why) if shown else None


def truncate(window: Window, /, *, shape: Shape = by_kind) -> Sequence[ProposedEdit]:
    """Cuts for every fresh result that its shape does not leave whole."""
    fresh = window.results(window.fresh, window.size)
    cuts = (
        cut_by(window, spot, shape)
        for spot in fresh
        if spot not in window.replaced_later
    )
    return [cut for cut in cuts if cut is not None]


def cut_by(window: Window, spot: Location, shape: Shape) -> ProposedEdit | None:
    """The cut of one result, or None where its shape leaves it whole."""
    transcript, tool, (index, number, item) = (
        window.transcript,
        window.tool_of(spot),
        spot,
    )
    result, leaf = transcript.messages[index].parts[number], transcript.leaf(spot)
    if not isinstance(leaf, Text) or not isinstance(result, ToolResult):
        return None
    if window.is_recall(spot):  # it is bounded, and never set aside again (F78)
        return None
    before = tuple(
        part.text for part in result.content[:item] if isinstance(part, Text)
    )
    call_id = "" if item else result.call_id
    known = partial(transcript.output, spot)
    source = Source(leaf.text, tool, call_id, before, transcript.chain[0], known)
    shown = shape(source, window.words)
    if shown is None or (output := known()) is None:
        return None
    place, left_out = transcript.address(spot), shown.left_out_bytes
    edit = Replace(place, output.ref, shown.text, "truncated", shown.why, left_out)
    return ProposedEdit(edit, (output,))
