"""The deterministic summary of a run of messages: what no model's summary may go below.

The user's words verbatim, files and their state, commands and how they ended, errors nobody
has mended, decisions, open items, refs of what is set aside. Always made from the original
messages, so that the tenth summary is as good as the first (failures F43, F50, F51).

Where room is short each section keeps its newest lines and says how many are left out; what the
user said has a room of its own. Text that comes from a tool or a model stands in quotes, on
one line: it is data here (failure F53).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from ullage.history.transcript import Transcript
from ullage.stages.facts import (
    Deed,
    Said,
    decisions,
    deeds,
    open_items,
    said,
    unresolved,
)
from ullage.stages.quotes import quotes

__all__ = ["summary"]

_QUOTE_CHARS = 160
_FRAME_CHARS = len("Message 1234:\n\n")


def summary(
    transcript: Transcript,
    start: int,
    stop: int,
    room_chars: int,
    done: Sequence[Deed] | None = None,
    *,
    user_chars: int = 0,
) -> str:
    """The summary of the messages from ``start`` up to ``stop``.

    Args:
        transcript: the history.
        start: the first message of the run.
        stop: one past its last.
        room_chars: about the most characters it may have, but for what the user said.
        done: its deeds, where they are known.
        user_chars: the most characters of what the user said, on top of them; it is quoted word
            for word (`ullage.stages.quotes`).
    """
    done = deeds(transcript, start, stop) if done is None else done
    texts = list(said(transcript, start, stop, "assistant"))
    has_task = next(said(transcript, 0, start, "user"), None) is None
    user = _user(list(said(transcript, start, stop, "user")), user_chars, has_task=has_task)
    room = room_chars
    sections: list[tuple[str, list[str], Callable[[int], int]]] = [
        ("Errors not resolved", [_trouble(deed) for deed in unresolved(done)], lambda r: r // 3),
        ("Files", _files(done), lambda r: r // 3),
        ("Open items", _items(transcript, start, stop, texts, done), lambda r: r // 3),
        ("Commands", _commands(done), lambda r: r // 3),
        ("Decisions", [_quoted(each) for each in decisions(texts)], lambda r: r // 2),
        ("Outputs set aside", list(_refs(done)), lambda r: r),
    ]
    blocks = [user] if user else []
    for title, lines, share in sections:
        block = _section(title, lines, share(room))
        room -= len(block)
        blocks += [block] if block else []
    return "\n\n".join(blocks) or "Nothing was said or done in these messages."


def _section(title: str, lines: Sequence[str], room: int) -> str:
    """A section with the newest of its lines that fit, in order; ``""`` if there are none."""
    if not lines:
        return ""
    kept: list[str] = []
    room -= len(title) + 40
    for line in reversed(lines):
        room -= len(line) + 3
        if room < 0:
            break
        kept.insert(0, f"- {line}")
    left_out = len(lines) - len(kept)
    if left_out:
        kept.insert(0, f"- … {left_out:,} more: see the index")
    return "\n".join([f"## {title}", *kept])


def _quote(text: str) -> str:
    """A text from a tool or a model as data: on one line, in quotes."""
    words = " ".join(text[: 4 * _QUOTE_CHARS].split())
    clipped = words if len(words) <= _QUOTE_CHARS else f"{words[:_QUOTE_CHARS]}…"
    return json.dumps(clipped, ensure_ascii=False)


def _quoted(each: Said) -> str:
    return f"{_quote(each.text)} (message {each.index + 1})"


# ── the user ─────────────────────────────────────────────────────────────────────────────


def _user(texts: Sequence[Said], room: int, *, has_task: bool) -> str:
    """What the user said, verbatim as far as there is room."""
    if not texts or room <= 0:
        return ""
    said_texts = [each.text for each in texts]
    shown = quotes(said_texts, room, frame_chars=_FRAME_CHARS, keeps_first=has_task)
    lines = [f"Message {texts[at].index + 1}:\n{shown[at]}" for at in sorted(shown)]
    absent = [each for number, each in enumerate(texts) if number not in shown]
    return "\n".join(["## The user's words", *lines, *([_absent(absent)] if absent else ())])


def _absent(texts: Sequence[Said]) -> str:
    chars = sum(len(each.text) for each in texts)
    return f"… {len(texts):,} more, {chars:,} characters: see the index"


# ── what was done ────────────────────────────────────────────────────────────────────────


def _trouble(deed: Deed) -> str:
    return f"{deed.tool} {_quote(deed.subject)}: {_quote(deed.error)} (message {deed.index + 1})"


def _files(done: Sequence[Deed]) -> list[str]:
    """Each file once, with what was done to it, in the order in which it was last touched."""
    touched: dict[str, list[Deed]] = {}
    for deed in done:
        if deed.verb in ("read", "changed", "removed"):
            touched[deed.subject] = [*touched.pop(deed.subject, ()), deed]
    return [f"{_quote(path)}: {_state(of)}" for path, of in touched.items()]


def _state(of: Sequence[Deed]) -> str:
    """What was done to one file, and how the last of it ended."""
    parts = []
    for verb in ("read", "changed", "removed"):
        times = sum(deed.verb == verb and deed.ended is True for deed in of)
        parts += [verb if times == 1 else f"{verb} {times} times"] if times else []
    last = of[-1]
    if last.ended is not True:
        tried = "changing" if last.verb == "changed" else last.verb
        parts.append(f"last try at {tried} {'failed' if last.ended is False else 'unanswered'}")
    return f"{', '.join(parts)} (message {last.index + 1})"


def _commands(done: Sequence[Deed]) -> list[str]:
    """Each command once, with how often it ran and how it ended the last time."""
    ran: dict[str, list[Deed]] = {}
    for deed in done:
        if deed.verb == "ran":
            ran[deed.subject] = [*ran.pop(deed.subject, ()), deed]
    return [_command(command, of) for command, of in ran.items()]


def _command(command: str, of: Sequence[Deed]) -> str:
    last = of[-1]
    times = f", {len(of)} times" if len(of) > 1 else ""
    how = {True: "ok", False: f"failed, {_quote(last.error)}", None: "no result"}[last.ended]
    return f"{_quote(command)}{times}: {how} (message {last.index + 1})"


def _items(
    transcript: Transcript, start: int, stop: int, texts: Sequence[Said], done: Sequence[Deed]
) -> list[str]:
    waiting = [
        f"no result yet: {deed.tool} {_quote(deed.subject)}" for deed in done if deed.ended is None
    ]
    return waiting + [_quoted(each) for each in open_items(transcript, start, stop, texts)]


def _refs(done: Sequence[Deed]) -> Iterator[str]:
    for deed in done:
        for ref, chars in deed.refs:
            yield f"ref={ref} {deed.tool} {_quote(deed.subject[:60])} ({chars:,} characters)"
