"""Pages of an output: by character, and by line with numbers.

What comes back is bounded, says honestly which part of how much it is, and never moves in
place of its text: joined in order, the pages are the original (failures F77, F78, F89). A page
reads the chunks it lies in, and the one in which its last line ends.
"""

from __future__ import annotations

from ullage.core.values.effects import Steps
from ullage.core.values.notices import Words
from ullage.core.values.toolset import OURS
from ullage.policy.stages.shorten import safe_cut
from ullage.session.recall.source import OutputReader

LINE_CHARS = 2_000
_BEFORE_CHARS = 1_100
"""`safe_cut` looks at no more than so many characters before a place."""


def numbered(number: int, text: str, mark: str = "") -> str:
    """A line as the recall tools show it, the one form there is: number, mark, tab, text.

    The mark of a search is ``:`` for a match and ``-`` for context.
    """
    return f"{number:>6}{mark}\t{text}"


def characters(
    source: OutputReader,
    offset: int | None,
    words: Words,
    page_chars: int = OURS.page_chars,
    reference: str | None = None,
) -> Steps[str]:
    """The page that begins at character ``offset``; its last line says where to read on.

    ``reference`` is what the call named, if not the ref. The last page has no such line.
    ``offset`` beyond the end gives a sentence that says so. None: where the beginning that
    the toolset takes for shown ends, at a whole character as it was shown.
    """
    if offset is None:
        offset = yield from _safe_cut(source, words.toolset.first_offset)
    offset = max(offset, 0)
    if offset >= source.chars > 0:
        return f"[nothing after character {source.chars:,}: the output ends there]"
    target = min(offset + page_chars, source.chars)
    stop = yield from _safe_cut(source, target)
    if stop <= offset:
        # no safe cut in reach: the page ends where it has to
        stop = target
    page = yield from source.span(offset, stop)
    if stop >= source.chars:
        return page
    more = words.more(source.ref, offset, stop, source.chars, reference)
    return f"{page}\n{more}"


def lines(
    source: OutputReader,
    offset: int,
    limit: int,
    words: Words,
    page_chars: int = OURS.page_chars,
) -> Steps[str]:
    """Up to ``limit`` lines after the first ``offset``: number, tab, text.

    Numbers start at 1. A line over 2,000 characters is cut and says how to read it whole. The
    page ends early at ``page_chars``; a last line in brackets says what there is beyond.
    """
    total = source.line_count
    start = max(offset, 0)
    if start >= total:
        return f"[no line {start + 1:,}: the output has {total:,} lines]"
    begin = yield from source.line_start(start)
    rows: list[str] = []
    room_chars = page_chars
    last = min(start + max(limit, 1), total)
    for number in range(start + 1, last + 1):
        end = yield from source.newline_from(begin)
        text = yield from _clip(source, begin, end, words)
        row = numbered(number, text)
        room_chars -= len(row) + 1
        # the first line is shown whatever its length
        if room_chars < 0 and rows:
            break
        rows.append(row)
        begin = end + 1
    stop = start + len(rows)
    if stop < total:
        shown = f"lines {start + 1:,} to {stop:,} of {total:,}"
        rows.append(f"[{shown}. Next: offset={stop}]")
    return "\n".join(rows)


def _clip(
    source: OutputReader, start: int, end: int, words: Words
) -> Steps[str]:
    """The line from ``start`` to ``end``, or its beginning and how to read on."""
    text = yield from source.span(start, min(end, start + LINE_CHARS + 1))
    if end - start <= LINE_CHARS:
        return text
    stop = safe_cut(text, LINE_CHARS)
    beginning = text[:stop]
    more = end - start - stop
    call = words.read_on(source.ref, start + stop)
    return f"{beginning} [… {more:,} more characters: {call}]"


def _safe_cut(source: OutputReader, at: int) -> Steps[int]:
    """`safe_cut` at a place of the whole."""
    base = max(at - _BEFORE_CHARS, 0)
    near = yield from source.span(base, at + 1)
    return base + safe_cut(near, at - base)
