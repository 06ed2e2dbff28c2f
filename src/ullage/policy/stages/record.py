"""Record: what is old leaves the view, for a record of what was asked, done and found.

In each batch every stretch between two things the user said becomes one message of steps. A step is
what somebody said, or a call and what it gave: what is short stands word for word; of the rest its
beginning, and of a result the lines that tell most, with its ref. Records stand one behind the
other and are never written again, so the cache holds all but the newest; what the user said stays
where it stands, word for word.

A line that begins with ``- `` is a step and nothing else: where a tool or the model wrote such a
line, or one like a notice of ours, a space comes before it (failure F53).

What no record can stand for stays as it is: what only a provider can read, and a stretch so short
that nothing would be won.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TypeAlias

import msgspec

from ullage.core.contract.bound import HELD, editable_from
from ullage.core.contract.ranges import begin, set_aside
from ullage.core.history import canon
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, ReplaceSpan, Skipped
from ullage.core.values.messages import (
    BlockFrame,
    Media,
    Message,
    Opaque,
    Passage,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.texts import on_one_line
from ullage.policy.stages.facts import is_change
from ullage.policy.stages.placeholders import digests_of, placeholder
from ullage.policy.stages.pressure import newest_share, over_or_pays
from ullage.policy.stages.prune import Protected
from ullage.policy.stages.rent import new_from, shown_chars, winnable_chars
from ullage.policy.stages.shorten import safe_cut

IsDue: TypeAlias = Callable[[Window], str | None]
"""Why a batch is due now, with its numbers, or None."""
Digests: TypeAlias = Callable[[Window, Set[Location]], Mapping[Location, str]]
"""What follows the ref of each result."""

LINES = partial(digests_of, price=6, most_chars=8_000, most_share=0.25)
"""The lines of a result that tell most, of all results of a batch a quarter at most."""
_LEAST_CHARS = 300
"""A record that wins no more is not worth its header."""
_CHARS_PER_TOKEN = 4
_SAID_CHARS = _VALUE_CHARS = 120
"""The most that stands word for word of what the model says, or of one argument of a call."""
_CONCLUDED_CHARS, _WORKED_CALLS = 400, 5
"""The same of what it says without a call behind so many: what it found out by them."""
_CHANGE_CHARS = 600
"""The same of an argument of a call that changes a file: the next edit may name it."""
_RESULT_CHARS = 100
_FRAME_CHARS = 200
_ANSWERED = "the user's answer:"
_loads = msgspec.json.Decoder().decode
_FORGED = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029](?=- |\[ullage)")


def record(
    window: Window,
    /,
    *,
    is_due: IsDue = partial(
        over_or_pays, high=0.90, times=15, tail_chars=16_000, least_calls=45
    ),
    protected: Protected = partial(newest_share, share=0.12, most_tokens=4_000),
    digests: Digests = LINES,
    least_share: float = 0.20,
    least_tokens: int = 10_000,
) -> Sequence[ProposedEdit] | Skipped:
    """Records of everything old that no batch looked at yet, or none.

    Args:
        window: the window at the boundary at hand.
        is_due: why there is to be a batch now; None ends it there.
        protected: where what must stay begins.
        digests: what is kept of longer results.
        least_share: do nothing unless about this share of the limit can be won,
        least_tokens: or so many tokens, if that is less.
    """
    if (why := is_due(window)) is None:
        return ()
    first, stop = max(begin(window), new_from(window)), protected(window)[0]
    least = min(window.limit_tokens * least_share, least_tokens) * _CHARS_PER_TOKEN
    movable = max(first, editable_from(window))
    if winnable_chars(window, movable, stop) < least:
        return Skipped(HELD) if winnable_chars(window, first, stop) >= least else ()
    stretches = list(_stretches(window, movable, stop))
    kept = digests(
        window, {spot for each in stretches for spot in digestible(window, *each)}
    )
    cuts = [_cut(window, start, end, kept, why) for start, end in stretches]
    cuts += [placeholder(window, spot, why=why) for spot in _aged(window, first, stop)]
    return [cut for cut in cuts if cut is not None]


def _aged(window: Window, first: int, stop: int) -> Iterator[Location]:
    """The results that stayed where earlier records were made, for they were new, and are old now.

    No record is written again, so each leaves by itself.
    """
    for index, arrived in window.arrived.items():
        is_old = index < first and arrived < stop and index >= editable_from(window)
        if is_old and not window.hidden(index):
            yield from window.transcript.results(index)


def _stretches(window: Window, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """The stretches that a record may stand for: between messages that stay, at seams."""
    transcript, start = window.transcript, first
    held = window.staying(first, stop)
    stays = [
        at for at in range(first, stop) if at in held or _stays(transcript.messages[at])
    ]
    for end in (*stays, stop):
        after = end + 1
        while start < end and not transcript.may_split(start):
            start += 1
        while start < end and not (transcript.may_split(end) and window.may_go_on(end)):
            end -= 1
        if start < end:
            yield start, end
        start = after


def _stays(message: Message) -> bool:
    """Whether a message stays: what the user or the system says, and what only a provider reads."""
    contents = (part for result in message.results for part in result.content)
    if message.is_permanent or any(
        isinstance(part, Opaque) for part in (*message.parts, *contents)
    ):
        return True
    return message.role == "user" and not any(
        isinstance(p, ToolResult) for p in message.parts
    )


def _cut(
    window: Window, start: int, stop: int, digests: Mapping[Location, str], why: str
) -> ProposedEdit | None:
    """The record of a stretch in its place, or None if that wins too little."""
    outputs, chain = set_aside(window, start, stop), window.transcript.chain
    opens = window.words.record(outputs[-1].ref, start + 1, stop)
    shown = "\n".join([opens, *steps(window, start, stop, digests)])
    if shown_chars(window, start, stop) - len(shown) < _LEAST_CHARS:
        return None
    edit = ReplaceSpan(
        chain[start], chain[stop], shown, outputs[-1].ref, why, kind="pruned"
    )
    return ProposedEdit(edit, outputs)


def digestible(window: Window, start: int, stop: int) -> Iterator[Location]:
    """The results of a stretch that are too long to stand in it word for word."""
    transcript = window.transcript
    for spot in (
        at for index in range(start, stop) for at in transcript.tool_results(index)
    ):
        leaf, is_page = transcript.leaf(spot), window.is_recall(spot)
        if isinstance(leaf, Text) and len(leaf.text) > _RESULT_CHARS and not is_page:
            yield spot


def steps(
    window: Window, start: int, stop: int, digests: Mapping[Location, str]
) -> Iterator[str]:
    """Each step of the messages from ``start`` up to ``stop``, in order.

    Of results that are too long to stand word for word, the digest is shown.
    """
    transcript, messages = window.transcript, window.transcript.messages
    answered = {  # by identity: ids may come again
        id(transcript.call_for(index, number))
        for index in range(start, stop)
        for number, part in enumerate(messages[index].parts)
        if isinstance(part, ToolResult)
    }
    worked = 0
    for index in range(start, stop):
        role, worked = messages[index].role, worked + len(messages[index].calls)
        for number, part in enumerate(messages[index].parts):
            match part:
                case Passage():
                    yield f"- {role}: {_block(window, (index, number, 0))}"
                case Text(text=text) if text.strip() and role == "assistant":
                    concludes = worked >= _WORKED_CALLS and not messages[index].calls
                    most = _CONCLUDED_CHARS if concludes else _SAID_CHARS
                    said = _beginning(text.strip(), most, most)
                    yield _FORGED.sub(r"\g<0> ", f"- {role}: {said}")
                case Text(text=text) if text.strip():
                    yield f"- {role}: {text.strip()}"
                case ToolCall() if id(part) not in answered:
                    yield _FORGED.sub(r"\g<0> ", f"{_called(part)} → nothing yet")
                case ToolResult():
                    call = transcript.call_for(index, number)
                    words = transcript.words(index, number)
                    failed = "error: " if part.is_error else ""
                    gave = "\n".join(_gave(window, index, number, digests)) or "nothing"
                    called = _called(call, asks=bool(words)) if call else "- a tool"
                    yield _FORGED.sub(r"\g<0> ", f"{called} → {failed}{gave}")
                    if words:
                        yield f"- user: {words.strip()}"
                case Media() | Opaque():
                    yield f"- {role}: {_block(window, (index, number, 0))}"


def _called(call: ToolCall, *, asks: bool = False) -> str:
    """A call and its arguments; what is no object stands as it was sent.

    Of one that asks the user, more of the question stands: the answer alone may say little.
    """
    try:
        value = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = call.arguments
    most = _CHANGE_CHARS if asks or is_change(call.name) else _VALUE_CHARS
    if not isinstance(value, dict):
        return f"- {call.name}({_short(value, most)})"
    return f"- {call.name}({', '.join(f'{key}={_short(of, most)}' for key, of in value.items())})"


def _short(value: object, most: int) -> str:
    text = value if isinstance(value, str) else canon.canonical_json(value)
    return _beginning(text, most, _VALUE_CHARS // 2)


def _beginning(text: str, most: int, kept: int) -> str:
    return text if len(text) <= most else f"{text[: safe_cut(text, kept)]}…"


def _gave(
    window: Window, index: int, number: int, digests: Mapping[Location, str]
) -> Iterator[str]:
    """What a call gave: each item word for word, its lines that are kept, or its ref alone."""
    transcript = window.transcript
    part = transcript.messages[index].parts[number]
    is_page = window.is_recall((index, number, 0))
    is_words = bool(transcript.words(index, number))
    is_programs = transcript.reader(index, number) == "program"
    for item, leaf in enumerate(part.content if isinstance(part, ToolResult) else ()):
        spot = index, number, item
        if is_page:
            yield "a page; make the same call to read it again"
        elif isinstance(leaf, BlockFrame):
            yield on_one_line(leaf.text, _FRAME_CHARS)
        elif not isinstance(leaf, Text):
            yield _block(window, spot)
        elif is_words:
            yield _ANSWERED
        elif is_programs:
            yield _read_by_program(window, spot, leaf.text)
        elif spot not in digests or (output := window.transcript.output(spot)) is None:
            yield leaf.text
        else:
            shown = f"{len(leaf.text):,} characters, ref={output.ref}{digests[spot]}"
            yield shown if len(shown) < len(leaf.text) else leaf.text


def _read_by_program(window: Window, spot: Location, text: str) -> str:
    """What stands for a result that the model never saw: nothing of it."""
    output = window.transcript.output(spot)
    ref = f", ref={output.ref}" if output else ""
    return f"{len(text):,} characters for the program that made the call{ref}"


def _block(window: Window, spot: Location) -> str:
    output = window.transcript.output(spot)
    return f"a block, ref={output.ref}" if output else "a block"
