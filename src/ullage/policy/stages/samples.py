"""Samples: histories that stages are shown to find out what they decide.

They are what a fingerprint is made of (`ullage.policy.stages.fingerprints`).

Each is a short history whose newest result is of one kind: a log, JSON, a table, an image. One
more history, `pressed`, is longer and has everything that a record or an account speaks of. All
are made by code, the same in every process. They are counted by a meter of their own, so that a
better estimate of tokens changes no fingerprint.

Whatever is changed here changes the fingerprint of every policy: each conversation under way is
told then that something else decides. So nothing is, without need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.transcript import Transcript
from ullage.core.tokens.calibrate import Calibration
from ullage.core.tokens.estimate import Counter
from ullage.core.tokens.meter import Meter, Overhead
from ullage.core.values.messages import (
    Content,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import Words
from ullage.core.values.toolset import CONTINUATION

_ROOT = canon.root("samples", "")
_WINDOW_TOKENS = 200_000
_PRESSED_SHARE = 0.5
"""What the limit is of the long history: so little that every stage has something to do."""
_REPORTED_TOKENS = 10_000_000
"""Over every threshold that goes by what a provider reported."""
_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""One pixel."""
_TALE = (
    "the tide came in over the old quay and every boat that lay there rose with it until "
    "its rope was taut while the keeper counted hulls by lamp light and wrote each name down"
)
_WORDS = tuple(_TALE.split())
_BEYOND_ASCII = "Ærø ålegræs 潮汐 🌊\u0301"


class Sample(Struct, frozen=True):
    """A history whose newest message is of one kind.

    Attributes:
        name: what kind that is.
        messages: the history.
    """

    name: str
    messages: tuple[Message, ...]


class _Quarter(Counter, frozen=True, kw_only=True):
    """Counts a token for every four characters."""

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


class _SampleMeter(Meter):
    """Counts as no model does, and as every version does."""

    def __init__(self) -> None:
        self.model = ""
        self.detail = ""
        self.counter = _Quarter(name="a quarter of the characters")
        self.text = self.counter.count
        self.counts_as = self.counter.name, False
        self.overhead = Overhead(
            request=3,
            message=4,
            call=6,
            result=6,
            tools=12,
            tool=7,
            spoken_arguments=False,
        )


@lru_cache(maxsize=1)
def arrivals() -> tuple[Sample, ...]:
    """The samples of what arrives, each kind once."""
    text = "\n".join(_lines(490, ""))
    reverse = text[::-1]
    long_lines = _lines(3, "x" * 21_000)
    beyond_ascii = _lines(900, _BEYOND_ASCII)
    rows = _rows(1_020)
    flat = json.dumps(rows[::2])
    nested = {}
    for number in range(30):
        nested[f"section_{number}"] = {"rows": rows[number::30]}
    failure = [*_lines(170, "at pier.py"), "TideError: no water"]
    return (
        _arrival("a log", "bash", _text(_log(160))),
        _arrival("JSON", "web_fetch", Text(json.dumps(nested, indent=1))),
        _arrival("JSON rows", "orders", Text(flat)),
        _arrival("a table", "grep", _text(_table(1_000))),
        _arrival("long lines", "read", _text(long_lines)),
        _arrival("a diff", "bash", _text(_diff(290))),
        _arrival("a document", "read_file", _text(_document(420))),
        _arrival("text beyond ASCII", "read", _text(beyond_ascii)),
        _arrival("a short text", "bash", Text("done")),
        _arrival("texts", "search", Text(text, at=0), Text(reverse, at=1)),
        _arrival("an image", "screenshot", _image(), Text("the page", at=1)),
        _error("an error", "bash", "\n".join(failure)),
        _programs_result("a program's result", text),
        _arrival("an answer of the user's", "AskUserQuestion", Text(text)),
    )


@lru_cache(maxsize=1)
def pressed() -> Sample:
    """A history in which much is old: what is said, done, changed, asked and found out."""
    messages = [
        _spoken(
            "user", "Find out why the gate opens late. Never touch notes.txt."
        )
    ]
    for number in range(3):
        command = {"command": f"make {number}"}
        messages += _step(f"c{number}", "bash", command, _log(45, number * 9))
    request = " ".join(_lines(30, "and mind this"))
    messages += [
        _spoken("assistant", "The gate waits for the pump. I mend it now."),
        _spoken("user", f"Then do so.\n{request}"),
        Message("system", (Text("The gate is closed at night."),)),
        _spoken("user", "Open it slowly."),
    ]
    program = "\n".join(_lines(30, "open()"))
    change = {"path": "src/gate.py", "content": program}
    messages += _step("c3", "write_file", change, ["written"])
    question = {"question": "Which pump?"}
    messages += _step("c4", "AskUserQuestion", question, ["The left one."])
    lines = "\n".join(_lines(30, ""))
    steps = (
        _arrival("", "screenshot", _image(), Text("the gate", at=1)),
        _error("", "bash", "GateError: stuck"),
        _programs_result("", lines),
    )
    for sample in steps:
        messages += sample.messages[1:]  # without the user's question
    messages += _step("c5", CONTINUATION, {"tool_call_id": "c0"}, _log(20))
    for number in range(6, 9):
        path = {"path": f"src/part{number}.py"}
        content = _lines(60, f"part {number}")
        messages += _step(f"c{number}", "read_file", path, content)
    messages.append(_spoken("assistant", "It is mended."))
    messages.append(_spoken("user", "And now the lamp."))
    rows = []
    for number in range(30):
        row = {"id": number, "lamp": _phrase(number, 2)}
        rows.append(json.dumps(row))
    messages += _step("c9", "search", {"query": "lamp"}, rows)
    return Sample("a long history", tuple(messages))


def transcript_of(sample: Sample) -> Transcript:
    """The history of a sample. The last of its chain is a digest of all that it says."""
    transcript = Transcript(_ROOT)
    for message in sample.messages:
        transcript.append(message, canon.digest_of(message))
    return transcript


def arriving(transcript: Transcript, words: Words) -> Iterator[WindowBuilder]:
    """A window at each boundary of a sample, with room for all of it."""
    builder = WindowBuilder(transcript, _SampleMeter(), words)
    builder.limit(_WINDOW_TOKENS, _WINDOW_TOKENS)
    for length in transcript.boundaries(0):
        builder.extend(length)
        yield builder


def pressing(transcript: Transcript, words: Words) -> WindowBuilder:
    """A window at the end of a sample that is far over its limits."""
    builder = WindowBuilder(transcript, _SampleMeter(), words)
    for length in transcript.boundaries(0):
        builder.extend(length)
    limit_tokens = int(builder.window.tokens * _PRESSED_SHARE)
    builder.limit(limit_tokens, limit_tokens)
    builder.report(_REPORTED_TOKENS, _REPORTED_TOKENS, Calibration())
    return builder


# ── how they are made ────────────────────────────────────────────────────────────────────


_ARGUMENTS = '{"of": "all"}'


def _arrival(name: str, tool: str, *content: Content) -> Sample:
    """What a tool gave, as it came."""
    call = ToolCall("c1", tool, _ARGUMENTS, 0)
    result = ToolResult("c1", content, is_error=False, at=0)
    return _sample(name, call, result)


def _error(name: str, tool: str, text: str) -> Sample:
    """What a tool gave that failed."""
    call = ToolCall("c1", tool, _ARGUMENTS, 0)
    result = ToolResult("c1", (Text(text),), is_error=True, at=0)
    return _sample(name, call, result)


def _programs_result(name: str, text: str) -> Sample:
    """A result that code asked for, and that no model reads."""
    call = ToolCall("c1", "read", _ARGUMENTS, 0, author="program")
    result = ToolResult(
        call_id="c1",
        content=(Text(text),),
        is_error=False,
        at=0,
        reader="program",
    )
    return _sample(name, call, result)


def _sample(name: str, call: ToolCall, result: ToolResult) -> Sample:
    """A history that ends in a result."""
    messages = (
        _spoken("user", "Look at it."),
        Message("assistant", (call,)),
        Message("tool", (result,)),
    )
    return Sample(name, messages)


def _spoken(role: str, text: str) -> Message:
    """A message of one text."""
    parts: tuple[Part, ...] = (Text(text),)
    return Message("user" if role == "user" else "assistant", parts)


def _step(
    id: str,
    tool: str,
    arguments: dict[str, str],
    lines: Sequence[str],
) -> list[Message]:
    """A call and its result."""
    call = ToolCall(id, tool, json.dumps(arguments), 0)
    content = (Text("\n".join(lines)),)
    result = ToolResult(id, content, is_error=False, at=0)
    return [Message("assistant", (call,)), Message("tool", (result,))]


def _image() -> Media:
    source = {"type": "base64", "media_type": "image/png", "data": _PNG}
    block = {"type": "image", "source": source}
    return Media(
        kind="image",
        mime="image/png",
        data=_PNG,
        at=0,
        width=1,
        height=1,
        block=block,
    )


def _text(lines: Sequence[str]) -> Text:
    return Text("\n".join(lines))


def _phrase(number: int, words: int) -> str:
    """So many words; each number has words of its own."""
    start = number * 7
    phrase = []
    for word in range(words):
        place = (start + word * 3) % len(_WORDS)
        phrase.append(_WORDS[place])
    return " ".join(phrase)


def _lines(count: int, end: str) -> list[str]:
    lines = []
    for number in range(count):
        phrase = _phrase(number, 9)
        lines.append(f"{number}: {phrase} {end}")
    return lines


def _rows(count: int) -> list[dict[str, object]]:
    rows = list[dict[str, object]]()
    for number in range(count):
        note = _phrase(number, 4)
        rows.append({"id": number, "lamp": number % 9, "note": note})
    return rows


def _table(count: int) -> list[str]:
    lines = []
    for number in range(count):
        phrase = _phrase(number, 4)
        lines.append(f"{number},{phrase},{number % 13}")
    return lines


def _log(count: int, start: int = 0) -> list[str]:
    lines = []
    for number in range(start, start + count):
        level = "ERROR" if number % 61 == 40 else "INFO"
        phrase = _phrase(number, 8)
        minute = number % 60
        code = number * 13
        lines.append(f"06:{minute:02d} {level} quay {phrase} code={code}")
    return lines


def _diff(count: int) -> list[str]:
    lines = [
        "--- a/src/gate.py",
        "+++ b/src/gate.py",
    ]
    signs = ("+", "-", " ", " ")
    for number in range(count):
        if number % 25 == 0:
            line = number + 1
            lines.append(f"@@ -{line},25 +{line},25 @@")
        sign = signs[number % len(signs)]
        phrase = _phrase(number, 6)
        lines.append(f"{sign}    {phrase}")
    return lines


def _document(count: int) -> list[str]:
    paragraphs = []
    for number in range(count):
        if number % 12 == 0:
            heading = _phrase(number, 2)
            paragraphs.append(f"## {heading}")
        sentence = _phrase(number, 30)
        paragraphs.append(f"{sentence}.")
    return paragraphs
