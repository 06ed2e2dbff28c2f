"""Ranges of messages whose place one message may take: where they may begin and end."""

from __future__ import annotations

from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.index import index_of, outputs_of
from ullage.core.history.shown import Placed
from ullage.core.history.window import Window
from ullage.core.values.edits import ReplaceSpan
from ullage.core.values.effects import Output


def begin(window: Window, *, keeps_task: bool = True) -> int:
    """The first message that may be condensed.

    It is behind the first user message, if that stays where it is (``keeps_task``), and behind the
    newest compaction of the provider, which nobody else can read.
    """
    transcript = window.transcript
    start = _behind_task(window) if keeps_task else 0
    compaction = transcript.compaction(start, window.size)
    if compaction is not None:
        start = compaction + 1
    return seam_from(window, start, window.size)


def seam_from(window: Window, start: int, stop: int) -> int:
    """The first message from ``start`` on at which a range may begin; ``stop`` if there is none."""
    while start < stop and not window.transcript.may_split(start):
        start += 1
    return start


def _behind_task(window: Window) -> int:
    """The index behind the first message of the user; 0 if there is none."""
    messages = window.transcript.messages
    for index in range(window.size):
        if messages[index].role == "user":
            return index + 1
    return 0


def control_tail(window: Window) -> int:
    """Where what the host added for the provider alone begins, at the end: compaction triggers."""
    messages = window.transcript.messages
    stop = window.size
    while stop > 0 and messages[stop - 1].is_control:
        stop -= 1
    return stop


def condensed(window: Window) -> list[Placed]:
    """The summaries that the provider still reads, but for records (`ullage.policy.stages.record`).

    A record stands for what is old, whatever room there is; a summary may stand for it too.
    """
    return [
        placed
        for placed in window.open_summaries
        if placed.edit.kind != "pruned"
    ]


def summarised(window: Window) -> tuple[int, int] | None:
    """From the first such summary up to where the last one ends."""
    placed = condensed(window)
    return (placed[0].start, placed[-1].stop) if placed else None


def said_before(window: Window) -> tuple[str, bytes]:
    """What a model wrote in the summaries shown, and the chain up to which that goes."""
    edits = [
        placed.edit
        for placed in window.open_summaries
        if placed.edit.model_text
    ]
    if not edits:
        return "", b""
    text = "\n\n".join(edit.model_text for edit in edits)
    newest = edits[-1]
    return text, newest.model_upto or newest.upto


def coverable(window: Window, start: int, stop: int) -> list[int]:
    """The shown messages of a range whose place a summary may take."""
    pinned = window.transcript.marked("permanent", start, stop)
    staying = window.staying(start, stop).union(pinned)
    return [
        index
        for index in window.visible_in(start, stop)
        if index not in staying
    ]


def set_aside(window: Window, start: int, stop: int) -> tuple[Output, ...]:
    """What a summary of a range takes out of the view, and last the index of the whole range.

    They are the outputs that no other summary hides yet.
    """
    transcript = window.transcript
    outputs = list[Output]()
    for message in window.visible_in(start, stop):
        outputs += outputs_of(transcript, message, message + 1)
    index = index_of(transcript, start, stop, window.words)
    return (*outputs, Output(canon.ref_of(index), index))


def cut_before(window: Window, index: int, least: int) -> int:
    """The last place up to ``index`` at which a history may begin again; ``least`` if none."""
    for stop in range(min(index, window.size - 1), least, -1):
        if window.may_summarise(least, stop) and window.may_cut(stop):
            return stop
    return least


def continues(window: Window, summary: ReplaceSpan) -> bool:
    """Whether a summary is of this history, and goes on from where the newest one ends."""
    covered = window.range_of(before_record(window, summary))
    if covered is None:
        return False
    start, stop = covered
    if stop >= window.size or not window.may_cut(stop):
        return False
    if any(placed.stop >= stop for placed in condensed(window)):
        return False
    return start >= window.read_from and window.may_summarise(start, stop)


def before_record(window: Window, summary: ReplaceSpan) -> ReplaceSpan:
    """A summary up to the record in which it would end: one was made since it was begun.

    What the two tell both is told twice.
    """
    start, stop = window.range_of(summary) or (0, 0)
    for record in window.open_summaries:
        is_record = record.edit.kind == "pruned"
        if is_record and start < record.start < stop < record.stop:
            upto = window.transcript.chain[record.start]
            model_upto = summary.model_upto or summary.upto
            return replace(summary, upto=upto, model_upto=model_upto)
    return summary
