"""The deterministic summary of a range of messages: what no model's summary may go below.

The user's words verbatim, files and their state, commands and how they ended, errors not made
good, decisions, open items, refs of what is set aside. Always made from the original messages,
so that the tenth summary is as good as the first (failures F43, F50, F51).

Where room is short each section keeps its newest lines and says how many are left out; what the
user said has a room of its own. Text that comes from a tool or a model is in quotes, on
one line: it is data here (failure F53).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from ullage.core.history.transcript import Transcript
from ullage.core.values.notices import Words
from ullage.core.values.texts import on_one_line
from ullage.policy.stages.facts import (
    MODEL_TEXTS,
    Action,
    Utterance,
    actions,
    unresolved,
    utterances,
)
from ullage.policy.stages.quotes import quotes
from ullage.policy.stages.user_texts import USER_TEXTS, opening

T = TypeVar("T")
_QUOTE_CHARS = 160
_OUTPUT_SUBJECT_CHARS = 60
_TITLE_CHARS = 40
"""What stands around a title, and the line that tells what is missing."""
_FRAME_CHARS = len("Message 1234:\n\n")
_SPOKEN_CHARS = len("- user: \n")
_THEN = "[ullage: this the user said then]"


def summary(
    transcript: Transcript,
    start: int,
    stop: int,
    room_chars: int,
    *,
    user_chars: int = 0,
    words: Words | None = None,
    said_until: int | None = None,
) -> str:
    """The deterministic summary of the messages from ``start`` up to ``stop``.

    Args:
        transcript: the history.
        start: the first message of the range.
        stop: one past the last.
        room_chars: about what all but the user's words may take.
        user_chars: what the user said may take on top of them, word for word
            (`ullage.policy.stages.quotes`).
        words: the wording of the session. With it, what is left out of the user's words is named
            by its ref; then whoever shows the summary sets it aside
            (`ullage.policy.stages.user_texts`).
        said_until: what was said from this message on is told elsewhere (`later_words`).
    """
    done = actions(transcript, start, stop)
    model = transcript.folded(MODEL_TEXTS, start, stop)
    is_task_inside = (
        next(utterances(transcript, 0, start, "user"), None) is None
    )
    user = _user(
        transcript,
        start,
        stop,
        user_chars,
        has_task=is_task_inside,
        words=words,
        until=said_until,
    )
    waiting = [action for action in done if action.ended is None]
    open_items = [*waiting, *model.open_items]
    files = _by_subject(done, "read", "changed", "removed")
    # title, items, how one is written, and the part of the room that is left: one in so many
    sections: tuple[
        tuple[str, Sequence[Any], Callable[[Any], str], int], ...
    ] = (
        ("Errors not resolved", unresolved(done), _failure, 3),
        ("Files", files, _file, 3),
        ("Open items", open_items, _open, 3),
        ("Commands", _by_subject(done, "ran"), _command, 3),
        ("Decisions", model.decisions, _quoted, 2),
        ("Outputs set aside", _outputs(done), _output, 1),
    )
    room = room_chars
    blocks = [user] if user else []
    for title, items, line_of, part in sections:
        block = _section(title, items, line_of, room // part)
        if block:
            room -= len(block)
            blocks.append(block)
    return "\n\n".join(blocks) or "Nothing was said or done in these messages."


def _section(
    title: str,
    items: Sequence[T],
    line_of: Callable[[T], str],
    room: int,
) -> str:
    """A section with the newest of its items that fit, in order; ``""`` if there are none.

    Lines are written for those alone.
    """
    if not items:
        return ""
    room -= len(title) + _TITLE_CHARS
    newest = list[str]()
    for item in reversed(items):
        line = line_of(item)
        room -= len(line) + 3
        if room < 0:
            break
        newest.append(f"- {line}")
    missing = len(items) - len(newest)
    if missing:
        newest.append(f"- … {missing:,} more: see the index")
    return "\n".join([f"## {title}", *reversed(newest)])


def _quote(text: str) -> str:
    """A text from a tool or a model as data: on one line, in quotes."""
    line = on_one_line(text, _QUOTE_CHARS)
    return json.dumps(line, ensure_ascii=False)


def _quoted(utterance: Utterance) -> str:
    return f"{_quote(utterance.text)} {_place(utterance)}"


def _place(item: Action | Utterance) -> str:
    """Where it stands, counted from one as the index does."""
    return f"(message {item.index + 1})"


# ── the user ─────────────────────────────────────────────────────────────────────────────


def later_words(
    transcript: Transcript,
    start: int,
    stop: int,
    user_chars: int,
    words: Words | None = None,
) -> tuple[int | None, tuple[str, ...]]:
    """What the user said behind each message of the system in a range, word for word.

    The system's messages stay in the view. A word of the user that came after one of them may
    take it back, so it is to be read behind it. What is left out is named by its ref, as in
    `summary`.

    Returns:
        Where the first of those messages stands, or None; and a text for each, ``""`` where the
        user said nothing behind it, or where a reply has to follow it (A20).
    """
    system = transcript.marked("permanent", start, stop)
    if not system:
        return None, ()
    if any(transcript.messages[index].before_reply for index in system):
        return None, ()
    user = transcript.folded(USER_TEXTS, start, stop)
    # the room that an account gives: the same words fit in as would stand in it
    quotations = quotes(
        user.texts,
        user_chars,
        frame_chars=_SPOKEN_CHARS,
        ref_of=None if words is None else user.ref_of,
    )
    numbers = sorted(quotations)
    later = []
    # what was said between one message of the system and the next stands behind the first
    for index, next_index in pairwise([*system, stop]):
        text_start = user.count_before(index + 1)
        text_stop = user.count_before(next_index)
        lines = []
        for number in _between(numbers, text_start, text_stop):
            speaker = _speaker(user.utterances[number])
            lines.append(f"{speaker}: {quotations[number]}")
        missing = text_stop - text_start - len(lines)
        if missing:
            lines.append(f"- … {missing:,} more: see the index")
        later.append("\n".join([_THEN, *lines]) if lines else "")
    return system[0], tuple(later)


def _between(numbers: Sequence[int], start: int, stop: int) -> Sequence[int]:
    """Those of some sorted numbers from ``start`` up to ``stop``."""
    begin = bisect_left(numbers, start)
    end = bisect_left(numbers, stop)
    return numbers[begin:end]


def _speaker(utterance: Utterance) -> str:
    return f"- user{_answer_to(utterance)}"


def _answer_to(utterance: Utterance) -> str:
    """Which question a text of the user answers; ``""`` for none."""
    return f", answer to {utterance.question}" if utterance.question else ""


def _user(
    transcript: Transcript,
    start: int,
    stop: int,
    room_chars: int,
    *,
    has_task: bool,
    words: Words | None,
    until: int | None,
) -> str:
    """What the user said, verbatim as far as there is room."""
    if room_chars <= 0:
        return ""
    user = transcript.folded(USER_TEXTS, start, stop)
    quotations = quotes(
        user.texts,
        room_chars - user.question_chars,
        frame_chars=_FRAME_CHARS,
        keeps_first=has_task,
        ref_of=None if words is None else user.ref_of,
    )
    count = len(user.utterances) if until is None else user.count_before(until)
    numbers = [number for number in sorted(quotations) if number < count]
    lines = []
    absent_chars = user.chars_of(count)
    names_a_ref = False
    for number in numbers:
        quotation = quotations[number]
        lines.append(f"{_heading(user.utterances[number])}:\n{quotation}")
        absent_chars -= len(user.texts[number])
        names_a_ref = names_a_ref or f"ref={user.ref_of(number)}" in quotation
    absent = count - len(numbers)
    if absent:
        lines.append(
            f"… {absent:,} more, {absent_chars:,} characters: see the index"
        )
    if not lines:
        return ""
    title = ["## The user's words"]
    if words is not None and names_a_ref:
        title.append(opening(words))
    return "\n".join([*title, *lines])


def _heading(utterance: Utterance) -> str:
    return f"Message {utterance.index + 1}{_answer_to(utterance)}"


# ── what was done ────────────────────────────────────────────────────────────────────────


def _failure(action: Action) -> str:
    subject = _quote(action.subject)
    error = _quote(action.error)
    return f"{action.tool} {subject}: {error} {_place(action)}"


def _by_subject(done: Sequence[Action], *verbs: str) -> list[list[Action]]:
    """The actions of some verbs, those on one subject together, the one that came up last last."""
    subjects: dict[str, list[Action]] = {}
    for action in done:
        if action.verb in verbs:
            # taken out and put back: the subject that came up last stands last
            actions_on = subjects.pop(action.subject, [])
            actions_on.append(action)
            subjects[action.subject] = actions_on
    return list(subjects.values())


def _file(on_file: Sequence[Action]) -> str:
    """A file, with what was done to it and how the last of it ended."""
    parts = []
    for verb in ("read", "changed", "removed"):
        times = 0
        for action in on_file:
            if action.verb == verb and action.ended:
                times += 1
        if times == 1:
            parts.append(verb)
        elif times:
            parts.append(f"{verb} {times} times")
    newest = on_file[-1]
    if newest.ended is not True:
        attempt = "changing" if newest.verb == "changed" else newest.verb
        outcome = "unanswered" if newest.ended is None else "failed"
        parts.append(f"last try at {attempt} {outcome}")
    path = _quote(newest.subject)
    history = ", ".join(parts)
    return f"{path}: {history} {_place(newest)}"


def _command(runs: Sequence[Action]) -> str:
    """A command, with how often it ran and how it ended the last time."""
    newest = runs[-1]
    times = f", {len(runs)} times" if len(runs) > 1 else ""
    if newest.ended is None:
        outcome = "no result"
    elif newest.ended:
        outcome = "ok"
    else:
        outcome = f"failed, {_quote(newest.error)}"
    command = _quote(newest.subject)
    return f"{command}{times}: {outcome} {_place(newest)}"


def _open(item: Action | Utterance) -> str:
    """A call that waits for its result, or what the model said is to come."""
    if isinstance(item, Action):
        return f"no result yet: {item.tool} {_quote(item.subject)}"
    return _quoted(item)


def _outputs(done: Sequence[Action]) -> list[tuple[Action, str, int]]:
    """Each output of these calls: the call, its ref and its characters."""
    outputs = []
    for action in done:
        for ref, chars in action.refs:
            outputs.append((action, ref, chars))
    return outputs


def _output(output: tuple[Action, str, int]) -> str:
    action, ref, chars = output
    subject = _quote(action.subject[:_OUTPUT_SUBJECT_CHARS])
    return f"ref={ref} {action.tool} {subject} ({chars:,} characters)"
