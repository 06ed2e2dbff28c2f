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
    """The summary of the messages from ``start`` up to ``stop``, in about ``room_chars``.

    On top of them comes what the user said, word for word (`ullage.policy.stages.quotes`), in
    ``user_chars``. What is left out of it is named by its ref where ``words`` are given; then
    whoever shows the summary sets it aside (`ullage.policy.stages.user_texts`). What was said from
    the message ``said_until`` on is told elsewhere (`later_words`).
    """
    done = actions(transcript, start, stop)
    model = transcript.folded(MODEL_TEXTS, start, stop)
    has_task = next(utterances(transcript, 0, start, "user"), None) is None
    user = _user(
        transcript,
        start,
        stop,
        user_chars,
        has_task=has_task,
        words=words,
        until=said_until,
    )
    waiting = [each for each in done if each.ended is None]
    room = room_chars
    blocks = [user] if user else []
    sections: tuple[tuple[str, Sequence[Any], Callable[[Any], str], int], ...] = (
        ("Errors not resolved", unresolved(done), _failure, 3),
        ("Files", _by_subject(done, "read", "changed", "removed"), _file, 3),
        ("Open items", [*waiting, *model.open_items], _open, 3),
        ("Commands", _by_subject(done, "ran"), _command, 3),
        ("Decisions", model.decisions, _quoted, 2),
        ("Outputs set aside", _outputs(done), _output, 1),
    )
    for title, items, line_of, part in sections:
        block = _section(title, items, line_of, room // part)
        room -= len(block)
        blocks += [block] if block else []
    return "\n\n".join(blocks) or "Nothing was said or done in these messages."


def _section(
    title: str, items: Sequence[T], line_of: Callable[[T], str], room: int
) -> str:
    """A section with the newest of its items that fit, in order; ``""`` if there are none.

    Lines are written for those alone.
    """
    if not items:
        return ""
    room -= len(title) + 40
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
    return json.dumps(on_one_line(text, _QUOTE_CHARS), ensure_ascii=False)


def _quoted(each: Utterance) -> str:
    return f"{_quote(each.text)} (message {each.index + 1})"


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
    stands = transcript.marked("pinned", start, stop)
    if not stands or any(transcript.messages[at].before_reply for at in stands):
        return None, ()
    user = transcript.folded(USER_TEXTS, start, stop)
    # the room that an account gives: the same words fit in as would stand in it
    shown = quotes(
        user.texts,
        user_chars,
        frame_chars=_SPOKEN_CHARS,
        ref_of=None if words is None else user.ref_of,
    )
    numbers, later = sorted(shown), []
    for first, last in pairwise([*stands, stop]):
        begins, ends = user.before(first + 1), user.before(last)
        within = numbers[bisect_left(numbers, begins) : bisect_left(numbers, ends)]
        lines = [f"{_speaker(user.utterances[at])}: {shown[at]}" for at in within]
        missing = ends - begins - len(lines)
        lines += [f"- … {missing:,} more: see the index"] if missing else []
        later.append("\n".join([_THEN, *lines]) if lines else "")
    return stands[0], tuple(later)


def _speaker(each: Utterance) -> str:
    asked = f", answer to {each.question}" if each.question else ""
    return f"- user{asked}"


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
    shown = quotes(
        user.texts,
        room_chars - user.question_chars,
        frame_chars=_FRAME_CHARS,
        keeps_first=has_task,
        ref_of=None if words is None else user.ref_of,
    )
    count = len(user.utterances) if until is None else user.before(until)
    here = [at for at in sorted(shown) if at < count]
    lines = [f"{_heading(user.utterances[at])}:\n{shown[at]}" for at in here]
    absent = count - len(here)
    if absent:
        absent_chars = user.chars_of(count) - sum(len(user.texts[at]) for at in here)
        lines.append(f"… {absent:,} more, {absent_chars:,} characters: see the index")
    if not lines:
        return ""
    title = ["## The user's words"]
    if words is not None and any(f"ref={user.ref_of(at)}" in shown[at] for at in here):
        title.append(opening(words))
    return "\n".join([*title, *lines])


def _heading(each: Utterance) -> str:
    asked = f", answer to {each.question}" if each.question else ""
    return f"Message {each.index + 1}{asked}"


# ── what was done ────────────────────────────────────────────────────────────────────────


def _failure(action: Action) -> str:
    subject, error = _quote(action.subject), _quote(action.error)
    return f"{action.tool} {subject}: {error} (message {action.index + 1})"


def _by_subject(done: Sequence[Action], *verbs: str) -> list[list[Action]]:
    """The actions of some verbs, those on one subject together, the one that came up last last."""
    subjects: dict[str, list[Action]] = {}
    for action in done:
        if action.verb in verbs:
            actions_on = subjects.pop(action.subject, [])
            actions_on.append(action)
            subjects[action.subject] = actions_on
    return list(subjects.values())


def _file(of: Sequence[Action]) -> str:
    """A file, with what was done to it and how the last of it ended."""
    parts, last = [], of[-1]
    for verb in ("read", "changed", "removed"):
        times = sum(action.verb == verb and action.ended is True for action in of)
        parts += [verb if times == 1 else f"{verb} {times} times"] if times else []
    if last.ended is not True:
        tried = "changing" if last.verb == "changed" else last.verb
        parts.append(
            f"last try at {tried} {'failed' if last.ended is False else 'unanswered'}"
        )
    return f"{_quote(last.subject)}: {', '.join(parts)} (message {last.index + 1})"


def _command(of: Sequence[Action]) -> str:
    """A command, with how often it ran and how it ended the last time."""
    last = of[-1]
    times = f", {len(of)} times" if len(of) > 1 else ""
    how = {True: "ok", False: f"failed, {_quote(last.error)}", None: "no result"}[
        last.ended
    ]
    return f"{_quote(last.subject)}{times}: {how} (message {last.index + 1})"


def _open(item: Action | Utterance) -> str:
    """A call that waits for its result, or what the model said is to come."""
    if isinstance(item, Action):
        return f"no result yet: {item.tool} {_quote(item.subject)}"
    return _quoted(item)


def _outputs(done: Sequence[Action]) -> list[tuple[Action, str, int]]:
    """Each output of these calls: the call, its ref and its characters."""
    return [(action, ref, chars) for action in done for ref, chars in action.refs]


def _output(output: tuple[Action, str, int]) -> str:
    action, ref, chars = output
    return (
        f"ref={ref} {action.tool} {_quote(action.subject[:60])} ({chars:,} characters)"
    )
