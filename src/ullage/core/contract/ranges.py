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
    transcript, messages, first = window.transcript, window.transcript.messages, -1
    if keeps_task:
        first = next((i for i in range(window.size) if messages[i].role == "user"), -1)
    compacted = transcript.compaction(first + 1, window.size)
    start = 1 + (first if compacted is None else compacted)
    while start < window.size and not transcript.may_split(start):
        start += 1
    return start


def control_tail(window: Window) -> int:
    """Where what the host added for the provider alone begins, at the end: compaction triggers."""
    messages, stop = window.transcript.messages, window.size
    while stop > 0 and messages[stop - 1].is_control:
        stop -= 1
    return stop


def condensed(window: Window) -> list[Placed]:
    """The summaries that the provider still reads, but for records (`ullage.policy.stages.record`).

    A record stands for what is old, whatever room there is; a summary may stand for it too.
    """
    return [placed for placed in window.open_summaries if placed.edit.kind != "pruned"]


def summarised(window: Window) -> tuple[int, int] | None:
    """From the first such summary up to where the last one ends."""
    placed = condensed(window)
    return (placed[0].start, placed[-1].stop) if placed else None


def said_before(window: Window) -> tuple[str, bytes]:
    """What a model wrote in the summaries shown, and the chain up to which that goes."""
    edits = [placed.edit for placed in window.open_summaries if placed.edit.model_text]
    if not edits:
        return "", b""
    return "\n\n".join(edit.model_text for edit in edits), edits[
        -1
    ].model_upto or edits[-1].upto


def coverable(window: Window, start: int, stop: int) -> list[int]:
    """The shown messages of a range whose place a summary may take."""
    stays = {
        *window.transcript.marked("pinned", start, stop),
        *window.staying(start, stop),
    }
    return [index for index in window.visible_in(start, stop) if index not in stays]


def set_aside(window: Window, start: int, stop: int) -> tuple[Output, ...]:
    """What a summary of a range takes out of the view, and last the index of the whole range.

    They are the outputs that no other summary hides yet.
    """
    index = index_of(window.transcript, start, stop, window.words)
    shown = window.visible_in(start, stop)
    outputs = (
        output for at in shown for output in outputs_of(window.transcript, at, at + 1)
    )
    return (*outputs, Output(canon.ref_of(index), index))


def cut_before(window: Window, index: int, least: int) -> int:
    """The last place up to ``index`` at which a history may begin anew; ``least`` if none."""
    places = range(min(index, window.size - 1), least, -1)
    whole = (at for at in places if window.may_summarise(least, at))
    return next(filter(window.may_cut, whole), least)


def continues(window: Window, summary: ReplaceSpan) -> bool:
    """Whether a summary is of this history, and goes on from where the newest one ends."""
    around = window.range_of(before_record(window, summary))
    if around is None or around[1] >= window.size or not window.may_cut(around[1]):
        return False
    goes_on = all(placed.stop < around[1] for placed in condensed(window))
    return goes_on and around[0] >= window.read_from and window.may_summarise(*around)


def before_record(window: Window, summary: ReplaceSpan) -> ReplaceSpan:
    """A summary up to the record in which it would end: one was made since it was begun.

    What the two tell both is told twice.
    """
    start, stop = window.range_of(summary) or (0, 0)
    parted = (
        each for each in window.open_summaries if start < each.start < stop < each.stop
    )
    each = next((each for each in parted if each.edit.kind == "pruned"), None)
    if each is None:
        return summary
    upto = window.transcript.chain[each.start]
    return replace(summary, upto=upto, model_upto=summary.model_upto or summary.upto)
