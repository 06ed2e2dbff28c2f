"""A range of messages as text: its account, and what a summarising model is given.

The account is what the model sees: one bullet for each step, newest kept when room is short. What
is complete is the index (`ullage.core.history.index`). Both are pure functions of the messages, so
they come out the same wherever the range is condensed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias, overload

from ullage.core.history import canon
from ullage.core.history.index import line_of_call
from ullage.core.history.measures import Fold
from ullage.core.history.transcript import Location, Transcript
from ullage.core.values.effects import Output
from ullage.core.values.messages import Message, Opaque, Passage, Text, ToolResult
from ullage.core.values.notices import Words
from ullage.core.values.texts import on_one_line
from ullage.policy.stages.facts import question_of
from ullage.policy.stages.quotes import Texts, quotes
from ullage.policy.stages.shorten import ends_of
from ullage.policy.stages.user_texts import NAMED, opening

_USER = "- user: "
_BULLET_CHARS = 140
"""About what a bullet takes."""
_SAID_CHARS = 200
_GAVE_CHARS = 80
_RESULT_CHARS = 6_000
_ARGUMENTS_CHARS = 1_000
_GAP = "\n[… {:,} characters …]\n"

_Step: TypeAlias = tuple[str, int, int]
"""Something worth a bullet: who speaks, message index, part index.

An answer of the user to a tool is two: the question, as that of a tool, and the user's words."""


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
        f"{words.read_on(index_ref, 0)}{words.find_lines}]"
    )
    done = transcript.folded(_DONE, start, stop)
    shown = quotes(
        done.texts, user_chars, frame_chars=len(f"{_USER}\n"), ref_of=done.ref_of
    )
    lines = _newest(transcript, done, room_chars - len(head) - 60)
    here = len(done.said)
    if said_until is not None:
        here = bisect_left(
            done.said, said_until, key=lambda number: done.steps[number][1]
        )
    lines |= {
        done.said[at]: f"{_USER}{text}" for at, text in shown.items() if at < here
    }
    bullets = [lines[number] for number in sorted(lines)]
    elsewhere = len(done.said) - here
    missing = len(done.steps) - len(bullets) - elsewhere
    if missing:
        bullets.insert(0, f"- … {missing:,} more: see the index")
    named = (at for at, text in shown.items() if "ref=" in text)
    if any(f"ref={done.ref_of(at)}" in shown[at] for at in named):
        bullets.insert(0, opening(words))
    if summary:
        head = f"{head}\n\n{summary}\n\n## Steps"
    return "\n".join([head, *bullets])


def user_outputs(
    transcript: Transcript, start: int, stop: int, shown: str
) -> list[Output]:
    """What the user said in a range and its account names by a ref, each once."""
    done = transcript.folded(_DONE, start, stop)
    named = {done.by_ref[ref] for ref in NAMED.findall(shown) if ref in done.by_ref}
    return [_output_of(transcript, done.steps[number]) for number in sorted(named)]


def said_chars(transcript: Transcript, start: int, stop: int) -> int:
    """About how many characters an account takes that quotes all the user said in a range."""
    return transcript.folded(_SAID, start, stop).chars_before(stop)


def done_chars(transcript: Transcript, start: int, stop: int) -> int:
    """About how many characters an account takes that has a bullet for everything else."""
    return len(transcript.folded(_DONE, start, stop).others) * _BULLET_CHARS


class _Done:
    """What of a range is worth a bullet, and of that what the user said.

    Attributes:
        steps: everything, oldest first.
        others: the numbers of the steps that are not the user's words.
        said: the numbers of those that are.
        texts: the user's words, as `quotes` takes them.
        by_ref: the first of the user's steps that each ref opens.
    """

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self.others: list[int] = []
        self.said: list[int] = []
        self.texts = Texts()
        self.by_ref: dict[str, int] = {}
        self._refs: list[str] = []

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in the steps of a message."""
        for step in _steps(transcript, index):
            number = len(self.steps)
            self.steps.append(step)
            words = _text_of(transcript, step) if step[0] == "user" else ""
            if (
                not words
            ):  # a document that the user handed over is not the user's words
                self.others.append(number)
                continue
            self.said.append(number)
            self.texts.append(words)
            ref = _output_of(transcript, step).ref
            self.by_ref.setdefault(ref, number)
            self._refs.append(ref)

    def ref_of(self, at: int) -> str:
        """What opens a text of the user, by its place in ``texts``."""
        return self._refs[at]


_DONE = Fold("ullage.done", _Done, _Done.add)


class _Said:
    """How many characters the different texts of the user have that an account quotes."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._places: list[int] = []
        self._chars = [0]

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what the user says in a message."""
        for step in _steps(transcript, index):
            text = _text_of(transcript, step) if step[0] == "user" else ""
            if text and text not in self._texts:
                self._texts.add(text)
                self._places.append(index)
                self._chars.append(self._chars[-1] + len(text) + len(_USER) + 1)

    def chars_before(self, stop: int) -> int:
        """Of what was said before a message."""
        return self._chars[bisect_left(self._places, stop)]


_SAID = Fold("ullage.said", _Said, _Said.add, looks_back=True)


def _newest(transcript: Transcript, done: _Done, room: int) -> dict[int, str]:
    """The newest bullets that fit, by the number of their step, but for what the user said."""
    lines = dict[int, str]()
    for number in reversed(done.others):
        line = _bullet(transcript, *done.steps[number])
        if len(line) >= room:
            break
        lines[number] = line
        room -= len(line) + 1
    return lines


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
    if message.is_permanent:
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
        is_short = (
            output.kind == "text" and len(text) <= _GAVE_CHARS and text.isprintable()
        )
        gave.append(text if is_short else _by_ref(transcript, spot, text))
    return f"- {line_of_call(call) if call else 'a tool'} → {failed}{'; '.join(gave) or 'nothing'}"


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
                    lines.append(
                        f"the user answers {call.name if call else 'a tool'}: {words}"
                    )
                    continue
                text = "\n".join(
                    each.text for each in part.content if isinstance(each, Text)
                )
                given = ends_of(text, _RESULT_CHARS, _GAP) or "no text"
                failed = "error: " if part.is_error else ""
                lines.append(
                    f"result of {call.name if call else 'a tool'}: {failed}{given}"
                )
        for call in message.calls if index < stop - 1 else ():
            lines.append(
                f"calls {call.name} {ends_of(call.arguments, _ARGUMENTS_CHARS, _GAP)}"
            )
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


class Flattened(Sequence[str]):
    """A range as `flatten` gives it, worked out when it is read: nobody may be asked at all."""

    def __init__(self, transcript: Transcript, start: int, stop: int) -> None:
        self._range = transcript, start, stop

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        return flatten(*self._range)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Flattened):
            return self._range == other._range or self._pieces == other._pieces
        return isinstance(other, tuple) and self._pieces == other

    def __hash__(self) -> int:
        return hash(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...

    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        return self._pieces[at]
