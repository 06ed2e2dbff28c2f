"""The account of a run of messages, and the index of everything it stands for.

The account is what the model sees: one bullet for each step, newest kept when room is short.
The index is complete: every text and every call in full, every result by its ref. Both are
pure functions of the messages, so they come out the same wherever the run is condensed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.effects import Output
from ullage.messages import Content, Media, Opaque, Text, ToolCall, ToolResult
from ullage.notices import Words
from ullage.transcript import Transcript, leaves_of, output_of

__all__ = ["account", "index_of", "outputs_of"]

_USER_CHARS = 1_500
_SAID_CHARS = 200
_CALL_CHARS = 140
_GAVE_CHARS = 80


def outputs_of(transcript: Transcript, start: int, stop: int) -> Iterator[Output]:
    """Every tool output and every image in a run of messages."""
    for message in transcript.messages[start:stop]:
        for number, _, leaf in leaves_of(message):
            part = message.parts[number]
            if isinstance(part, (ToolResult, Media, Opaque)):
                output = output_of(leaf)
                if output is not None:
                    yield output


def index_of(transcript: Transcript, start: int, stop: int, words: Words) -> str:
    """Everything said in a run of messages, with each tool output by its ref."""
    lines = [
        f"Index of messages {start + 1} to {stop} of this conversation. A tool output is",
        f"given by its ref; read one with {words.read_on('REF', 0)}."
        if words.recall
        else "given by its ref.",
    ]
    for index in range(start, stop):
        message = transcript.messages[index]
        lines.append(f"\n## {index + 1} {message.role}")
        for number, part in enumerate(message.parts):
            match part:
                case Text(text=text):
                    lines.append(text)
                case ToolCall(name=name, arguments=arguments):
                    lines.append(f"call {name} {arguments}")
                case ToolResult(content=content):
                    call = transcript.call_for(index, number)
                    of = f" of {call.name} {_clip(call.arguments, _CALL_CHARS)}" if call else ""
                    lines.extend(_listed(item) + of for item in content)
                case Media() | Opaque():
                    lines.append(_listed(part))
                case _:
                    pass
    return "\n".join(lines)


def _listed(content: Content) -> str:
    output = output_of(content)
    if output is None:
        return "nothing"
    what = "output" if output.kind == "text" else "block"
    return f"{what} ref={output.ref} ({len(output.text):,} characters)"


def account(
    transcript: Transcript, start: int, stop: int, words: Words, index_ref: str, room_chars: int
) -> str:
    """One user message that stands for a run of messages.

    Args:
        transcript: the history.
        start: the first message of the run.
        stop: one past its last.
        words: the wording of the session.
        index_ref: what opens the index of the run.
        room_chars: the most characters the account may have.
    """
    head = (
        f"[ullage: messages {start + 1} to {stop} are condensed here to keep within the "
        f"window. This is a record of what was done, not an instruction. Everything in full: "
        f"{words.read_on(index_ref, 0)}]"
    )
    bullets = [bullet for index in range(start, stop) for bullet in _bullets(transcript, index)]
    kept = _choose(bullets, room_chars - len(head) - 60)
    lines = [text for number, (_, text) in enumerate(bullets) if number in kept]
    if len(lines) < len(bullets):
        lines.insert(0, f"- … {len(bullets) - len(lines):,} other steps: see the index")
    return "\n".join([head, *lines])


def _choose(bullets: list[tuple[str, str]], room: int) -> set[int]:
    """Numbers of the bullets that fit: what the user said first, then the newest."""
    kept: set[int] = set()
    for role, share in (("user", room // 2), ("", room)):
        for number in range(len(bullets) - 1, -1, -1):
            said_by, text = bullets[number]
            if number in kept or (role and said_by != role):
                continue
            if len(text) >= min(room, share):
                break
            kept.add(number)
            room -= len(text) + 1
            share -= len(text) + 1
    return kept


def _bullets(transcript: Transcript, index: int) -> Iterator[tuple[str, str]]:
    """Role and text of each bullet of a message."""
    message = transcript.messages[index]
    for number, part in enumerate(message.parts):
        match part:
            case Text(text=text) if text.strip():
                limit = _USER_CHARS if message.role == "user" else _SAID_CHARS
                yield message.role, f"- {message.role}: {_clip(text, limit)}"
            case ToolResult(content=content, is_error=failed):
                call = transcript.call_for(index, number)
                what = f"{call.name} {_clip(call.arguments, _CALL_CHARS)}" if call else "a tool"
                gave = "; ".join(_gave(item) for item in content) or "nothing"
                yield "tool", f"- {what} → {'error: ' if failed else ''}{gave}"
            case _:
                pass


def _gave(content: Content) -> str:
    if isinstance(content, Text):
        text = content.text
        if len(text) <= _GAVE_CHARS and text.isprintable():
            return text
    return _listed(content)


def _clip(text: str, chars: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= chars else f"{words[:chars]}…"
