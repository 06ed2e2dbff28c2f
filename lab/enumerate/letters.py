"""The alphabet: for each wire the shapes of which histories are put together.

A letter is a few messages, such as a call and its result. Letters come from two tables:

    SHAPES            what agents say, ask and answer, in no wire's words; the writers of
                      `lab.fuzz` write them down
    tests.wire        the example of each row of ``wires/*/blocks.py``; the tests ask one of
                      every row, so a new row is a new letter

What a wire cannot tell from another letter is not one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lab.fuzz.histories import WRITERS
from lab.fuzz.steps import DOCUMENT, FEATURES, IMAGE, SOUND, Call, Page, Step
from tests.wire import examples
from ullage.core.errors import UnsupportedPart
from ullage.core.history.transcript import leaves_of
from ullage.core.values.messages import Text, ToolResult
from ullage.wires import FORMATS

Message: TypeAlias = dict[str, Any]


class Letter(Struct, frozen=True):
    """One shape as a wire writes it.

    Attributes:
        name: what it is, such as ``"parallel calls"`` or ``"image in a result"``.
        messages: as they stand on the wire.
    """

    name: str
    messages: tuple[Message, ...]


_ROWS = json.dumps([{"n": n, "name": "a long name"} for n in range(60)])
_LONG = "a line of what the tool printed, and one more word of it\n" * 30
_CALL = Call("read_file", {"path": "a.py"}, f"first\n{_LONG}")
_OTHER = Call("bash", {"path": "b.py"}, f"second\n{_LONG}")
_STEP = Step(0, None, None, "", "", (), "", frozenset())
_SAYS = replace(_STEP, said="Let me look.")
_ASKS = replace(_STEP, calls=(_CALL,))
_USER = "And what of this?"


def _call(**more: Any) -> Step:
    return replace(_STEP, calls=(replace(_CALL, **more),))


def _with(step: Step, *more: str, **fields: Any) -> Step:
    return replace(step, more=frozenset(more), **fields)


SHAPES: dict[str, tuple[Step, ...]] = {
    "text": (_SAYS,),
    "long text": (replace(_STEP, said=f"It may be this. {_LONG}"),),
    "call": (_ASKS,),
    "text and call": (replace(_ASKS, said="Let me look."),),
    "parallel calls": (replace(_STEP, calls=(_CALL, _OTHER)),),
    "error": (_call(failed=True),),
    "empty": (_call(output=""),),
    "result in parts": (_call(items=2),),
    "JSON": (_call(output=_ROWS),),
    "JSON in parts": (_call(output=_ROWS, items=2),),
    "large arguments": (_call(arguments={"path": "a.py", "text": _LONG}),),
    "image in a result": (_call(media=IMAGE),),
    "document in a result": (_call(media=DOCUMENT),),
    "image of the user's": (replace(_ASKS, user=_USER, media=IMAGE),),
    "document of the user's": (replace(_ASKS, user=_USER, media=DOCUMENT),),
    "sound of the user's": (replace(_ASKS, user=_USER, media=SOUND),),
    "signed thinking, text": (replace(_SAYS, thought="signed"),),
    "signed thinking, call": (replace(_ASKS, thought="signed"),),
    "sealed thinking, text": (replace(_SAYS, thought="sealed"),),
    "sealed thinking, call": (replace(_ASKS, thought="sealed"),),
    "open thinking, text": (replace(_SAYS, thought="open"),),
    "open thinking, call": (replace(_ASKS, thought="open"),),
    "server tool": (replace(_ASKS, server="server tool"),),
    "paused server tool": (replace(_ASKS, server="paused server tool"),),
    "mixed server tool": (
        replace(_ASKS, server="mixed server tool"),
        replace(_SAYS, number=1),
    ),
    "interrupted": (_with(_ASKS, "interrupted"),),
    "several messages": (
        _with(_ASKS, "several messages", said="Let me look."),
    ),
    "compaction": (_with(_SAYS, "compaction"),),
    "note": (_with(_ASKS, "note", user=_USER),),
    "custom tool": (_call(custom=True),),
    "hosted call": (_with(_SAYS, "hosted call"),),
    "approval": (_with(_SAYS, "approval"),),
    "late approval": (_with(_SAYS, "late approval"), replace(_ASKS, number=1)),
    "late result": (_call(late=1), replace(_SAYS, number=1)),
    "never answered": (_call(late=-1),),
}
"""What an agent may say and do, as steps of `lab.fuzz`; a step without a user goes on."""

BASIC = frozenset(
    (
        "text",
        "call",
        "parallel calls",
        "error",
        "empty",
        "large arguments",
        "image in a result",
        "image of the user's",
        "signed thinking, text",
        "signed thinking, call",
        "sealed thinking, call",
        "open thinking, call",
        "server tool",
        "paused server tool",
        "mixed server tool",
        "interrupted",
        "user",
    )
)
"""The letters of the small alphabet."""

_FEATURES = frozenset(name for names in FEATURES.values() for name in names)
_IDS = frozenset(
    (
        "id",
        "tool_use_id",
        "tool_call_id",
        "toolUseId",
        "call_id",
        "approval_request_id",
    )
)
_GIVEN = frozenset(("input", "arguments", "args", "response"))
"""What stands under these is the tool's own, and its ids are not the wire's."""


def said(format: str, text: str) -> Message:
    """The user says something."""
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if format == "bedrock-converse":
        return {"role": "user", "content": [{"text": text}]}
    return {"role": "user", "content": text}


def in_turn(format: str, messages: Sequence[Message]) -> list[Message]:
    """The messages as a request has them: of Converse's, roles stand in turn (B2)."""
    if format != "bedrock-converse":
        return [*messages]
    turns = list[list[Message]]()
    for message in messages:
        if turns and turns[-1][0]["role"] == message["role"]:
            turns[-1].append(message)
        else:
            turns.append([message])
    together = FORMATS[format].together
    return [turn[0] if len(turn) == 1 else together(turn) for turn in turns]


def is_models(format: str, message: Message) -> bool:
    """Whether a message is the model's."""
    return FORMATS[format].parse(message, "message").role == "assistant"


@lru_cache
def alphabet(format: str, *, basic: bool = False) -> tuple[Letter, ...]:
    """The letters of a wire.

    Args:
        format: its name.
        basic: those of `BASIC` alone.
    """
    found, outlines = list[Letter](), set[str]()
    shapes = [*_shapes(format), Letter("user", (said(format, _USER),))]
    for letter in (*shapes, *_rows(format)):
        outline = str(_outline(letter.messages))
        if outline not in outlines and (letter.name in BASIC or not basic):
            found.append(letter)
        outlines.add(outline)
    return tuple(found)


def _shapes(format: str) -> Iterator[Letter]:
    for number, (name, steps) in enumerate(SHAPES.items()):
        if name in _FEATURES and name not in FEATURES[format]:
            continue
        page = Page(
            32 * number
        )  # of which Gemini's writer signs from the first word on
        first = replace(steps[0], user=steps[0].user or "go on")
        wanted = (
            {"signed reasoning"} if steps[0].thought == "signed" else set()
        )
        WRITERS[format](page, [first, *steps[1:]], frozenset(wanted))
        messages = page.messages if steps[0].user else page.messages[1:]
        if messages[-1:] == [
            {"role": "user", "parts": [{"text": "and now?"}]}
        ]:
            messages = messages[:-1]
        yield Letter(
            name, tuple(_renamed(each, f"s{number}") for each in messages)
        )


def _rows(format: str) -> Iterator[Letter]:
    """The examples as they are: their ids differ, for together they are one history."""
    for number, example in enumerate(examples(format)):
        name = f"{example.type}{' in a result' if example.inside else ''}"
        name += f", {example.note}" if example.note else f", example {number}"
        yield Letter(
            name, tuple(_grown(format, raw) for raw in example.messages)
        )


def _grown(format: str, raw: Message) -> Message:
    """A message whose results are worth cutting."""
    wire = FORMATS[format]
    message = wire.parse(raw, "example")
    changes = [
        (number, item, f"{leaf.text}{_LONG}")
        for number, item, leaf in leaves_of(message)
        if isinstance(leaf, Text)
        and isinstance(message.parts[number], ToolResult)
    ]
    try:
        grown: Message = wire.edit(raw, message, changes)
    except UnsupportedPart:
        return raw
    return grown


def _outline(value: Any, key: str = "") -> Any:
    """What letters are compared by: fields, types and roles; of a text no more than its size."""
    if isinstance(value, dict):
        return {
            name: _outline(each, name) for name, each in sorted(value.items())
        }
    if isinstance(value, list | tuple):
        return [_outline(each) for each in value]
    if isinstance(value, str) and key not in _TELLING:
        return min(len(value), 1) + (len(value) > _LARGE_CHARS)
    return value


_TELLING = frozenset(("type", "role", "mimeType", "media_type"))
_LARGE_CHARS = 500


def _renamed(value: Any, mark: str) -> Any:
    """A copy whose ids end with a mark."""
    if isinstance(value, dict):
        return {
            key: f"{each}{mark}"
            if key in _IDS and isinstance(each, str)
            else each
            if key in _GIVEN
            else _renamed(each, mark)
            for key, each in value.items()
        }
    return (
        [_renamed(each, mark) for each in value]
        if isinstance(value, list | tuple)
        else value
    )


def history(letters: Sequence[Letter]) -> list[Message]:
    """The letters one behind the other; one that comes again has ids of its own."""
    messages, times = list[Message](), dict[str, int]()
    for letter in letters:
        again = times.get(letter.name, 0)
        times[letter.name] = again + 1
        messages += (
            [_renamed(each, f"x{again}") for each in letter.messages]
            if again
            else letter.messages
        )
    return messages
