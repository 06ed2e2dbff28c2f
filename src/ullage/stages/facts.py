"""What a run of messages holds as facts: what was done to what, and how it ended.

Read from calls and results alone, never from what the model says of them (failure F52), and
a pure function of the messages, so that nothing decays however often a run is summarised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ullage.history.measures import Measure
from ullage.history.transcript import Transcript
from ullage.stages.policy import kind_of
from ullage.values.messages import Text, ToolCall, ToolResult

__all__ = ["Deed", "Said", "decisions", "deeds", "open_items", "said", "sentences", "unresolved"]

Verb: TypeAlias = Literal["read", "changed", "removed", "ran", "did"]

_PATHS = ("file_path", "path", "filename", "file", "filepath", "notebook_path", "target_file")
_COMMANDS = ("command", "cmd", "script", "code")
_CHANGES = ("write", "edit", "create", "patch", "replace", "insert", "append", "update", "move")
_REMOVALS = ("delete", "remove", "unlink")
_EXIT = re.compile(r"(?i)\bexit(?:ed with)?[ _]?(?:code|status)?\"?[:= ]+(-?\d+)\b")
_ERROR = re.compile(r"(?i)\b(?:\w*error|exception|fail(?:ed|ure)?|fatal|panic|denied|not found)\b")
_EDGE_CHARS = 4_000
_LINE_CHARS = 160
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$))+[.!?]*")
_DECIDED = re.compile(
    r"(?i)\b(?:decid|chose|choose|instead of|because|root cause|the cause|turns out|conclu|"
    r"will use|we use|fixed|the fix|approach)"
)
_OPEN = re.compile(r"(?i)\b(?:next|todo|still|remain|open|later|then i|need to|have to|pending)")
_DONE = frozenset(("completed", "done", "cancelled", "canceled", "closed"))
_decode = msgspec.json.Decoder().decode


class Deed(Struct, frozen=True, kw_only=True):
    """One tool call, and how it ended.

    Attributes:
        index: the message of its result; of the call, if there is none.
        tool: name of the tool.
        verb: what it did to its subject.
        subject: the file, the command, or the arguments as they were written.
        ended: whether it worked; None if no result came.
        error: the line that says what went wrong, ``""`` if nothing did.
        refs: what opens its output, and how many characters that has.
    """

    index: int
    tool: str
    verb: Verb
    subject: str
    ended: bool | None
    error: str = ""
    refs: tuple[tuple[str, int], ...] = ()


class Said(Struct, frozen=True):
    """A text of the user or the model: its message and the text."""

    index: int
    text: str


def said(transcript: Transcript, start: int, stop: int, role: str) -> Iterator[Said]:
    """What a role said in a run of messages, in order."""
    for index in range(start, stop):
        message = transcript.messages[index]
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        text = "\n".join(texts).strip() if message.role == role else ""
        if text:
            yield Said(index, text)


def deeds(transcript: Transcript, start: int, stop: int) -> list[Deed]:
    """Every tool call of a run of messages, in the order in which they ended."""
    run = range(start, stop)
    ended = [pair for index in run for pair in transcript.once(_ENDED, index)]
    answered = {call for call, _ in ended}
    begun = (pair for index in run for pair in transcript.once(_BEGUN, index))
    return [deed for _, deed in ended] + [deed for call, deed in begun if call not in answered]


_Calling: TypeAlias = tuple[int, str]
"""A call: its message, and its id."""


def _ended(transcript: Transcript, index: int) -> tuple[tuple[_Calling, Deed], ...]:
    """What the results of a message ended."""
    parts = transcript.messages[index].parts
    calls = [
        (number, part, transcript.call_for(index, number))
        for number, part in enumerate(parts)
        if isinstance(part, ToolResult)
    ]
    return tuple(
        (
            (transcript.home(index, number) or 0, call.id),
            _deed(transcript, index, number, part, call),
        )
        for number, part, call in calls
        if call is not None
    )


def _begun(transcript: Transcript, index: int) -> tuple[tuple[_Calling, Deed], ...]:
    """The calls of a message, as they are while none has an answer."""
    found = []
    for call in transcript.messages[index].calls:
        verb, subject = _of(call)
        deed = Deed(index=index, tool=call.name, verb=verb, subject=subject, ended=None)
        found.append(((index, call.id), deed))
    return tuple(found)


_ENDED = Measure("ullage.ended", _ended)
_BEGUN = Measure("ullage.begun", _begun)


def _deed(
    transcript: Transcript, index: int, number: int, result: ToolResult, call: ToolCall
) -> Deed:
    outputs = tuple(transcript.outputs(index, number))
    text = next((output.text for output in outputs if output.kind == "text"), "")
    verb, subject = _of(call)
    failed = result.is_error or (verb == "ran" and _failed(text))
    return Deed(
        index=index,
        tool=call.name,
        verb=verb,
        subject=subject,
        ended=not failed,
        error=_error_line(text) if failed else "",
        refs=tuple((output.ref, len(output.text)) for output in outputs),
    )


def _of(call: ToolCall) -> tuple[Verb, str]:
    """What a call does, and to what."""
    arguments = _fields(call.arguments)
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), "")
    command = next((arguments[key] for key in _COMMANDS if isinstance(arguments.get(key), str)), "")
    name = call.name.lower()
    if path and any(word in name for word in _REMOVALS):
        return "removed", path
    if path and any(word in name for word in _CHANGES):
        return "changed", path
    if command:
        return "ran", command
    if path and kind_of(call.name) == "read":
        return "read", path
    return ("ran" if kind_of(call.name) == "shell" else "did"), call.arguments


def _fields(arguments: str) -> Mapping[str, Any]:
    try:
        value = _decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _edges(text: str) -> str:
    return text if len(text) <= 2 * _EDGE_CHARS else text[:_EDGE_CHARS] + text[-_EDGE_CHARS:]


def _failed(text: str) -> bool:
    """Whether the output of a command says that it failed."""
    edges = _edges(text)
    codes = _EXIT.findall(edges)
    return codes[-1].strip("-") != "0" if codes else "Traceback (most recent call last)" in edges


def _error_line(text: str) -> str:
    lines = [" ".join(line.split()) for line in _edges(text).splitlines() if line.strip()]
    told = [line for line in lines if _ERROR.search(line)] or lines
    return told[-1][:_LINE_CHARS] if told else "no output"


def unresolved(done: Sequence[Deed]) -> list[Deed]:
    """The failures that no later call of the same tool on the same subject has made good."""
    newest: dict[tuple[str, str], Deed] = {}
    for deed in done:
        if deed.ended is not None:
            newest.pop((deed.tool, deed.subject), None)
            newest[deed.tool, deed.subject] = deed
    return [deed for deed in newest.values() if not deed.ended]


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text."""
    return (found for match in _SENTENCE.finditer(text) if (found := match[0].strip()))


def decisions(texts: Sequence[Said]) -> list[Said]:
    """The sentences in which the model decides something or gives a reason."""
    return [
        Said(each.index, sentence)
        for each in texts
        for sentence in sentences(each.text)
        if _DECIDED.search(sentence)
    ]


def open_items(transcript: Transcript, start: int, stop: int, texts: Sequence[Said]) -> list[Said]:
    """What is not done: the newest list of tasks, calls without a result, what is to come."""
    found: list[Said] = []
    for index in range(stop - 1, start - 1, -1):
        tasks = [_tasks(call) for call in transcript.messages[index].calls]
        if any(tasks):
            found = [Said(index, task) for each in tasks for task in each]
            break
    newest = [Said(texts[-1].index, each) for each in sentences(texts[-1].text)] if texts else []
    return found + [each for each in newest if _OPEN.search(each.text)]


def _tasks(call: ToolCall) -> list[str]:
    """The tasks of a list that a call writes down and that are not done."""
    if not any(word in call.name.lower() for word in ("todo", "plan", "task")):
        return []
    lists = [value for value in _fields(call.arguments).values() if isinstance(value, list)]
    items = [item for each in lists for item in each if isinstance(item, dict)]
    return [_task(item) for item in items if str(item.get("status", "")).lower() not in _DONE]


def _task(item: Mapping[str, Any]) -> str:
    """One task in words, its id and its state beside it."""
    texts = (item.get(key) for key in ("content", "text", "title", "step", "task", "description"))
    text = next((text for text in texts if isinstance(text, str)), "")
    beside = ", ".join(str(item[key]) for key in ("id", "status") if item.get(key))
    return f"{text} ({beside})" if beside else text
