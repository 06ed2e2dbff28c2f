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

_Refs: TypeAlias = tuple[tuple[str, int], ...]
_Signature: TypeAlias = tuple[str, str, _Refs]
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
_EXIT = re.compile(
    r"(?i)\bexit(?:ed with)?[ _]?(?:code|status)?\"?[:= ]+(-?\d+)\b"
)
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
    refs: _Refs = ()


class Utterance(Struct, frozen=True):
    """A text of the user or the model.

    Attributes:
        index: its message.
        text: the text.
        question: what it answers, where it came through a tool: the tool's name and what it was
            asked; else ``""``.
    """

    index: int
    text: str
    question: str = ""


def utterances(
    transcript: Transcript,
    start: int,
    stop: int,
    role: str,
) -> Iterator[Utterance]:
    """What a role said in a range of messages, in order; of the user also what tools were told."""
    if role == "user":
        yield from _user_utterances(transcript, start, stop)
        return
    for index in range(start, stop):
        message = transcript.messages[index]
        if message.role != role:
            continue
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        text = "\n".join(texts).strip()
        if text:
            yield Utterance(index, text)


def _user_utterances(
    transcript: Transcript,
    start: int,
    stop: int,
) -> Iterator[Utterance]:
    for index in transcript.marked("user_words", start, stop):
        spoken = []
        for number, part in enumerate(transcript.messages[index].parts):
            words = transcript.user_words(index, number).strip()
            if words and isinstance(part, Text):
                spoken.append(words)
            elif words:
                yield Utterance(
                    index, words, question_of(transcript, index, number)
                )
        if spoken:
            yield Utterance(index, "\n".join(spoken))


def question_of(transcript: Transcript, index: int, number: int) -> str:
    """What the user answers in this part: the tool that asked, and the question as it was put."""
    call = transcript.call_for(index, number)
    if call is None:
        return ""
    return f"{call.name} {on_one_line(call.arguments, _QUESTION_CHARS)}"


def actions(transcript: Transcript, start: int, stop: int) -> list[Action]:
    """Every tool call of a range of messages in the order in which they ended, then the open."""
    calls = transcript.folded(CALLS, start, stop)
    return [*calls.ended, *calls.waiting]


def _actions(
    transcript: Transcript, index: int
) -> list[tuple[tuple[int, str], Action]]:
    """What each call of a message does, and what each of its results ended, by the call."""
    pairs = []
    for number, part in enumerate(transcript.messages[index].parts):
        if isinstance(part, ToolCall):
            pairs.append(((index, part.id), _begun(part, index)))
        if not isinstance(part, ToolResult):
            continue
        call = transcript.call_for(index, number)
        if call is not None:
            home = (
                transcript.call_index(index, number) or 0
            )  # where the call was made
            outputs = tuple(transcript.outputs(index, number))
            action = _ended(_begun(call, index), part, outputs)
            pairs.append(((home, call.id), action))
    return pairs


_ACTIONS = Measure("ullage.actions", _actions)


class CallHistory:
    """The tool calls of a range: how often each was made, and which wait for their results.

    Attributes:
        ended: the outcome of those that have a result, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.ended: list[Action] = []
        self._times = Counter[_Signature]()
        self._waiting: dict[tuple[int, str], list[Action]] = {}

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in the calls and the results of a message."""
        for call, action in transcript.once(_ACTIONS, index):
            # a result may answer a call of an earlier message, so calls wait by their place
            if action.ended is None:
                self._waiting.setdefault(call, []).append(action)
            else:
                self._waiting.pop(call, None)
                self.ended.append(action)
                self._times[_signature(action)] += 1

    @property
    def waiting(self) -> list[Action]:
        """What was called and waits for its result, in the order in which it was called."""
        waiting = list[Action]()
        for actions_of_call in self._waiting.values():
            waiting += actions_of_call
        return waiting

    def among(
        self, transcript: Transcript, messages: Iterable[int]
    ) -> list[Action]:
        """What ended in these messages, and what was called in them and waits."""
        actions_there = []
        for index in messages:
            for call, action in transcript.once(_ACTIONS, index):
                if action.ended is not None or call in self._waiting:
                    actions_there.append(action)
        return actions_there

    def repeated(self, newest: Iterable[Action]) -> int:
        """How many of these calls of the range were made in it before, by others than these."""
        waiting = Counter(_signature(action) for action in self.waiting)
        counts = Counter(_signature(action) for action in newest)
        total = 0
        for signature, count in counts.items():
            if self._times[signature] + waiting[signature] > count:
                total += count
        return total


CALLS = Fold("ullage.calls", CallHistory, CallHistory.add)


def _signature(action: Action) -> _Signature:
    """What two calls have in common of which one repeats the other."""
    return action.tool, action.subject, action.refs


def _begun(call: ToolCall, index: int) -> Action:
    """What a call is to do, and to what; nothing has come of it yet."""
    arguments = fields_of(call.arguments) or {}
    path = _first_text(arguments, _PATHS)
    command = _first_text(arguments, _COMMANDS)
    kind = kind_of(call.name)
    name = call.name.lower()
    verb: Verb = "ran" if kind == "shell" else "did"
    subject = call.arguments
    # what a call changes says more than how: a path comes before a command
    if path and any(word in name for word in _REMOVALS):
        verb = "removed"
        subject = path
    elif path and is_change(name):
        verb = "changed"
        subject = path
    elif command:
        verb = "ran"
        subject = command
    elif path and kind == "read":
        verb = "read"
        subject = path
    return Action(
        index=index, tool=call.name, verb=verb, subject=subject, ended=None
    )


def _ended(
    action: Action, result: ToolResult, outputs: Sequence[Output]
) -> Action:
    """What came of a call. A command's output tells whether it failed: at its edges."""
    edges = _edges(outputs)
    is_failure = result.is_error
    if action.verb == "ran" and not is_failure:
        is_failure = _tells_failure(edges)
    refs = []
    for output in outputs:
        refs.append((output.ref, len(output.text)))
    return replace(
        action,
        ended=not is_failure,
        error=_error_line(edges) if is_failure else "",
        refs=tuple(refs),
    )


def _edges(outputs: Sequence[Output]) -> str:
    """The beginning and the end of the first text that a call gave."""
    for output in outputs:
        if output.kind == "text":
            text = output.text
            break
    else:
        return ""
    if len(text) <= 2 * _EDGE_CHARS:
        return text
    return text[:_EDGE_CHARS] + text[-_EDGE_CHARS:]


def _tells_failure(text: str) -> bool:
    """Whether a command's output says that it failed: by its last exit code, if it names one."""
    # a script may print several; the last is the command's own
    codes = _EXIT.findall(text)
    if codes:
        return bool(codes[-1].strip("-") != "0")
    return _TRACEBACK in text


def _error_line(text: str) -> str:
    """The last line that speaks of an error, or the last line."""
    newest = "no output"
    newest_error = ""
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        newest = " ".join(words)
        if _ERROR.search(newest):
            newest_error = newest
    error = newest_error or newest
    return error[:_LINE_CHARS]


def is_change(tool: str) -> bool:
    """Whether a tool of this name changes what it is given."""
    return any(word in tool.lower() for word in _CHANGES)


def _first_text(fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these fields that is a text; ``""`` if none is."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            return value
    return ""


def unresolved(done: Sequence[Action]) -> list[Action]:
    """The failures that no later call of the same tool on the same subject has made good."""
    newest: dict[tuple[str, str], Action] = {}
    for action in done:
        if action.ended is not None:
            key = action.tool, action.subject
            newest.pop(key, None)  # it stands where it came up last
            newest[key] = action
    return [action for action in newest.values() if not action.ended]


def essentials(done: Sequence[Action]) -> tuple[Fact, ...]:
    """The newest facts that a model's summary may not leave out, each once (failures F50, F52).

    A file that was changed, a failure that was not made good, a call without an answer.

    Args:
        done: calls, in the order in which they ended.
    """
    facts: dict[str, Fact] = {}
    for text, *names in _facts(done):
        line = on_one_line(text, _FACT_CHARS)
        facts.pop(line, None)  # it stands where it came up last
        facts[line] = Fact(line, tuple(names))
    return tuple(facts.values())[-_MOST_ESSENTIALS:]


def _facts(done: Sequence[Action]) -> Iterator[tuple[str, ...]]:
    """Each fact, and the names of which a summary has to use one."""
    for action in done:
        if action.verb in _CHANGED and action.ended:
            path = action.subject
            file_name = path.rsplit("/", 1)[-1]
            yield path, path, file_name
    for action in unresolved(done):
        names = _NAME.findall(action.error)
        yield action.error, action.subject, *names
    for action in done:
        if action.ended is None:
            yield (
                f"{action.tool} {action.subject}",
                action.tool,
                action.subject,
            )


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text."""
    for match in SENTENCE.finditer(text):
        sentence = match[0].strip()
        if sentence:
            yield sentence


class ModelTexts:
    """What the model says in a range.

    Attributes:
        decisions: the sentences in which it decides something or gives a reason.
    """

    def __init__(self) -> None:
        self.decisions: list[Utterance] = []
        self._tasks: list[Utterance] = []
        self._newest: Utterance | None = None

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what it says in a message."""
        for utterance in utterances(transcript, index, index + 1, "assistant"):
            self._newest = utterance
            for sentence in sentences(utterance.text):
                if _DECIDED.search(sentence):
                    self.decisions.append(Utterance(index, sentence))
        tasks = []
        for call in transcript.messages[index].calls:
            for task in _tasks(call):
                tasks.append(Utterance(index, task))
        # a list is written anew as a whole: the newest stands for all
        if tasks:
            self._tasks = tasks

    @property
    def open_items(self) -> list[Utterance]:
        """What is not done: the newest list of tasks, and what the model said is to come."""
        items = [*self._tasks]
        if self._newest is None:
            return items
        for sentence in sentences(self._newest.text):
            if _OPEN.search(sentence):
                items.append(Utterance(self._newest.index, sentence))
        return items


MODEL_TEXTS = Fold("ullage.model_texts", ModelTexts, ModelTexts.add)


def _tasks(call: ToolCall) -> list[str]:
    """The tasks of a list that a call writes down and that are not done: text, id and state."""
    if not any(word in call.name.lower() for word in ("todo", "plan", "task")):
        return []
    tasks = []
    for field in (fields_of(call.arguments) or {}).values():
        if not isinstance(field, list):
            continue
        for item in field:
            if isinstance(item, dict) and _is_open(item):
                tasks.append(_task_line(item))
    return tasks


def _is_open(task: Mapping[str, Any]) -> bool:
    """Whether a task is not done, by its own word."""
    return str(task.get("status", "")).lower() not in _DONE


def _task_line(task: Mapping[str, Any]) -> str:
    """A task in one line: its text, id and state."""
    text = _first_text(task, _TASK_TEXTS)
    details = []
    for key in ("id", "status"):
        if task.get(key):
            details.append(str(task[key]))
    return f"{text} ({', '.join(details)})" if details else text
