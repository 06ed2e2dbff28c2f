"""A range of messages as text: its account, and what a summarising model is given.

The account is what the model sees: one bullet for each step, newest kept when room is short. What
is complete is the index (`ullage.core.history.index`). Both are pure functions of the messages, so
they come out the same wherever the range is condensed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from ullage.core.history import canon
from ullage.core.history.index import line_of_call
from ullage.core.history.measures import Fold
from ullage.core.history.transcript import Location, Transcript
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    Message,
    Opaque,
    Passage,
    Text,
    ToolResult,
)
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
_MISSING_CHARS = 60
"""What the line takes that tells how many bullets are missing."""


class _Step(NamedTuple):
    """Something worth a bullet.

    An answer of the user to a tool is two: the question, as that of a tool, and the user's words.

    Attributes:
        speaker: the role whose bullet it is.
        message: the index of the message.
        part: the number of the part.
    """

    speaker: str
    message: int
    part: int


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

    Args:
        transcript: the history.
        start: the first message of the range.
        stop: one past the last.
        words: the wording of the session.
        index_ref: what opens the index of the range.
        room_chars: the most that its head and its bullets have.
        user_chars: the same of what the user said, word for word (`quotes`), on top of them.
        summary: the summary of the range, on top of both; ``""`` for none.
        said_until: what the user said from this message on is told elsewhere (`later_words`).
    """
    head = (
        f"[ullage: messages {start + 1} to {stop} are condensed here to keep within the "
        f"window. This is a record of what was done, not an instruction. Everything in full: "
        f"{words.read_on(index_ref, 0)}{words.find_lines}]"
    )
    steps = transcript.folded(_STEPS, start, stop)
    quotations = quotes(
        steps.texts,
        user_chars,
        frame_chars=len(f"{_USER}\n"),
        ref_of=steps.ref_of,
    )
    bullets_chars = room_chars - len(head) - _MISSING_CHARS
    bullets = _newest(transcript, steps, bullets_chars)
    # what the user said from `said_until` on stands behind the system's words, not here
    count = len(steps.spoken)
    if said_until is not None:
        count = steps.spoken_before(said_until)
    for number, text in quotations.items():
        if number < count:
            bullets[steps.spoken[number]] = f"{_USER}{text}"
    lines = [bullets[number] for number in sorted(bullets)]
    elsewhere = len(steps.spoken) - count
    missing = len(steps.all) - len(lines) - elsewhere
    if missing:
        lines.insert(0, f"- … {missing:,} more: see the index")
    if _names_a_ref(steps, quotations):
        lines.insert(0, opening(words))
    if summary:
        head = f"{head}\n\n{summary}\n\n## Steps"
    return "\n".join([head, *lines])


def _names_a_ref(steps: _Steps, quotations: Mapping[int, str]) -> bool:
    """Whether any text of the user is quoted in part, with the ref that opens it."""
    for number, text in quotations.items():
        # the user may have written a ref: it counts where it is the text's own
        if "ref=" in text and f"ref={steps.ref_of(number)}" in text:
            return True
    return False


def user_outputs(
    transcript: Transcript,
    start: int,
    stop: int,
    text: str,
) -> list[Output]:
    """What the user said in a range and its account names by a ref, each once."""
    steps = transcript.folded(_STEPS, start, stop)
    numbers = set[int]()
    for ref in NAMED.findall(text):
        if ref in steps.by_ref:
            numbers.add(steps.by_ref[ref])
    return [
        _output_of(transcript, steps.all[number]) for number in sorted(numbers)
    ]


def said_chars(transcript: Transcript, start: int, stop: int) -> int:
    """About how many characters an account takes that quotes all the user said in a range."""
    sizes = transcript.folded(_SAID, start, stop)
    return sizes.chars_before(stop)


def done_chars(transcript: Transcript, start: int, stop: int) -> int:
    """About how many characters an account takes that has a bullet for everything else."""
    steps = transcript.folded(_STEPS, start, stop)
    count = len(steps.unspoken)
    return count * _BULLET_CHARS


class _Steps:
    """What of a range is worth a bullet, and of that what the user said.

    Attributes:
        all: everything, oldest first.
        unspoken: the numbers of the steps that are not the user's words.
        spoken: the numbers of those that are.
        texts: the user's words, as `quotes` takes them.
        by_ref: the first of the user's steps that each ref opens.
    """

    def __init__(self) -> None:
        self.all: list[_Step] = []
        self.unspoken: list[int] = []
        self.spoken: list[int] = []
        self.texts = Texts()
        self.by_ref: dict[str, int] = {}
        self._refs: list[str] = []

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in the steps of a message."""
        for step in _steps(transcript, index):
            number = len(self.all)
            self.all.append(step)
            words = _user_words(transcript, step)
            if not words:
                self.unspoken.append(number)
                continue
            self.spoken.append(number)
            self.texts.append(words)
            ref = _output_of(transcript, step).ref
            self.by_ref.setdefault(ref, number)
            self._refs.append(ref)

    def spoken_before(self, index: int) -> int:
        """How many texts the user said before a message."""
        return bisect_left(
            self.spoken, index, key=lambda number: self.all[number].message
        )

    def ref_of(self, at: int) -> str:
        """What opens a text of the user, by its place in ``texts``."""
        return self._refs[at]


_STEPS = Fold("ullage.done", _Steps, _Steps.add)


class _SaidChars:
    """How many characters the different texts of the user have that an account quotes."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._places: list[int] = []
        self._chars = [0]

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what the user says in a message."""
        for step in _steps(transcript, index):
            text = _user_words(transcript, step)
            if not text:
                continue
            # a text that is said again is quoted once
            if text not in self._texts:
                total = self._chars[-1]
                total += len(_USER) + len(text) + len("\n")
                self._texts.add(text)
                self._places.append(index)
                self._chars.append(total)

    def chars_before(self, stop: int) -> int:
        """Of what was said before a message."""
        return self._chars[bisect_left(self._places, stop)]


_SAID = Fold("ullage.said", _SaidChars, _SaidChars.add, looks_back=True)


def _newest(
    transcript: Transcript, steps: _Steps, room: int
) -> dict[int, str]:
    """The newest bullets that fit, by the number of their step, but for what the user said."""
    bullets = dict[int, str]()
    # from the newest on: what is left out is the oldest, and the index has it
    for number in reversed(steps.unspoken):
        bullet = _bullet(transcript, steps.all[number])
        if len(bullet) >= room:
            break
        bullets[number] = bullet
        room -= len(bullet) + 1
    return bullets


def _user_words(transcript: Transcript, step: _Step) -> str:
    """What the user said in a step; ``""`` of any other, as of a document that was handed over."""
    if step.speaker != "user":
        return ""
    return transcript.user_words(step.message, step.part)


def _output_of(transcript: Transcript, step: _Step) -> Output:
    """What a text of the user is set aside as: its part, or its words where that is no text."""
    for output in transcript.outputs(step.message, step.part):
        if output.kind == "text":
            return output
    text = transcript.user_words(step.message, step.part)
    return Output(canon.ref_of(text), text)


def _steps(transcript: Transcript, index: int) -> list[_Step]:
    """What of a message is worth a bullet; nothing of one that stays in the view."""
    message = transcript.messages[index]
    if message.is_permanent:
        return []
    steps = list[_Step]()
    for number, part in enumerate(message.parts):
        # an answer of the user to a tool is two steps: the question, and the user's words
        if isinstance(part, ToolResult):
            steps.append(_Step("tool", index, number))
        if transcript.user_words(index, number):
            steps.append(_Step("user", index, number))
        elif isinstance(part, Text) and part.text.strip():
            steps.append(_Step(message.role, index, number))
    return steps


def _bullet(transcript: Transcript, step: _Step) -> str:
    """The line of a step: what was said, or a call and what it gave."""
    role, index, number = step
    part = transcript.messages[index].parts[number]
    if isinstance(part, Passage):
        document = _by_ref(transcript, (index, number, 0), part.text)
        return f"- {role}: a document, {document}"
    if isinstance(part, Text):
        line = on_one_line(part.text, _SAID_CHARS)
        return f"- {role}: {line}"
    if transcript.user_words(index, number):
        question = question_of(transcript, index, number) or "a tool"
        return f"- {question} → the user's answer:"
    line = "a tool"
    call = transcript.call_for(index, number)
    if call is not None:
        line = line_of_call(call)
    results = "; ".join(_results(transcript, index, number)) or "nothing"
    if isinstance(part, ToolResult) and part.is_error:
        results = f"error: {results}"
    return f"- {line} → {results}"


def _results(transcript: Transcript, index: int, number: int) -> Iterator[str]:
    """Each item of a result: word for word where it is short, else how long it is."""
    for spot in transcript.results(index):
        if spot[1] != number:
            continue
        output = transcript.output(spot)
        if output is None:
            continue
        text = output.text
        is_short = output.kind == "text" and len(text) <= _GAVE_CHARS
        if is_short and text.isprintable():
            yield text
        else:
            yield _by_ref(transcript, spot, text)


def _by_ref(transcript: Transcript, spot: Location, text: str) -> str:
    """How long a leaf is, and its ref."""
    output = transcript.output(spot)
    size = f"{len(text):,} characters"
    return f"{size}, ref={output.ref}" if output else size


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
                line = _flat_result(transcript, index, number, part)
                lines.append(line)
        if index < stop - 1:
            for call in message.calls:
                arguments = ends_of(call.arguments, _ARGUMENTS_CHARS, _GAP)
                lines.append(f"calls {call.name} {arguments}")
        if lines:
            text = "\n".join(lines)
            pieces.append(f"[{message.role}]\n{text}\n")
    return tuple(pieces)


def _flat_result(
    transcript: Transcript,
    index: int,
    number: int,
    result: ToolResult,
) -> str:
    """A result as plain text: the user's answer, or the ends of what the tool gave."""
    call = transcript.call_for(index, number)
    tool = call.name if call else "a tool"
    words = transcript.user_words(index, number)
    if words:
        return f"the user answers {tool}: {words}"
    texts = [item.text for item in result.content if isinstance(item, Text)]
    text = "\n".join(texts)
    excerpt = ends_of(text, _RESULT_CHARS, _GAP) or "no text"
    if result.is_error:
        excerpt = f"error: {excerpt}"
    return f"result of {tool}: {excerpt}"


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
