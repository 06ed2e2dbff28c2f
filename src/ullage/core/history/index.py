"""The index of a range: every text and every call in it in full, every result by its ref.

A summary names it, so that everything it stands for can be opened. It is a function of the
messages alone, so it comes out the same wherever the range is summarised.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.core.history.measures import Fold
from ullage.core.history.transcript import Transcript
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    BlockFrame,
    Media,
    Opaque,
    Passage,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import Words
from ullage.core.values.texts import on_one_line

_CALL_CHARS = 140
_BY_REF = (ToolResult, Media, Opaque, Passage, BlockFrame)
"""What an index gives by its ref alone."""


def outputs_of(
    transcript: Transcript, start: int, stop: int
) -> Iterator[Output]:
    """Every tool output, document and image in a range of messages."""
    for index in range(start, stop):
        for number, part in enumerate(transcript.messages[index].parts):
            if isinstance(part, _BY_REF):
                yield from transcript.outputs(index, number)


def index_of(
    transcript: Transcript, start: int, stop: int, words: Words
) -> str:
    """Everything said in a range of messages, with each tool output by its ref."""
    head = f"Index of messages {start + 1} to {stop} of this conversation. A tool output is\n"
    remedy = "given by its ref."
    if words.recall:
        remedy = f"given by its ref; read one with {words.read_on('REF', 0)}."
    entries = transcript.folded(_ENTRIES, start, stop)
    return head + remedy + entries.text


class _Entries:
    """The entries of the index, as one text that grows."""

    def __init__(self) -> None:
        self._text = ""
        self._new: list[str] = []

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in the entry of a message, each line behind a line end."""
        for line in _entry(transcript, index):
            self._new += "\n", line

    @property
    def text(self) -> str:
        """All entries."""
        if self._new:
            self._text = "".join([self._text, *self._new])
            self._new.clear()
        return self._text


_ENTRIES = Fold("ullage.index", _Entries, _Entries.add)


def _entry(transcript: Transcript, index: int) -> list[str]:
    """The lines of one message in the index."""
    message = transcript.messages[index]
    lines = [f"\n## {index + 1} {message.role}"]
    for number, part in enumerate(message.parts):
        match part:
            case Text(text=text) if not isinstance(part, Passage):
                lines.append(text)
            case ToolCall(name=name, arguments=arguments):
                lines.append(f"call {name} {arguments}")
            case ToolResult() | Media() | Opaque() | Passage() | BlockFrame():
                lines += _lines_by_ref(transcript, index, number)
            case _:
                pass
    return lines


def _lines_by_ref(
    transcript: Transcript, index: int, number: int
) -> Iterator[str]:
    """The lines of a part that is given by its ref: the user's words in it, and each output."""
    call = transcript.call_for(index, number)
    source = f" of {line_of_call(call)}" if call else ""
    if not isinstance(transcript.messages[index].parts[number], Media):
        words = transcript.user_words(index, number)
        if words:
            yield f"the user answers{source}: {words}"
    for output in transcript.outputs(index, number):
        kind = "output" if output.kind == "text" else "block"
        yield f"{kind} ref={output.ref} ({len(output.text):,} characters){source}"


def holds_range(
    transcript: Transcript, start: int, stop: int, text: str
) -> bool:
    """Whether a text is an index of all messages of a range, and perhaps of more around it."""
    return transcript.folded(_ENTRIES, start, stop).text in text


def line_of_call(call: ToolCall) -> str:
    """A call in one line: its tool, and the beginning of its arguments."""
    return f"{call.name} {on_one_line(call.arguments, _CALL_CHARS)}"
