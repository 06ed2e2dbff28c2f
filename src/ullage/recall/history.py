"""What the history at hand can give back by itself, without a store."""

from __future__ import annotations

from collections.abc import Iterator

from ullage.history import canon
from ullage.history.index import index_of
from ullage.history.window import Window
from ullage.values.effects import Output


def find_in_history(window: Window, wanted: str, length: int, *, thorough: bool) -> Output | None:
    """What a ref, or the id of a tool call (the newest one's), names in the history at hand.

    That is the history of a view, made of ``length`` messages. A ``thorough`` look is at every
    leaf of it, and at the index behind each summary.
    """
    transcript = window.transcript
    location = window.spot_of(wanted) or transcript.newest_result(wanted, length)
    if location is not None:
        return transcript.output(location)
    outputs = _everything(window) if thorough else ()
    return next((output for output in outputs if output.ref == wanted), None)


def _everything(window: Window) -> Iterator[Output]:
    """Every output the history at hand can give back."""
    transcript = window.transcript
    for start, stop, _ in window.summaries:
        for words in (window.words, *window.words.earlier()):
            text = index_of(transcript, start, stop, words)
            yield Output(canon.ref_of(text), text)
    for index, message in enumerate(transcript.messages):
        for number in range(len(message.parts)):
            yield from transcript.outputs(index, number)
