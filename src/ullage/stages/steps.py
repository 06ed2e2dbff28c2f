"""Steps: what was said and done in a stretch of messages, one after the other, in few words.

A step is what somebody said, or a call and what it gave. What a user says and what is short stands
word for word; of the rest its beginning, and of a result the lines that tell most, with its ref.

A line that begins with ``- `` is a step and nothing else: where a tool or the model wrote such a
line, or one like a notice of ours, a space comes before it (failure F53).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from ullage.history import canon
from ullage.history.transcript import Location
from ullage.history.window import Window
from ullage.stages.facts import is_change
from ullage.stages.shorten import safe_cut
from ullage.values.messages import Media, Opaque, Role, Text, ToolCall, ToolResult

__all__ = ["ROOM", "Room", "digestible", "steps"]

_loads = msgspec.json.Decoder().decode
_FORGED = re.compile(r"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?=- |\[ullage)")
_HEAD_SHARE = 0.5
"""So much of its room is the beginning of what is cut."""


class Room(Struct, frozen=True, kw_only=True):
    """The most characters of what stands word for word in a step.

    Attributes:
        said: of what the model says.
        value: of one argument of a call.
        changed: of one argument of a call that changes a file: the next edit may name it.
        result: of a result.
    """

    said: int = 120
    value: int = 120
    changed: int = 600
    result: int = 100


ROOM = Room()
"""Of the default policy."""


def digestible(window: Window, start: int, stop: int, room: Room) -> Iterator[Location]:
    """The results of a stretch that are too long to stand in it word for word."""
    for index in range(start, stop):
        for spot in window.transcript.results(index):
            leaf = window.transcript.leaf(spot)
            is_page = window.words.is_recall(window.tool_of(spot))
            if isinstance(leaf, Text) and len(leaf.text) > room.result and not is_page:
                yield spot


def steps(
    window: Window, start: int, stop: int, digests: Mapping[Location, str], room: Room
) -> Iterator[str]:
    """Each step of the messages from ``start`` up to ``stop``, in order.

    Of results that are too long to stand word for word, the digest is shown.
    """
    transcript, answered = window.transcript, _answered(window, start, stop)
    for index in range(start, stop):
        message = transcript.messages[index]
        for number, part in enumerate(message.parts):
            match part:
                case Text(text=text) if text.strip():
                    yield _said(message.role, text, room)
                case ToolCall() if id(part) not in answered:
                    yield _data(f"{_called(part, room)} → nothing yet")
                case ToolResult():
                    call = transcript.call_for(index, number)
                    failed = "error: " if part.is_error else ""
                    gave = "\n".join(_gave(window, index, number, digests)) or "nothing"
                    called = _called(call, room) if call else "- a tool"
                    yield _data(f"{called} → {failed}{gave}")
                case Media() | Opaque():
                    yield f"- {message.role}: {_block(window, (index, number, 0))}"


def _answered(window: Window, start: int, stop: int) -> set[int]:
    """The calls that have a result in a stretch, by identity: ids may come again."""
    messages = window.transcript.messages
    return {
        id(window.transcript.call_for(index, number))
        for index in range(start, stop)
        for number, part in enumerate(messages[index].parts)
        if isinstance(part, ToolResult)
    }


def _said(role: Role, text: str, room: Room) -> str:
    text = text.strip()
    if role != "assistant":
        return f"- {role}: {text}"
    return _data(f"- {role}: {_beginning(text, room.said, room.said)}")


def _called(call: ToolCall, room: Room) -> str:
    """A call and its arguments; what is no object stands as it was sent."""
    try:
        value = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = call.arguments
    most = room.changed if is_change(call.name) else room.value
    if not isinstance(value, dict):
        return f"- {call.name}({_short(value, most, room)})"
    said = (f"{key}={_short(of, most, room)}" for key, of in value.items())
    return f"- {call.name}({', '.join(said)})"


def _short(value: object, most: int, room: Room) -> str:
    text = value if isinstance(value, str) else canon.canonical_json(value)
    return _beginning(text, most, int(room.value * _HEAD_SHARE))


def _beginning(text: str, most: int, kept: int) -> str:
    return text if len(text) <= most else f"{text[: safe_cut(text, kept)]}…"


def _data(step: str) -> str:
    """A step in which no line of what is told looks like one of ours."""
    return _FORGED.sub(" ", step)


def _gave(
    window: Window, index: int, number: int, digests: Mapping[Location, str]
) -> Iterator[str]:
    """What a call gave: each item word for word, its lines that are kept, or its ref alone."""
    part = window.transcript.messages[index].parts[number]
    is_page = window.words.is_recall(window.tool_of((index, number, 0)))
    for item, leaf in enumerate(part.content if isinstance(part, ToolResult) else ()):
        spot = index, number, item
        if is_page:
            yield "a page; make the same call to read it again"
        elif not isinstance(leaf, Text):
            yield _block(window, spot)
        elif spot not in digests:
            yield leaf.text
        else:
            shown = f"{len(leaf.text):,} characters, ref={canon.ref_of(leaf.text)}{digests[spot]}"
            yield shown if len(shown) < len(leaf.text) else leaf.text


def _block(window: Window, spot: Location) -> str:
    output = window.transcript.output(spot)
    return f"a block, ref={output.ref}" if output else "a block"
