"""A range of messages as text: its account, its index, and what a summarising model is given.

The account is what the model sees: one bullet for each step, newest kept when room is short.
The index is complete: every text and every call in full, every result by its ref. All are
pure functions of the messages, so they come out the same wherever the range is condensed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ullage.history import canon
from ullage.history.measures import Measure
from ullage.history.transcript import Location, Transcript
from ullage.stages.facts import question_of
from ullage.stages.quotes import quotes
from ullage.stages.shorten import ends_of, on_one_line
from ullage.stages.user_texts import opening
from ullage.values.effects import Output
from ullage.values.messages import (
    Frame,
    Media,
    Message,
    Opaque,
    Passage,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.values.notices import Words

_USER = "- user: "
_SAID_CHARS = 200
_CALL_CHARS = 140
_GAVE_CHARS = 80
_RESULT_CHARS = 6_000
_ARGUMENTS_CHARS = 1_000
_GAP = "\n[… {:,} characters …]\n"

_BY_REF = (ToolResult, Media, Opaque, Passage, Frame)
"""What an index gives by its ref alone."""

_Step: TypeAlias = tuple[str, int, int]
"""Something worth a bullet: who speaks, message index, part index.

An answer of the user to a tool is two: the question, as that of a tool, and the user's words."""


def outputs_of(transcript: Transcript, start: int, stop: int) -> Iterator[Output]:
    """Every tool output, document and image in a range of messages."""
    for index in range(start, stop):
        for number, part in enumerate(transcript.messages[index].parts):
            if isinstance(part, _BY_REF):
                yield from transcript.outputs(index, number)


def index_of(transcript: Transcript, start: int, stop: int, words: Words) -> str:
    """Everything said in a range of messages, with each tool output by its ref."""
    lines = [
        f"Index of messages {start + 1} to {stop} of this conversation. A tool output is",
        f"given by its ref; read one with {words.read_on('REF', 0)}."
        if words.recall
        else "given by its ref.",
    ]
    for index in range(start, stop):
        lines += transcript.once(_ENTRY, index)
    return "\n".join(lines)


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
            case ToolResult() | Media() | Opaque() | Passage() | Frame():
                call = transcript.call_for(index, number)
                of = f" of {_called(call)}" if call else ""
                if not isinstance(part, Media) and (words := transcript.words(index, number)):
                    lines.append(f"the user answers{of}: {words}")
                for output in transcript.outputs(index, number):
                    what = "output" if output.kind == "text" else "block"
                    lines.append(f"{what} ref={output.ref} ({len(output.text):,} characters){of}")
            case _:
                pass
    return lines


_ENTRY = Measure("ullage.index", _entry)


def holds_range(transcript: Transcript, start: int, stop: int, text: str) -> bool:
    """Whether a text is an index of all messages of a range, and perhaps of more around it."""
    position = 0
    for index in range(start, stop):
        entry = "\n".join(transcript.once(_ENTRY, index))
        position = text.find(entry, position)
        if position < 0:
            return False
        position += len(entry)
    return True


def _called(call: ToolCall) -> str:
    return f"{call.name} {on_one_line(call.arguments, _CALL_CHARS)}"


def account(
    transcript: Transcript,
    start: int,
    stop: int,
    words: Words,
    index_ref: str,
    room_chars: int,
    *,
    user_chars: int = 0,
    summary: str = "",
    said_until: int | None = None,
) -> str:
    """The text of the one user message in place of the messages from ``start`` up to ``stop``.

    Its head and its bullets have ``room_chars`` at most. On top of them come what the user said,
    word for word (`quotes`), in ``user_chars``, and the summary of the range, if there is one.
    What the user said from the message ``said_until`` on is told elsewhere (`later_words`).
    """
    head = (
        f"[ullage: messages {start + 1} to {stop} are condensed here to keep within the "
        f"window. This is a record of what was done, not an instruction. Everything in full: "
        f"{words.read_on(index_ref, 0)}]"
    )
    steps = [step for index in range(start, stop) for step in transcript.once(_STEPS, index)]
    kept = _newest(transcript, steps, room_chars - len(head) - 60)
    said = [number for number, step in enumerate(steps) if step[0] == "user"]  # it may be a rule
    texts = [_text_of(transcript, steps[number]) for number in said]
    refs = [_output_of(transcript, steps[number]).ref for number in said]
    shown = quotes(texts, user_chars, frame_chars=len(f"{_USER}\n"), refs=refs)
    elsewhere = {
        number for number in said if said_until is not None and steps[number][1] >= said_until
    }
    here = {said[at]: text for at, text in shown.items() if said[at] not in elsewhere}
    kept |= {number: f"{_USER}{text}" for number, text in here.items()}
    lines = [kept[number] for number in sorted(kept)]
    missing = len(steps) - len(lines) - len(elsewhere)
    if missing:
        lines.insert(0, f"- … {missing:,} more: see the index")
    if any(f"ref={refs[at]}" in text for at, text in shown.items()):
        lines.insert(0, opening(words))
    if summary:
        head = f"{head}\n\n{summary}\n\n## Steps"
    return "\n".join([head, *lines])


def user_outputs(transcript: Transcript, start: int, stop: int, shown: str) -> list[Output]:
    """What the user said in a range and its account names by a ref, each once."""
    outputs = dict[str, Output]()
    for index in range(start, stop):
        for step in transcript.once(_STEPS, index):
            if step[0] == "user":
                output = _output_of(transcript, step)
                outputs[output.ref] = output
    return [output for ref, output in outputs.items() if f"ref={ref}" in shown]


def said_chars(transcript: Transcript, start: int, stop: int) -> int:
    """About how many characters an account takes that quotes all the user said in a range."""
    steps = (step for index in range(start, stop) for step in transcript.once(_STEPS, index))
    texts = {_text_of(transcript, step) for step in steps if step[0] == "user"}
    return sum(len(text) + len(_USER) + 1 for text in texts)


def _newest(transcript: Transcript, steps: Sequence[_Step], room: int) -> dict[int, str]:
    """The newest bullets that fit, by number, but for what the user said."""
    kept: dict[int, str] = {}
    for number in range(len(steps) - 1, -1, -1):
        if steps[number][0] == "user":
            continue
        text = _bullet(transcript, *steps[number])
        if len(text) >= room:
            break
        kept[number] = text
        room -= len(text) + 1
    return kept


def _text_of(transcript: Transcript, step: _Step) -> str:
    return transcript.words(step[1], step[2])


def _output_of(transcript: Transcript, step: _Step) -> Output:
    """What a text of the user is set aside as: its part, or its words where that is no text."""
    outputs = transcript.outputs(step[1], step[2])
    part = next((output for output in outputs if output.kind == "text"), None)
    text = _text_of(transcript, step)
    return part or Output(canon.ref_of(text), text)


def _steps(transcript: Transcript, index: int) -> list[_Step]:
    """What of a message is worth a bullet; nothing of one that stays in the view."""
    message, steps = transcript.messages[index], list[_Step]()
    if message.stands:
        return steps
    for number, part in enumerate(message.parts):
        if transcript.words(index, number):
            if isinstance(part, ToolResult):
                steps.append(("tool", index, number))
            steps.append(("user", index, number))
        elif isinstance(part, ToolResult):
            steps.append(("tool", index, number))
        elif isinstance(part, Text) and part.text.strip():
            steps.append((message.role, index, number))
    return steps


_STEPS = Measure("ullage.steps", _steps)


def _bullet(transcript: Transcript, role: str, index: int, number: int) -> str:
    part = transcript.messages[index].parts[number]
    if isinstance(part, Passage):
        return f"- {role}: a document, {_by_ref(transcript, (index, number, 0), part.text)}"
    if isinstance(part, Text):
        return f"- {role}: {on_one_line(part.text, _SAID_CHARS)}"
    call = transcript.call_for(index, number)
    if transcript.words(index, number):
        asked = question_of(transcript, index, number) or "a tool"
        return f"- {asked} → the user's answer:"
    failed = "error: " if isinstance(part, ToolResult) and part.is_error else ""
    gave = []
    for spot in transcript.results(index):
        output = transcript.output(spot) if spot[1] == number else None
        if output is None:
            continue
        text = output.text
        is_short = output.kind == "text" and len(text) <= _GAVE_CHARS and text.isprintable()
        gave.append(text if is_short else _by_ref(transcript, spot, text))
    return f"- {_called(call) if call else 'a tool'} → {failed}{'; '.join(gave) or 'nothing'}"


def _by_ref(transcript: Transcript, spot: Location, text: str) -> str:
    """How long a leaf is, and its ref."""
    output = transcript.output(spot)
    return f"{len(text):,} characters" + (f", ref={output.ref}" if output else "")


def flatten(transcript: Transcript, start: int, stop: int) -> tuple[str, ...]:
    """Each message of a range as plain text for a summarising model; those that say nothing go.

    Flat text needs no tools in the request and can break no pairing of calls and results
    (output-cache §2.6.1); what a tool said cannot pass for what the user said. Calls of the last
    message, which nobody has answered yet, are left out.
    """
    pieces = []
    for index in range(start, stop):
        message = transcript.messages[index]
        lines = list(_texts_of(message))
        for number, part in enumerate(message.parts):
            if isinstance(part, Opaque) and part.words:
                lines.append(part.words)
            if isinstance(part, ToolResult):
                call = transcript.call_for(index, number)
                if words := transcript.words(index, number):
                    lines.append(f"the user answers {call.name if call else 'a tool'}: {words}")
                    continue
                text = "\n".join(each.text for each in part.content if isinstance(each, Text))
                given = ends_of(text, _RESULT_CHARS, _GAP) or "no text"
                failed = "error: " if part.is_error else ""
                lines.append(f"result of {call.name if call else 'a tool'}: {failed}{given}")
        for call in message.calls if index < stop - 1 else ():
            lines.append(f"calls {call.name} {ends_of(call.arguments, _ARGUMENTS_CHARS, _GAP)}")
        if lines:
            pieces.append("\n".join([f"[{message.role}]", *lines, ""]))
    return tuple(pieces)


def _texts_of(message: Message) -> Iterator[str]:
    """What is said in a message, and the ends of documents that stand beside it."""
    for part in message.parts:
        if isinstance(part, Passage):
            yield f"a document: {ends_of(part.text, _RESULT_CHARS, _GAP)}"
        elif isinstance(part, Text) and part.text.strip():
            yield part.text
