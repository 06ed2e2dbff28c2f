"""Pages of a text: by character, and by line with numbers.

What comes back is bounded, says honestly which part of how much it is, and never moves in
place of its text: joined in order, the pages are the original (failures F77, F78, F89).
"""

from __future__ import annotations

from ullage.desk import OURS
from ullage.notices import Words
from ullage.stages.shorten import safe_cut

__all__ = ["by_character", "by_line"]

LINE_CHARS = 2_000


def by_character(
    text: str,
    ref: str,
    offset: int,
    words: Words,
    page_chars: int = OURS.page_chars,
    asked: str | None = None,
) -> str:
    """The page that begins at character ``offset``; its last line says where to read on.

    ``asked`` is what the call named, if not the ref. The last page has no such line.
    ``offset`` beyond the end gives a sentence that says so.
    """
    offset = max(offset, 0)
    if offset >= len(text) > 0:
        return f"[nothing after character {len(text):,}: the output ends there]"
    stop = safe_cut(text, offset + page_chars)
    stop = stop if stop > offset else min(offset + page_chars, len(text))
    if stop >= len(text):
        return text[offset:]
    return f"{text[offset:stop]}\n{words.more(ref, offset, stop, len(text), asked)}"


def by_line(text: str, ref: str, offset: int, limit: int, words: Words) -> str:
    """Up to ``limit`` lines after the first ``offset``: number, tab, text.

    Numbers start at 1. A line over 2,000 characters is cut and says how to read it whole. The
    page ends early at 8,000 characters; a last line in brackets says what there is beyond.
    """
    lines = text.split("\n")
    start = max(offset, 0)
    wanted = lines[start : start + max(limit, 1)]
    if not wanted:
        return f"[no line {start + 1:,}: the output has {len(lines):,} lines]"
    at = sum(len(line) + 1 for line in lines[:start])
    shown: list[str] = []
    room = words.desk.page_chars
    for number, line in enumerate(wanted, start + 1):
        page = f"{number:>6}\t{_clipped(line, ref, at, words)}"
        room -= len(page) + 1
        if room < 0 and shown:
            break
        shown.append(page)
        at += len(line) + 1
    stop = start + len(shown)
    if stop < len(lines):
        shown.append(f"[lines {start + 1:,} to {stop:,} of {len(lines):,}. Next: offset={stop}]")
    return "\n".join(shown)


def _clipped(line: str, ref: str, at: int, words: Words) -> str:
    if len(line) <= LINE_CHARS:
        return line
    stop = safe_cut(line, LINE_CHARS)
    return (
        f"{line[:stop]} [… {len(line) - stop:,} more characters: {words.read_on(ref, at + stop)}]"
    )
