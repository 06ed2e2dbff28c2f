"""What a turn asks of a user's decisions beside the batches that carry them out.

Two laws (a text may be added, pinned lines stand in what is shown), and the outline by which
whoever looks at a store names messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.history.ledger import Ledger
from ullage.core.history.outline import outlined
from ullage.core.history.window import Window
from ullage.core.values.edits import Insert
from ullage.core.values.effects import Record

if TYPE_CHECKING:
    from ullage.core.turn.request import Request
    from ullage.core.turn.settings import Settings


def may_be_added(window: Window, edit: Insert) -> bool:
    """Whether a text of the user's may stand behind a message, and says anything."""
    transcript = window.transcript
    index = transcript.find(edit.after)
    if index is None:
        return True
    if edit.text and not edit.text.strip():
        return False
    if index >= window.size:
        return transcript.closed(index)
    return transcript.may_split(index)


def with_lines(
    window: Window, text: str, original: str, start: int, end: int
) -> str:
    """What is shown of a text, with lines of it that the user pinned.

    Args:
        window: the window that shows it.
        text: what is shown.
        original: the whole text.
        start: the first line, counted from 1.
        end: the last line.
    """
    lines = original.splitlines(keepends=True)[start - 1 : end]
    pinned = "".join(lines).rstrip("\r\n")
    if not pinned or pinned in text:
        return text
    end = min(end, start + len(lines) - 1)
    notice = window.words.lines(start, end, pinned)
    return f"{text}\n{notice}"


def outline_in(
    window: Window, ledger: Ledger, request: Request, settings: Settings
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with the outline of a history, and its record, where one is kept."""
    if not settings.outlines or request.elsewhere:
        return ledger, ()
    return outlined(
        window,
        window.size,
        ledger,
        wire=request.wire.name,
        tokens=window.estimate,
        agent=settings.agent,
        client_session=settings.client_session,
        subagent=settings.subagent,
    )
