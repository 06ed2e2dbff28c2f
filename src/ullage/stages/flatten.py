"""A run of messages as plain text for a summarising model: data, not messages.

Flat text needs no tools in the request and can break no pairing of calls and results
(output-cache §2.6.1); what a tool said cannot pass for what the user said.
"""

from __future__ import annotations

from ullage.history.transcript import Transcript
from ullage.stages.shorten import safe_cut
from ullage.values.messages import Message, Text, ToolResult

__all__ = ["flatten"]

_RESULT_CHARS = 6_000
_CALL_CHARS = 1_000


def flatten(transcript: Transcript, start: int, stop: int) -> tuple[str, ...]:
    """Each message of a run as a text; messages that say nothing are left out.

    If the run ends with a message of the model whose calls nobody has answered yet, its calls
    are left out; if it says nothing besides, so is the message.
    """
    pieces = []
    for index in range(start, stop):
        message = transcript.messages[index]
        trailing = index == stop - 1 and bool(message.calls)
        lines = [*_texts(message), *_results(transcript, index)]
        if not trailing:
            lines += [f"calls {c.name} {_clip(c.arguments, _CALL_CHARS)}" for c in message.calls]
        if lines:
            pieces.append("\n".join([f"[{message.role}]", *lines, ""]))
    return tuple(pieces)


def _texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]


def _results(transcript: Transcript, index: int) -> list[str]:
    lines = []
    for number, part in enumerate(transcript.messages[index].parts):
        if isinstance(part, ToolResult):
            call = transcript.call_for(index, number)
            failed = "error: " if part.is_error else ""
            texts = [each.text for each in part.content if isinstance(each, Text)]
            given = _clip("\n".join(texts), _RESULT_CHARS) or "no text"
            lines.append(f"result of {call.name if call else 'a tool'}: {failed}{given}")
    return lines


def _clip(text: str, chars: int) -> str:
    """The head and the tail of a text of more than ``chars`` characters."""
    if len(text) <= chars:
        return text
    head, tail = safe_cut(text, chars * 2 // 3), safe_cut(text, len(text) - chars // 3)
    return f"{text[:head]}\n[… {tail - head:,} characters …]\n{text[tail:]}"
