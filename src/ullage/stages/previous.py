"""What the guard's summary takes over from the summary in whose place it comes.

What a model said is carried over word for word; the deterministic part is made anew, of the
whole range, from the original messages.
"""

from __future__ import annotations

from typing import NamedTuple

from ullage.history.window import Window
from ullage.stages.summary import summary

__all__ = ["Over", "said_before", "take_over"]

_SAID_SHARE = 0.67
_SUMMARY_SHARE = 0.6


class Over(NamedTuple):
    """What is taken over; nothing where no summary was.

    Attributes:
        record: the deterministic summary, ``""`` where no summary was.
        said: what a model wrote, as it wrote it.
        said_upto: the chain up to which that covers the range.
        retain: what a model chose to keep, a message before the summary.
    """

    record: str = ""
    said: str = ""
    said_upto: bytes = b""
    retain: str = ""

    @property
    def text(self) -> str:
        """What comes before the bullets; a model's words are a quotation."""
        quoted = "\n".join(f"> {line}".rstrip() for line in self.said.splitlines())
        return "\n\n".join(filter(None, (quoted, self.record)))


def take_over(window: Window, start: int, stop: int, room_chars: int) -> Over:
    """What the guard's summary of [start, stop) takes over from the summaries shown.

    What a model said comes on top of the ``room_chars`` of the bullets. Where it is too long, it is
    left out: the deterministic summary and the index hold what it was made from.
    """
    shown = window.open_summaries
    placed = [each for each in shown if each.edit.summarised and start <= each.start < stop]
    if not placed:
        return Over()
    record = summary(window.transcript, start, stop, int(room_chars * _SUMMARY_SHARE))
    said, upto = said_before(window)
    retain = "\n\n".join(filter(None, (each.edit.retain for each in placed)))
    if len(said) + len(retain) > room_chars * _SAID_SHARE:
        return Over(record)
    return Over(record, said, upto, retain)


def said_before(window: Window) -> tuple[str, bytes]:
    """What a model wrote in the summaries shown, and the chain up to which that goes."""
    edits = [placed.edit for placed in window.open_summaries if placed.edit.said]
    if not edits:
        return "", b""
    return "\n\n".join(edit.said for edit in edits), edits[-1].said_upto or edits[-1].upto
