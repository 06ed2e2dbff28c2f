"""What a turn asks of a user's decisions beside the batches that carry them out.

Two laws (a text may be added, pinned lines stand in what is shown), and the outline by which
whoever looks at a store names messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.history.ledger import Ledger
from ullage.core.history.outline import outlined
from ullage.core.history.window import Window
from ullage.core.values.edits import Added
from ullage.core.values.effects import Record

if TYPE_CHECKING:
    from ullage.core.turn.request import Request
    from ullage.core.turn.settings import Settings


def may_be_added(window: Window, edit: Added) -> bool:
    """Whether a text of the user's may stand behind a message, and says anything."""
    transcript, index = window.transcript, window.transcript.find(edit.after)
    if index is None:
        return True
    is_seam = (
        transcript.closed(index)
        if index >= window.size
        else transcript.may_split(index)
    )
    return is_seam and bool(edit.text.strip() or not edit.text)


def with_lines(window: Window, text: str, original: str, first: int, last: int) -> str:
    """What is shown of a text, with lines of it that the user pinned."""
    lines = original.splitlines(keepends=True)[first - 1 : last]
    pinned = "".join(lines).rstrip("\r\n")
    if not pinned or pinned in text:
        return text
    return f"{text}\n{window.words.lines(first, min(last, first + len(lines) - 1), pinned)}"


def outline_in(
    window: Window, ledger: Ledger, request: Request, settings: Settings
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with the outline of a history, and its record, where one is kept."""
    if not settings.outlines or request.elsewhere:
        return ledger, ()
    name, tokens = request.wire.name, window.estimate
    return outlined(window, window.size, ledger, wire=name, tokens=tokens)
