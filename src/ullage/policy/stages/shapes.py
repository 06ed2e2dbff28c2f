"""Shapes of the documents: what is shown of a result that is too large on arrival.

Nothing is copied while nothing is cut. Words come as templates from the preset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from ullage.core.values.notices import Words, ref_line
from ullage.policy.stages.shorten import safe_cut, utf8_bytes
from ullage.policy.stages.truncate import (
    ResultView,
    ShownExtent,
    Source,
    TextSize,
)

DEFAULT_TOOL = "default"
"""The key of the limit of every tool that has none of its own."""

_KB = 1024
_MOST_BYTES = 4
"""The most bytes of UTF-8 that a character takes."""
_NOTICE_CHARS = 400
_VALUE = re.compile(r"[ \t\r\n]*[\[{]")
_Value: TypeAlias = list[msgspec.Raw] | dict[str, msgspec.Raw]
_decoder: msgspec.json.Decoder[_Value] = msgspec.json.Decoder(_Value)


def head_chars(
    source: Source,
    words: Words,
    /,
    *,
    limit_chars: int,
    marker: str,
    bare: str,
) -> ResultView | None:
    """The first characters, the ref, and a marker that names the call to read on with.

    Fields of ``marker``: ``shown``, ``total``, ``call_id`` (the ref where there is none) and
    ``prefix``. ``bare`` stands in its place where no recall tool is offered: ``shown``, ``total``.
    """
    total = len(source.text)
    if total <= limit_chars:
        return None
    head_stop = safe_cut(source.text, limit_chars)
    template = marker if words.recall else bare
    marker_line = template.format(
        shown=head_stop,
        total=total,
        call_id=source.call_id or source.ref,
        prefix=words.prefix,
    )
    head = source.text[:head_stop]
    text = f"{head}\n{ref_line(source.ref, total)}\n{marker_line}"
    if len(text) >= total:
        return None
    return ResultView(text, f"{total:,} characters, over {limit_chars:,}")


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
) -> ResultView | None:
    """The first whole lines, each cut to a length, up to a number of lines and of bytes.

    A result within the limits keeps all its lines, but each is cut to the length. Where
    neither the notice nor a file names the ref, a line before the notice does. None where
    nothing is over a limit, or what is shown would not be shorter.

    Args:
        source: the result.
        words: the wording of the session, and where outputs are kept as files.
        max_bytes: of UTF-8, of all texts of a result together, newlines included.
        max_line_chars: characters of a line, before the ``ellipsis``.
        notice: what is at the end. Fields: see `_ended`.
        max_lines: lines shown.
        tool_chars: characters shown, by tool; `DEFAULT_TOOL` for all others.
        ellipsis: what is added to a line that was cut.
        spilled: what follows the notice if the output is kept as a file. Field: ``path``.
        lines_notice: what is at the end where lines were cut and nothing else; None: the
            line that names the ref. Field: ``ref``.
    """
    text = source.text
    limits = tool_chars or {}
    earlier_bytes = sum(
        utf8_bytes(earlier) for earlier in source.earlier_texts
    )
    max_bytes = max(max_bytes - earlier_bytes, 0)
    limit_chars = limits.get(source.tool, limits.get(DEFAULT_TOOL, len(text)))
    if not _over(text, max_lines, max_bytes, limit_chars):
        return _lines_cut(
            source,
            words,
            max_line_chars=max_line_chars,
            ellipsis=ellipsis,
            notice=lines_notice,
        )
    # lazily: of a huge text only the lines that fit are made
    lines = islice(_clipped_lines(text, max_line_chars, ellipsis), max_lines)
    body = "\n".join(_as_many(lines, max_bytes))
    body = body[: safe_cut(body, limit_chars)]
    return _ended(source, words, body, notice, spilled)


def _ended(
    source: Source,
    words: Words,
    body: str,
    notice: str,
    spilled: str,
) -> ResultView | None:
    """A body with the notice behind it, or None where that is no shorter than the text.

    Fields of the notice: ``lines``, ``kept_lines``, ``size`` and ``kept_size`` (as text), ``ref``.
    """
    text = source.text
    original = text_size(text)
    excerpt = text_size(body) if body else TextSize(0, 0)
    ending = notice.format(
        lines=original.lines,
        kept_lines=excerpt.lines,
        size=size_of(original.bytes),
        kept_size=size_of(excerpt.bytes),
        ref=source.ref,
    )
    file = words.file_of(source.ref)
    if file is not None:
        ending += spilled.format(path=file)
    named = ""
    if source.ref not in ending:
        named = f"{ref_line(source.ref, len(text))}\n"
    view = f"{body}\n\n{named}{ending}"
    if len(view) >= len(text):
        return None
    reason = (
        f"{original.lines:,} lines, {original.bytes:,} bytes; "
        f"shown {excerpt.lines:,} and {excerpt.bytes:,}"
    )
    return ResultView(view, reason, ShownExtent(original, excerpt, ending))


def _over(
    text: str,
    max_lines: int | None,
    max_bytes: int,
    limit_chars: int,
) -> bool:
    """Whether a text is over a limit; its bytes are counted only where they decide."""
    chars = len(text)
    if chars > min(limit_chars, max_bytes):
        return True
    # a text that fits even at four bytes a character need not be counted
    if chars * _MOST_BYTES > max_bytes and utf8_bytes(text) > max_bytes:
        return True
    if max_lines is None or chars < max_lines:
        return False
    return text.count("\n") >= max_lines


def _lines_cut(
    source: Source,
    words: Words,
    max_line_chars: int,
    ellipsis: str,
    notice: str | None,
) -> ResultView | None:
    """All lines, each cut to a length; None if that changes nothing or wins nothing."""
    text = source.text
    longest = _longest_line(text, max_line_chars)
    if longest <= max_line_chars:
        return None
    body = "\n".join(_clipped_lines(text, max_line_chars, ellipsis))
    if notice is None:
        file = words.file_of(source.ref)
        ending = f"\n{ref_line(source.ref, len(text), file)}"
    else:
        ending = f"\n\n{notice.format(ref=source.ref)}"
    view = f"{body}{ending}"
    if len(view) >= len(text):
        return None
    reason = f"a line of {longest:,} characters, over {max_line_chars:,}"
    return ResultView(
        view, reason, ShownExtent(text_size(text), text_size(body))
    )


def _longest_line(text: str, enough: int) -> int:
    """Characters of the longest line; 0 for a text too short to have one over ``enough``."""
    longest = 0
    start = 0
    while len(text) - start > max(longest, enough):
        stop = text.find("\n", start)
        if stop < 0:
            stop = len(text)
        longest = max(longest, stop - start)
        start = stop + 1
    return longest


def _clipped_lines(text: str, chars: int, ellipsis: str) -> Iterator[str]:
    """The lines of a text, each cut to a length, none made before it is wanted."""
    start = 0
    newline = 0
    while newline >= 0:
        newline = text.find("\n", start)
        stop = len(text) if newline < 0 else newline
        # one character more than is shown, so that a combining one behind it is seen
        line = text[start : min(stop, start + chars + 1)]
        if len(line) > chars:
            line = line[: safe_cut(line, chars)] + ellipsis
        yield line
        start = newline + 1


def _as_many(lines: Iterable[str], max_bytes: int) -> Iterator[str]:
    """The first lines that fit, each with its newline."""
    for line in lines:
        max_bytes -= utf8_bytes(line) + 1
        if max_bytes < 0:
            return
        yield line


def by_type(
    source: Source,
    words: Words,
    /,
    *,
    limit_chars: int,
    max_items: int,
    preview_chars: int,
    text_marker: str,
    list_marker: str,
    dict_error: str,
) -> ResultView | None:
    """A text cut with an indicator, a list capped, a dict replaced by advice and a preview.

    JSON inside a text is taken as what it is (DESIGN §10 "structured results"), so a list stays a
    list and a dict a dict, on every wire, their items as they were written. A list of which not one
    item fits becomes a list of that advice. Source: multi-stage §2.

    ``limit_chars`` are for all texts of a result together; ``text_marker`` comes on top of them.
    Its fields, and those of ``list_marker``, the last item: ``shown``, ``total``, ``read_on``; of
    ``dict_error``: ``total``, ``limit``, ``read_on``.
    """
    text = source.text
    chars = len(text)
    earlier_chars = sum(len(earlier) for earlier in source.earlier_texts)
    limit_chars = max(limit_chars - earlier_chars, 0)
    # no list is over its limit here: an item takes two characters at least
    if chars <= min(limit_chars, 2 * max_items):
        return None
    value = _parsed(text)
    is_long = chars > limit_chars
    if isinstance(value, list):
        is_cut = not is_long and _is_capped(value, max_items, list_marker)
        is_long = is_long or len(value) > max_items
    else:
        is_cut = _is_marked(text, limit_chars, text_marker)
    if is_cut or not is_long:
        return None
    reason = f"{chars:,} characters, over {limit_chars:,}"
    read_on = words.read_on(source.ref, 0)
    if value is None:
        head_stop = safe_cut(text, limit_chars)
        read_on = words.read_on(source.ref, head_stop)
        marker = text_marker.format(
            shown=head_stop, total=chars, read_on=read_on
        )
        body = f"{text[:head_stop]}{marker}"
    else:
        error = dict_error.format(
            total=chars, limit=limit_chars, read_on=read_on
        )
        preview = text[: safe_cut(text, min(preview_chars, limit_chars))]
        body = _dumps({"error": error, "preview": preview})
    if isinstance(value, list):
        items, count = _capped(
            value,
            limit_chars=limit_chars,
            most=max_items,
            marker=list_marker,
            read_on=read_on,
        )
        body = items if count else f"[{body}]"
        reason = f"{len(value):,} items, {chars:,} characters; the first {count:,} are shown"
    if len(body) >= chars:
        return None
    return ResultView(body, reason)


# A text cut by the same limits before it came here, as a callback may do, is known by how it ends.
# It is bounded all the same; to cut it again would name the part and no longer the original.


def _is_capped(items: list[msgspec.Raw], most_items: int, marker: str) -> bool:
    """Whether a list ends in the notice of a list that was capped."""
    if len(items) != most_items + 1:
        return False
    last_item = bytes(items[-1])
    opening = f'"{marker}'.partition("{")[0]
    return last_item.startswith(opening.encode())


def _is_marked(text: str, limit_chars: int, marker: str) -> bool:
    """Whether a text ends in the marker of a text that was cut."""
    opening = marker.partition("{")[0]
    at = text.rfind(opening)
    if not 0 <= at <= limit_chars:
        return False
    ending = text[at:]
    if len(ending) > _NOTICE_CHARS:
        return False
    return "\n" not in ending[1:]


def _capped(
    items: list[msgspec.Raw],
    limit_chars: int,
    most: int,
    marker: str,
    read_on: str,
) -> tuple[str, int]:
    """As many first items as fit, a notice as the last one; and how many they are."""
    total = len(items)
    # how many items fit is not known yet, so the notice is reckoned at its longest
    longest_notice = _notice(marker, total, total, read_on)
    room = limit_chars - len(longest_notice) - len("[]")
    texts = []
    for raw in items[:most]:
        item = bytes(raw).decode("utf-8", "surrogatepass")
        room -= len(item) + 1
        if room < 0:
            break
        texts.append(item)
    count = len(texts)
    texts.append(_notice(marker, count, total, read_on))
    return f"[{','.join(texts)}]", count


def _notice(
    marker: str,
    count: int,
    total: int,
    read_on: str,
) -> str:
    """The last item of a capped list, which shows ``count`` of its items."""
    return _dumps(marker.format(shown=count, total=total, read_on=read_on))


def _parsed(text: str) -> _Value | None:
    """The list or dict a text holds as JSON, its values as they are written; or None."""
    if not _VALUE.match(text):
        return None
    try:
        return _decoder.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_size(text: str) -> TextSize:
    """The lines and the bytes of a text."""
    return TextSize(text.count("\n") + 1, utf8_bytes(text))


def size_of(count: int) -> str:
    """A number of bytes as people read it: ``512B``, ``1.5KB``, ``2.0MB``.

    Halves are rounded up, as the three-layer document's language does.
    """
    if count < _KB:
        return f"{count}B"
    unit = _KB
    name = "KB"
    if count >= _KB * _KB:
        unit = _KB * _KB
        name = "MB"
    tenths = (count * 10 + unit // 2) // unit
    return f"{tenths // 10}.{tenths % 10}{name}"
