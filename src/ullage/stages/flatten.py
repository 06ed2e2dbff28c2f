"""A range of messages as plain text for a summarising model: data, not messages.

Flat text needs no tools in the request and can break no pairing of calls and results
(output-cache §2.6.1); what a tool said cannot pass for what the user said.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.history.transcript import Transcript
from ullage.stages.shorten import ends_of
from ullage.values.messages import Text, ToolResult

__all__ = ["flatten"]

_RESULT_CHARS = 6_000
_CALL_CHARS = 1_000
_GAP = "\n[… {:,} characters …]\n"


def flatten(transcript: Transcript, start: int, stop: int) -> tuple[str, ...]:
    """Each message of a range as a text; messages that say nothing are left out.

    If the range ends with a message of the model whose calls nobody has answered yet, its calls
    are left out; if it says nothing besides, so is the message.
    """
    pieces = []
    for index in range(start, stop):
        message = transcript.messages[index]
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        lines = [*(text for text in texts if text.strip()), *_results(transcript, index)]
        for call in message.calls if index < stop - 1 else ():
            lines.append(f"calls {call.name} {ends_of(call.arguments, _CALL_CHARS, _GAP)}")
        if lines:
            pieces.append("\n".join([f"[{message.role}]", *lines, ""]))
    return tuple(pieces)


def _results(transcript: Transcript, index: int) -> Iterator[str]:
    for number, part in enumerate(transcript.messages[index].parts):
        if isinstance(part, ToolResult):
            call = transcript.call_for(index, number)
            text = "\n".join(each.text for each in part.content if isinstance(each, Text))
            given = ends_of(text, _RESULT_CHARS, _GAP) or "no text"
            failed = "error: " if part.is_error else ""
            yield f"result of {call.name if call else 'a tool'}: {failed}{given}"
