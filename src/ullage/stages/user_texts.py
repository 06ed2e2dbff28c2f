"""What the user said as outputs: each text has a ref of its own, so that it can be opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ullage.history import canon
from ullage.history.transcript import Transcript, leaves_of
from ullage.stages.facts import Said, said
from ullage.values.effects import Output
from ullage.values.messages import Text
from ullage.values.notices import Words


def output_of(transcript: Transcript, text: Said) -> Output:
    """What opens a text of the user: the text as it was sent, or as the account quotes it.

    A message of several texts is quoted as one; then that one is set aside.
    """
    for number, item, leaf in leaves_of(transcript.messages[text.index]):
        if isinstance(leaf, Text) and leaf.text.strip() == text.text:
            output = transcript.output((text.index, number, item))
            if output is not None:
                return output
    return Output(canon.ref_of(text.text), text.text)


def refs_of(transcript: Transcript, texts: Sequence[Said]) -> tuple[str, ...]:
    """The ref of each text."""
    return tuple(output_of(transcript, text).ref for text in texts)


def named_in(shown: str, transcript: Transcript, start: int, stop: int) -> Iterator[Output]:
    """The user's texts of a range that an account names by their refs, each once."""
    outputs = {}
    for text in said(transcript, start, stop, "user"):
        output = output_of(transcript, text)
        outputs[output.ref] = output
    return (output for ref, output in outputs.items() if f"ref={ref}" in shown)


def opening(words: Words) -> str:
    """The line that says how to read what an account leaves out of the user's words."""
    if not words.recall:
        return "What is left out is set aside under the ref beside it."
    return f"What is left out is read with {words.read_on('REF', 0)}, REF being the ref beside it."
