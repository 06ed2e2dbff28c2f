"""What a range of messages holds as facts: what was done to what, and how it ended.

Read from calls and results alone, never from what the model says of them (failure F52), and
a pure function of the messages, so that nothing decays however often a range is summarised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.contract.kinds import fields_of, kind_of
from ullage.core.history.measures import Fold, Measure
from ullage.core.history.transcript import Transcript
from ullage.core.values.briefs import Fact
from ullage.core.values.effects import Output
from ullage.core.values.messages import Text, ToolCall, ToolResult
from ullage.core.values.texts import on_one_line

_Signature: TypeAlias = tuple[str, str, tuple[tuple[str, int], ...]]
Verb: TypeAlias = Literal["read", "changed", "removed", "ran", "did"]

_PATHS = (
    "file_path",
    "path",
    "filename",
    "file",
    "filepath",
    "notebook_path",
    "target_file",
)
_COMMANDS = ("command", "cmd", "script", "code")
_TASK_TEXTS = ("content", "text", "title", "step", "task", "description")
_CHANGES = (
    "write",
    "edit",
    "create",
    "patch",
    "replace",
    "insert",
    "append",
    "update",
    "move",
)
_REMOVALS = ("delete", "remove", "unlink")
_EXIT = re.compile(r"(?i)\bexit(?:ed with)?[ _]?(?:code|status)?\"?[:= ]+(-?\d+)\b")
_ERROR = re.compile(
    r"(?i)\b(?:\w*error|exception|fail(?:ed|ure)?|fatal|panic|denied|not found)\b"
)
_TRACEBACK = "Traceback (most recent call last)"
_EDGE_CHARS = 4_000
_LINE_CHARS = 160
SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$))+[.!?]*")
"""A sentence, or a line where that ends first."""
_DECIDED = re.compile(
    r"(?i)\b(?:decid|chose|choose|instead of|because|root cause|the cause|turns out|conclu|"
    r"will use|we use|fixed|the fix|approach)"
)
_OPEN = re.compile(
    r"(?i)\b(?:next|todo|still|remain|open|later|then i|need to|have to|pending)"
)
_CHANGED = ("changed", "removed")
_DONE = frozenset(("completed", "done", "cancelled", "canceled", "closed"))
_MOST_ESSENTIALS = 12
_FACT_CHARS = 80
_QUESTION_CHARS = 400
_NAME = re.compile(r"[\w.\-]{4,}")


class Action(Struct, frozen=True, kw_only=True):
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
    """A text of the user or the model: its message and the text.

    ``asked`` is the question that it answers, where it came through a tool: the tool's name and
    what it was asked.
    """

    index: int
    text: str
    asked: str = ""


def said(transcript: Transcript, start: int, stop: int, role: str) -> Iterator[Said]:
    """What a role said in a range of messages, in order; of the user also what tools were told."""
    if role == "user":
        yield from _user_said(transcript, start, stop)
        return
    for index in range(start, stop):
        message = transcript.messages[index]
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if message.role == role and (text := "\n".join(texts).strip()):
            yield Said(index, text)


def _user_said(transcript: Transcript, start: int, stop: int) -> Iterator[Said]:
    for index in transcript.marked("words", start, stop):
        spoken = []
        for number, part in enumerate(transcript.messages[index].parts):
            words = transcript.words(index, number).strip()
            if words and isinstance(part, Text):
                spoken.append(words)
            elif words:
                yield Said(index, words, question_of(transcript, index, number))
        if spoken:
            yield Said(index, "\n".join(spoken))


def question_of(transcript: Transcript, index: int, number: int) -> str:
    """What the user answers in this part: the tool that asked, and the question as it was put."""
    call = transcript.call_for(index, number)
    return (
        ""
        if call is None
        else f"{call.name} {on_one_line(call.arguments, _QUESTION_CHARS)}"
    )


def actions(transcript: Transcript, start: int, stop: int) -> list[Action]:
    """Every tool call of a range of messages in the order in which they ended, then the open."""
    calls = transcript.folded(CALLS, start, stop)
    return [*calls.ended, *calls.waiting]


def _actions(
    transcript: Transcript, index: int
) -> list[tuple[tuple[int, str], Action]]:
    """What each call of a message does, and what each of its results ended, by the call."""
    found = []
    for number, part in enumerate(transcript.messages[index].parts):
        if isinstance(part, ToolCall):
            found.append(((index, part.id), _asked(part, index)))
        elif isinstance(part, ToolResult) and (
            call := transcript.call_for(index, number)
        ):
            outputs = tuple(transcript.outputs(index, number))
            home = transcript.call_index(index, number) or 0
            found.append(((home, call.id), _ended(_asked(call, index), part, outputs)))
    return found


_ACTIONS = Measure("ullage.actions", _actions)


class Calls:
    """The tool calls of a range: how often each was made, and which wait for their results.

    Attributes:
        ended: what came of those that have a result, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.ended: list[Action] = []
        self._times = Counter[_Signature]()
        self._waiting: dict[tuple[int, str], list[Action]] = {}

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in the calls and the results of a message."""
        for call, action in transcript.once(_ACTIONS, index):
            if action.ended is None:
                self._waiting.setdefault(call, []).append(action)
            else:
                self._waiting.pop(call, None)
                self.ended.append(action)
                self._times[_signature(action)] += 1

    @property
    def waiting(self) -> list[Action]:
        """What was called and waits for its result, in the order in which it was called."""
        return [action for actions in self._waiting.values() for action in actions]

    def among(self, transcript: Transcript, messages: Iterable[int]) -> list[Action]:
        """What ended in these messages, and what was called in them and waits."""
        pairs = (
            pair for index in messages for pair in transcript.once(_ACTIONS, index)
        )
        waiting = self._waiting
        return [it for call, it in pairs if it.ended is not None or call in waiting]

    def repeated(self, new: Iterable[Action]) -> int:
        """How many of these calls of the range were made in it before, by others than these."""
        mine = Counter(map(_signature, new))
        waiting = Counter(map(_signature, self.waiting))
        known = (
            count
            for each, count in mine.items()
            if self._times[each] + waiting[each] > count
        )
        return sum(known)


CALLS = Fold("ullage.calls", Calls, Calls.add)


def _signature(action: Action) -> _Signature:
    """What two calls have in common of which one repeats the other."""
    return action.tool, action.subject, action.refs


def _asked(call: ToolCall, index: int) -> Action:
    """What a call is to do, and to what; nothing has come of it yet."""
    arguments, name = fields_of(call.arguments) or {}, call.name.lower()
    path, command = _first_text(arguments, _PATHS), _first_text(arguments, _COMMANDS)
    verb: Verb = "ran" if kind_of(call.name) == "shell" else "did"
    subject = call.arguments
    if path and any(word in name for word in _REMOVALS):
        verb, subject = "removed", path
    elif path and is_change(name):
        verb, subject = "changed", path
    elif command:
        verb, subject = "ran", command
    elif path and kind_of(call.name) == "read":
        verb, subject = "read", path
    return Action(index=index, tool=call.name, verb=verb, subject=subject, ended=None)


def _ended(asked: Action, result: ToolResult, outputs: Sequence[Output]) -> Action:
    """What came of a call. A command's output tells whether it failed: at its edges."""
    text = next((output.text for output in outputs if output.kind == "text"), "")
    edges = (
        text
        if len(text) <= 2 * _EDGE_CHARS
        else text[:_EDGE_CHARS] + text[-_EDGE_CHARS:]
    )
    failed = result.is_error
    if asked.verb == "ran" and not failed:
        codes = _EXIT.findall(edges)
        failed = codes[-1].strip("-") != "0" if codes else _TRACEBACK in edges
    every = edges.splitlines() if failed else ()
    lines = [" ".join(line.split()) for line in every if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)] or lines or ["no output"]
    return replace(
        asked,
        ended=not failed,
        error=errors[-1][:_LINE_CHARS] if failed else "",
        refs=tuple((output.ref, len(output.text)) for output in outputs),
    )


def is_change(tool: str) -> bool:
    """Whether a tool of this name changes what it is given."""
    return any(word in tool.lower() for word in _CHANGES)


def _first_text(fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((fields[key] for key in keys if isinstance(fields.get(key), str)), "")


def unresolved(done: Sequence[Action]) -> list[Action]:
    """The failures that no later call of the same tool on the same subject has made good."""
    newest: dict[tuple[str, str], Action] = {}
    for action in done:
        if action.ended is not None:
            newest.pop((action.tool, action.subject), None)
            newest[action.tool, action.subject] = action
    return [action for action in newest.values() if not action.ended]


def essentials(done: Sequence[Action]) -> tuple[Fact, ...]:
    """The newest facts that a model's summary may not leave out, each once (failures F50, F52).

    A file that was changed, a failure that was not made good, a call without an answer. The
    calls are in the order in which they ended.
    """
    changed = (each.subject for each in done if each.verb in _CHANGED and each.ended)
    facts = [(path, path, path.rsplit("/", 1)[-1]) for path in changed]
    facts += [
        (it.error, it.subject, *_NAME.findall(it.error)) for it in unresolved(done)
    ]
    waiting = (each for each in done if each.ended is None)
    facts += [
        (f"{each.tool} {each.subject}", each.tool, each.subject) for each in waiting
    ]
    found: dict[str, Fact] = {}
    for shown, *names in facts:
        shown = on_one_line(shown, _FACT_CHARS)
        found.pop(shown, None)
        found[shown] = Fact(shown, tuple(names))
    return tuple(found.values())[-_MOST_ESSENTIALS:]


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text."""
    return (found for match in SENTENCE.finditer(text) if (found := match[0].strip()))


class ModelTexts:
    """What the model says in a range.

    Attributes:
        decisions: the sentences in which it decides something or gives a reason.
    """

    def __init__(self) -> None:
        self.decisions: list[Said] = []
        self._tasks: list[Said] = []
        self._newest: Said | None = None

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what it says in a message."""
        for text in said(transcript, index, index + 1, "assistant"):
            self._newest = text
            decided = (each for each in sentences(text.text) if _DECIDED.search(each))
            self.decisions += [Said(index, sentence) for sentence in decided]
        calls = transcript.messages[index].calls
        self._tasks = [
            Said(index, task) for call in calls for task in _tasks(call)
        ] or self._tasks

    @property
    def open_items(self) -> list[Said]:
        """What is not done: the newest list of tasks, and what the model said is to come."""
        if self._newest is None:
            return [*self._tasks]
        index, text = self._newest.index, self._newest.text
        to_come = (sentence for sentence in sentences(text) if _OPEN.search(sentence))
        return [*self._tasks, *(Said(index, sentence) for sentence in to_come)]


MODEL_TEXTS = Fold("ullage.model_texts", ModelTexts, ModelTexts.add)


def _tasks(call: ToolCall) -> list[str]:
    """The tasks of a list that a call writes down and that are not done: text, id and state."""
    if not any(word in call.name.lower() for word in ("todo", "plan", "task")):
        return []
    tasks = []
    for each in (fields_of(call.arguments) or {}).values():
        for item in each if isinstance(each, list) else ():
            if (
                isinstance(item, dict)
                and str(item.get("status", "")).lower() not in _DONE
            ):
                text = _first_text(item, _TASK_TEXTS)
                beside = ", ".join(
                    str(item[key]) for key in ("id", "status") if item.get(key)
                )
                tasks.append(f"{text} ({beside})" if beside else text)
    return tasks
