"""Shapes of the documents: what is shown of a result that is too large at first sight."""

from __future__ import annotations

from ullage.notices import Words, ref_line
from ullage.stages.shorten import safe_cut
from ullage.stages.truncate import Shown, Source

__all__ = ["head_chars"]


def head_chars(
    source: Source, words: Words, /, *, limit_chars: int, marker: str, bare: str
) -> Shown | None:
    """The first characters, the ref, and a marker that names the call to read on with.

    Args:
        source: the result.
        words: the wording of the session.
        limit_chars: characters shown of a result that has more.
        marker: the last line. Fields: ``shown``, ``total``, ``call_id``, ``prefix``.
        bare: the last line where no recall tool is offered. Fields: ``shown``, ``total``.
    """
    total = len(source.text)
    if total <= limit_chars:
        return None
    shown = safe_cut(source.text, limit_chars)
    last = (marker if words.recall else bare).format(
        shown=shown, total=total, call_id=source.call_id, prefix=words.prefix
    )
    text = f"{source.text[:shown]}\n{ref_line(source.ref, total)}\n{last}"
    if len(text) >= total:
        return None
    return Shown(text, f"{total:,} characters, over {limit_chars:,}")
