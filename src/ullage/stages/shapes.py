"""Shapes of the documents: what is shown of a result that is too large at first sight.

Nothing is copied while nothing is cut. Words come as templates from the preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ullage.stages.shorten import safe_cut
from ullage.stages.truncate import Extent, Shown, Source, TextSize
from ullage.values.notices import Words, ref_line

__all__ = ["DEFAULT_TOOL", "head_chars", "head_lines", "size_of", "text_size", "utf8_bytes"]

DEFAULT_TOOL = "default"
"""The key of the limit of every tool that has none of its own."""

_STEP_CHARS = 1 << 20
_KB = 1024
_MOST_BYTES = 4
"""The most bytes of UTF-8 that a character takes."""


def head_chars(
    source: Source, words: Words, /, *, limit_chars: int, marker: str, bare: str
) -> Shown | None:
    """The first characters, the ref, and a marker that names the call to read on with.

    Args:
        source: the result.
        words: the wording of the session.
        limit_chars: characters shown of a result that has more.
        marker: the last line. Fields: ``shown``, ``total``, ``call_id`` (the ref where there
            is none), ``prefix``.
        bare: the last line where no recall tool is offered. Fields: ``shown``, ``total``.
    """
    total = len(source.text)
    if total <= limit_chars:
        return None
    shown = safe_cut(source.text, limit_chars)
    last = (marker if words.recall else bare).format(
        shown=shown, total=total, call_id=source.call_id or source.ref, prefix=words.prefix
    )
    text = f"{source.text[:shown]}\n{ref_line(source.ref, total)}\n{last}"
    why = f"{total:,} characters, over {limit_chars:,}"
    return Shown(text, why) if len(text) < total else None


def head_lines(
    source: Source,
    words: Words,
    /,
    *,
    max_bytes: int,
    max_line_chars: int,
    notice: str,
    max_lines: int | None = None,
    tool_chars: Mapping[str, int] | None = None,
    ellipsis: str = "",
    spilled: str = "",
    lines_notice: str | None = None,
) -> Shown | None:
    """The first whole lines, each cut to a length, up to a number of lines and of bytes.

    A result within the limits keeps all its lines, but each is cut to the length. Where
    neither the notice nor a file names the ref, a line before the notice does. None where
    nothing is over a limit, or what is shown would not be shorter.

    Args:
        source: the result.
        words: the wording of the session, and where outputs are kept as files.
        max_bytes: of UTF-8, shown of all texts of a result together, newlines included.
        max_line_chars: characters shown of a line.
        notice: what is at the end. Fields: see `_ended`.
        max_lines: lines shown.
        tool_chars: characters shown, by tool; `DEFAULT_TOOL` for all others.
        ellipsis: what is added to a line that was cut.
        spilled: what follows the notice if the output is kept as a file. Field: ``path``.
        lines_notice: what is at the end where lines were cut and nothing else; None: the
            line that names the ref. Field: ``ref``.
    """
    text, limits = source.text, tool_chars or {}
    max_bytes = max(max_bytes - sum(map(utf8_bytes, source.before)), 0)
    limit_chars = limits.get(source.tool, limits.get(DEFAULT_TOOL, len(text)))
    if not _over(text, max_lines, max_bytes, limit_chars):
        return _lines_cut(source, words, max_line_chars, ellipsis, lines_notice)
    lines = islice(_clipped_lines(text, max_line_chars, ellipsis), max_lines)
    body = "\n".join(_as_many(lines, max_bytes))
    return _ended(source, words, body[: safe_cut(body, limit_chars)], notice, spilled)


def _ended(source: Source, words: Words, body: str, notice: str, spilled: str) -> Shown | None:
    """A body with the notice behind it, or None where that is no shorter than the text.

    Fields of the notice: ``lines``, ``kept_lines``, ``size`` and ``kept_size`` (as text), ``ref``.
    """
    whole, kept = text_size(source.text), text_size(body) if body else TextSize(0, 0)
    last = notice.format(
        lines=whole.lines,
        kept_lines=kept.lines,
        size=size_of(whole.bytes),
        kept_size=size_of(kept.bytes),
        ref=source.ref,
    )
    file = words.file_of(source.ref)
    if file is not None:
        last += spilled.format(path=file)
    named = "" if source.ref in last else ref_line(source.ref, len(source.text)) + "\n"
    shown = f"{body}\n\n{named}{last}"
    why = f"{whole.lines:,} lines, {whole.bytes:,} bytes; shown {kept.lines:,} and {kept.bytes:,}"
    return Shown(shown, why, Extent(whole, kept, last)) if len(shown) < len(source.text) else None


def _over(text: str, max_lines: int | None, max_bytes: int, limit_chars: int) -> bool:
    """Whether a text is over a limit; its bytes are counted only where they decide."""
    chars = len(text)
    if chars > min(limit_chars, max_bytes):
        return True
    if chars * _MOST_BYTES > max_bytes and utf8_bytes(text) > max_bytes:
        return True
    return max_lines is not None and chars >= max_lines and text.count("\n") >= max_lines


def _lines_cut(
    source: Source, words: Words, max_line_chars: int, ellipsis: str, notice: str | None
) -> Shown | None:
    """All lines, each cut to a length; None if that changes nothing or wins nothing."""
    text = source.text
    longest = _longest_line(text, max_line_chars)
    if longest <= max_line_chars:
        return None
    body = "\n".join(_clipped_lines(text, max_line_chars, ellipsis))
    if notice is None:
        last = f"\n{ref_line(source.ref, len(text), words.file_of(source.ref))}"
    else:
        last = f"\n\n{notice.format(ref=source.ref)}"
    shown = f"{body}{last}"
    why = f"a line of {longest:,} characters, over {max_line_chars:,}"
    extent = Extent(text_size(text), text_size(body))
    return Shown(shown, why, extent) if len(shown) < len(text) else None


def _longest_line(text: str, enough: int) -> int:
    """Characters of the longest line; 0 for a text too short to have one over ``enough``."""
    longest, start = 0, 0
    while len(text) - start > max(longest, enough):
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        longest = max(longest, stop - start)
        start = stop + 1
    return longest


def _clipped_lines(text: str, chars: int, ellipsis: str) -> Iterator[str]:
    """The lines of a text, each cut to a length, none made before it is wanted."""
    start, end = 0, 0
    while end >= 0:
        end = text.find("\n", start)
        line = text[start : min(len(text) if end < 0 else end, start + chars + 1)]
        yield line if len(line) <= chars else line[: safe_cut(line, chars)] + ellipsis
        start = end + 1


def _as_many(lines: Iterable[str], max_bytes: int) -> Iterator[str]:
    """The first lines that fit, each with its newline."""
    for line in lines:
        max_bytes -= utf8_bytes(line) + 1
        if max_bytes < 0:
            return
        yield line


def text_size(text: str) -> TextSize:
    """The lines and the bytes of a text."""
    return TextSize(text.count("\n") + 1, utf8_bytes(text))


def utf8_bytes(text: str) -> int:
    """Bytes of a text as UTF-8, counted piece by piece; a lone surrogate counts as three."""
    if text.isascii():
        return len(text)
    pieces = (text[at : at + _STEP_CHARS] for at in range(0, len(text), _STEP_CHARS))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


def size_of(count: int) -> str:
    """A number of bytes as people read it: ``512B``, ``1.5KB``, ``2.0MB``.

    Halves are rounded up, as the three-layer document's language does.
    """
    if count < _KB:
        return f"{count}B"
    unit, name = (_KB, "KB") if count < _KB * _KB else (_KB * _KB, "MB")
    tenths = (count * 10 + unit // 2) // unit
    return f"{tenths // 10}.{tenths % 10}{name}"
