"""What a ref or the id of a tool call names, in the history at hand or in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from ullage.errors import RefNotFound
from ullage.history import canon
from ullage.history.window import Window
from ullage.recall.source import Source
from ullage.stages.account import index_of
from ullage.values.effects import Look, Output, Shape, Steps

__all__ = ["FromHistory", "ToolOutputRef", "find", "find_in_history", "output_ref"]

FromHistory: TypeAlias = Callable[[str, bool], Output | None]
"""Finds a ref, or the id of a tool call, in the history at hand, which holds the originals:
first at a glance, and thoroughly if the store has nothing."""


class ToolOutputRef(Struct, frozen=True):
    """The name of a tool output, and how much there is of it (output-cache 1.4).

    Attributes:
        id: the ref.
        byte_size: its length in UTF-8; of an image or a file, of its block as JSON.
        line_count: its lines, as `tool_output_cache` numbers them; None for what is no text.
    """

    id: str
    byte_size: int | None = None
    line_count: int | None = None


def find(wanted: str, from_history: FromHistory) -> Steps[Output | Shape | None]:
    """The output that is named, or what the store says of it; None if nothing is."""
    at_hand = from_history(wanted, False)
    if at_hand is not None:
        return at_hand
    try:
        shape: Shape = yield Look(wanted)
    except RefNotFound:
        return from_history(wanted, True)
    return shape


def output_ref(wanted: str, from_history: FromHistory) -> Steps[ToolOutputRef | None]:
    """The ref of the output that is named; None if nothing is."""
    found = yield from find(wanted, from_history)
    if found is None:
        return None
    source = Source.over(found)
    lines = source.line_count if found.kind == "text" else None
    return ToolOutputRef(found.ref, source.size_bytes, lines)


def find_in_history(window: Window, wanted: str, length: int, *, thorough: bool) -> Output | None:
    """What a ref or a call id names in the history at hand, or None.

    Args:
        window: the window of the view that is spoken of.
        wanted: a ref, or the id of a tool call (the newest with that id is meant).
        length: how many messages that view was made of.
        thorough: look at every leaf of the history, and at the index behind each summary.
    """
    transcript = window.transcript
    location = window.spot_of(wanted) or transcript.newest_result(wanted, length)
    if location is not None:
        return transcript.output(location)
    if not thorough:
        return None
    for output in _everything(window):
        if output.ref == wanted:
            return output
    return None


def _everything(window: Window) -> Iterator[Output]:
    """Every output the history at hand can give back."""
    transcript = window.transcript
    for start, stop, _ in window.summaries:
        text = index_of(transcript, start, stop, window.words)
        yield Output(canon.ref_of(text), text)
    for index, message in enumerate(transcript.messages):
        for number in range(len(message.parts)):
            yield from transcript.outputs(index, number)
