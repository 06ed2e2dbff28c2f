"""Shapes of the documents: what is shown of a result that is too large at first sight.

head_chars    the first characters, and a marker that names the call to read on with
head_lines    the first lines, by lines, bytes, line length and characters by tool

Nothing is copied while nothing is cut. Words come as templates from the preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ullage.notices import Words, ref_line
from ullage.stages.shorten import safe_cut
from ullage.stages.truncate import Shown, Source

__all__ = ["DEFAULT_TOOL", "head_chars", "head_lines", "size_of", "utf8_bytes"]

DEFAULT_TOOL = "default"
"""The key of the limit of every tool that has none of its own."""

_STEP_CHARS = 1 << 20


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
    if len(text) >= total:
        return None
    return Shown(text, f"{total:,} characters, over {limit_chars:,}")


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
    spill_directory: str | None = None,
    spilled: str = "",
) -> Shown | None:
    """The first whole lines, each cut to a length, up to a number of lines and of bytes.

    A result within the limits keeps all its lines, but each is cut to the length. Where the
    notice does not name the ref or the file, a line before it does.

    Args:
        source: the result.
        words: the wording of the session.
        max_bytes: bytes of UTF-8 shown, each line's newline included.
        max_line_chars: characters shown of a line.
        notice: what stands at the end. Fields: ``lines``, ``kept_lines``, ``size`` and
            ``kept_size`` (as text), ``ref``.
        max_lines: lines shown.
        tool_chars: characters shown, by tool; `DEFAULT_TOOL` for all others.
        ellipsis: what is added to a line that was cut.
        spill_directory: where the output can be read as a file.
        spilled: what follows the notice if there is such a file, for an output over
            ``max_bytes``. Field: ``path``.
    """
    text, chars = source.text, len(source.text)
    limits = tool_chars or {}
    limit_chars = limits.get(source.tool, limits.get(DEFAULT_TOOL, chars))
    whole = _Size(text.count("\n") + 1, chars if text.isascii() else utf8_bytes(text))
    over = whole.bytes > max_bytes or chars > limit_chars
    if not over and (max_lines is None or whole.lines <= max_lines):
        return _cut_lines(source, max_line_chars, ellipsis)
    most = whole.lines if max_lines is None else max_lines
    lines = (_clipped(line, max_line_chars, ellipsis) for line in _lines_of(text, max_line_chars))
    body = "\n".join(_as_many(islice(lines, most), max_bytes))
    body = body[: safe_cut(body, limit_chars)]
    kept = _Size(body.count("\n") + 1 if body else 0, utf8_bytes(body))
    told = notice.format(
        lines=whole.lines,
        kept_lines=kept.lines,
        size=size_of(whole.bytes),
        kept_size=size_of(kept.bytes),
        ref=source.ref,
    )
    if spill_directory is not None and whole.bytes > max_bytes:
        told += spilled.format(path=f"{spill_directory}/{source.ref}.txt")
    if source.ref not in told:
        told = f"{ref_line(source.ref, chars)}\n{told}"
    shown = f"{body}\n\n{told}"
    why = f"{whole.lines:,} lines, {whole.bytes:,} bytes; shown {kept.lines:,} and {kept.bytes:,}"
    return Shown(shown, why) if len(shown) < chars else None


class _Size(NamedTuple):
    lines: int
    bytes: int


def _cut_lines(source: Source, max_line_chars: int, ellipsis: str) -> Shown | None:
    """All lines, each cut to a length; None if that changes nothing or wins nothing."""
    text = source.text
    if len(text) <= max_line_chars:
        return None
    lines = text.split("\n")
    if max(map(len, lines)) <= max_line_chars:
        return None
    shown = "\n".join(_clipped(line, max_line_chars, ellipsis) for line in lines)
    shown += f"\n{ref_line(source.ref, len(text))}"
    why = f"a line of {max(map(len, lines)):,} characters, over {max_line_chars:,}"
    return Shown(shown, why) if len(shown) < len(text) else None


def _clipped(line: str, max_line_chars: int, ellipsis: str) -> str:
    if len(line) <= max_line_chars:
        return line
    return line[: safe_cut(line, max_line_chars)] + ellipsis


def _lines_of(text: str, chars: int) -> Iterator[str]:
    """The lines of a text, none made before it is wanted, of a long one ``chars`` and one more."""
    start = 0
    while True:
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        yield text[start : min(stop, start + chars + 1)]
        if end < 0:
            return
        start = end + 1


def _as_many(lines: Iterable[str], max_bytes: int) -> Iterator[str]:
    """The first lines that fit, each with its newline."""
    for line in lines:
        max_bytes -= utf8_bytes(line) + 1
        if max_bytes < 0:
            return
        yield line


def utf8_bytes(text: str) -> int:
    """Bytes of a text as UTF-8, counted piece by piece; a lone surrogate counts as three."""
    if text.isascii():
        return len(text)
    pieces = (text[at : at + _STEP_CHARS] for at in range(0, len(text), _STEP_CHARS))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


def size_of(count: int) -> str:
    """A number of bytes as people read it: ``512B``, ``1.5KB``, ``2.0MB``."""
    if count < 1024:
        return f"{count}B"
    if count < 1024 * 1024:
        return f"{count / 1024:.1f}KB"
    return f"{count / (1024 * 1024):.1f}MB"
