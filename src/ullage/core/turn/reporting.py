"""The events of edits: one for each that took effect, was repaired or was left out.

Nothing is decided here, and no event holds content.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ullage.core.errors import StageError
from ullage.core.history.hand import index_of
from ullage.core.history.window import Window
from ullage.core.turn.checks import Checked
from ullage.core.turn.cuts import Mend
from ullage.core.values.edits import (
    Batch,
    Drop,
    Edit,
    Insert,
    Replace,
    ReplaceSpan,
    Restore,
)
from ullage.core.values.events import Event, Kind


def event_of(
    window: Window, edit: Edit, tokens_before: int, tokens_after: int
) -> Event:
    """The event of an edit that took effect.

    Args:
        window: the window that shows it.
        edit: the edit.
        tokens_before: of the view without it.
        tokens_after: of the view with it.
    """
    return Event(
        kind=_kind_of(edit),
        where=_where(window, edit),
        why=edit.why,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        ref=edit.ref if isinstance(edit, (Replace, ReplaceSpan)) else None,
        left_out_bytes=edit.left_out_bytes if isinstance(edit, Replace) else 0,
    )


def event_of_both(earlier: Event, event: Event) -> Event:
    """The event of two cuts of one result that no request stood between.

    Args:
        earlier: of the first cut.
        event: of the second, which is shown.
    """
    left_out_bytes = max(earlier.left_out_bytes, event.left_out_bytes)
    return replace(
        event,
        tokens_before=earlier.tokens_before,
        left_out_bytes=left_out_bytes,
    )


def _kind_of(edit: Edit) -> Kind:
    """The kind of event by which an edit is reported."""
    if isinstance(edit, Drop):
        return "reasoning"
    if isinstance(edit, Restore):
        return "restored"
    if isinstance(edit, Insert):
        return "added"
    return edit.kind


def _where(window: Window, edit: Edit) -> str:
    """The place of an edit, for people."""
    transcript = window.transcript
    if isinstance(edit, Replace):
        return _where_replaced(window, edit)
    if isinstance(edit, Drop):
        return "messages behind the edit"
    if isinstance(edit, Restore):
        index = index_of(transcript, edit.message) or 0
        return f"message {index + 1}"
    if isinstance(edit, Insert):
        return f"behind message {transcript.find(edit.after) or 0}"
    start, stop = window.range_of(edit) or (0, 0)
    return f"messages {start + 1} to {stop}"


def _where_replaced(window: Window, edit: Replace) -> str:
    """The place of a leaf, such as ``message 12, shell result``."""
    location = window.transcript.locate(edit.address)
    number = 0 if location is None else location[0] + 1
    kind: str | None = edit.address.kind
    if kind != "result":
        return f"message {number}, {kind or 'tool'}"
    if location is not None:
        kind = window.tool_of(location)
    return f"message {number}, {kind or 'tool'} result"


def events_of_check(stage: str, checked: Checked) -> Iterator[Event]:
    """The events of repaired and refused cuts: one for each law and each problem."""
    mends: dict[str, list[Mend]] = {}
    for mend in checked.mends:
        mends.setdefault(mend.law, []).append(mend)
    errors: dict[str, list[StageError]] = {}
    for error in checked.errors:
        errors.setdefault(error.problem, []).append(error)
    for alike in mends.values():
        mend = alike[0]
        reason = f"stage {stage}: {mend.remedy}{_more(len(alike))}"
        yield Event(kind="mended", where=mend.where, why=reason)
    for refused in errors.values():
        error = refused[0]
        problem = f"{error.problem}{_more(len(refused))}"
        reason = f"stage {stage}: {problem}. {error.remedy}"
        yield Event(kind="declined", where=error.where, why=reason)


def _more(count: int) -> str:
    """How many more places it is so in, in words."""
    if count == 1:
        return ""
    return f"; so it is in {count - 1:,} more places"


def event_of_passed_over(count: int, batch: Batch) -> Event:
    """The event of edits of a record that no view can show."""
    reason = (
        f"{count:,} of {len(batch.edits):,} edits that the ledger holds of stage {batch.stage} "
        "would make the view illegal or could not be opened; they are passed over"
    )
    return Event(kind="declined", where="the ledger", why=reason)
