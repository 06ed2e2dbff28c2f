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
from ullage.policy.stages.carrying_cost import (
    new_from,
    shown_chars,
    winnable_chars,
)
from ullage.policy.stages.facts import is_change
from ullage.policy.stages.placeholders import digests_of, placeholder
from ullage.policy.stages.pressure import newest_share, over_or_pays
from ullage.policy.stages.prune import Protected
from ullage.policy.stages.shorten import safe_cut

IsDue: TypeAlias = Callable[[Window], str | None]
"""Why a batch is due now, with its numbers, or None."""
Digests: TypeAlias = Callable[[Window, Set[Location]], Mapping[Location, str]]
"""What follows the ref of each result."""

LINES = partial(digests_of, price=6, most_chars=8_000, most_share=0.25)
"""The lines of a result that tell most, of all results of a batch a quarter at most."""
_LEAST_TOKENS = 2_000
"""In a small window too a batch wins so many, or its share: else there would be one a call."""
_LEAST_CHARS = 300
"""A record that wins no more is not worth its header."""
_CHARS_PER_TOKEN = 4
_SAID_CHARS = 120
_VALUE_CHARS = 120
"""The most that stands word for word of what the model says, or of one argument of a call."""
_CONCLUDED_CHARS = 400
_WORKED_CALLS = 5
"""The same of what it says without a call behind so many: what it found out by them."""
_CHANGE_CHARS = 600
"""The same of an argument of a call that changes a file: the next edit may name it."""
_RESULT_CHARS = 100
_FRAME_CHARS = 200
_ANSWERED = "the user's answer:"
_loads = msgspec.json.Decoder().decode
# a line end, of any kind that `str.splitlines` knows, behind which a step or a notice would begin
_FORGED = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029](?=- |\[ullage)")


def record(
    window: Window,
    /,
    *,
    is_due: IsDue = partial(
        over_or_pays,
        high=0.90,
        times=15,
        tail_chars=16_000,
        least_calls=45,
    ),
    protected: Protected = partial(
        newest_share, share=0.12, most_tokens=4_000
    ),
    digests: Digests = LINES,
    least_share: float = 0.20,
    least_share_from_tokens: int = 20_000,
    least_tokens: int = 10_000,
) -> Sequence[ProposedEdit] | Skipped:
    """Records of everything old that no batch looked at yet, or none.

    Args:
        window: the window at the boundary at hand.
        is_due: why there is to be a batch now; None ends it there.
        protected: where what must stay begins.
        digests: what is kept of longer results.
        least_share: do nothing unless about this share of the limit can be won,
        least_share_from_tokens: of a limit that is less a smaller share, but 2,000 tokens: what is
            no record when the guard acts becomes a line of an account, without its results,
        least_tokens: or so many tokens, if that is less.
    """
    reason = is_due(window)
    if reason is None:
        return ()
    unrecorded = max(begin(window), new_from(window))
    stop = protected(window)[0]
    limit = window.limit_tokens
    least_won = min(limit * least_share, least_tokens)
    if limit < least_share_from_tokens:
        scaled = least_won * limit / least_share_from_tokens
        least_won = min(max(scaled, _LEAST_TOKENS), least_won)
    least_chars = least_won * _CHARS_PER_TOKEN
    movable = max(unrecorded, editable_from(window))
    # what thinking is bound to may not be edited: if that is all that is missing, it is told
    if winnable_chars(window, movable, stop) < least_chars:
        if winnable_chars(window, unrecorded, stop) < least_chars:
            return ()
        return Skipped(HELD)
    stretches = list(_stretches(window, movable, stop))
    spots = set[Location]()
    for start, end in stretches:
        spots.update(digestible(window, start, end))
    # where nothing can leave yet, the same is asked again at every request
    digest_by_spot = digests(window, spots) if spots else {}
    cuts = []
    for start, end in stretches:
        cuts.append(_cut(window, start, end, digest_by_spot, reason))
    for spot in _aged(window, unrecorded, stop):
        cuts.append(placeholder(window, spot, why=reason))
    return [cut for cut in cuts if cut is not None]


def _aged(window: Window, unrecorded: int, stop: int) -> Iterator[Location]:
    """The results that stayed where earlier records were made, for they were new, and are old now.

    No record is written again, so each leaves by itself.
    """
    movable = editable_from(window)
    for index, arrived in window.arrived.items():
        if not movable <= index < unrecorded:
            continue
        if arrived < stop and not window.hidden(index):
            yield from window.transcript.results(index)


def _stretches(
    window: Window, start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """The stretches that a record may stand for: between messages that stay, at seams."""
    transcript = window.transcript
    pinned = window.staying(start, stop)
    ends = []
    for index in range(start, stop):
        if index in pinned or _stays(transcript.messages[index]):
            ends.append(index)
    for end in (*ends, stop):
        next_start = end + 1
        # inward to seams: a record that parts a call from its result would be illegal
        while start < end and not transcript.may_split(start):
            start += 1
        while start < end and not _may_end(window, end):
            end -= 1
        if start < end:
            yield start, end
        start = next_start


def _may_end(window: Window, index: int) -> bool:
    """Whether a record may end before a message, and the view go on with it."""
    return window.transcript.may_split(index) and window.may_go_on(index)


def _stays(message: Message) -> bool:
    """Whether a message stays: what the user or the system says, and what only a provider reads."""
    if message.is_permanent:
        return True
    parts = [*message.parts]
    results = message.results
    for result in results:
        parts += result.content
    if any(isinstance(part, Opaque) for part in parts):
        return True
    return message.role == "user" and not results


def _cut(
    window: Window,
    start: int,
    stop: int,
    digests: Mapping[Location, str],
    reason: str,
) -> ProposedEdit | None:
    """The record of a stretch in its place, or None if that wins too little."""
    outputs = set_aside(window, start, stop)
    ref = outputs[-1].ref
    opening = window.words.record(ref, start + 1, stop)
    text = "\n".join([opening, *steps(window, start, stop, digests)])
    if shown_chars(window, start, stop) - len(text) < _LEAST_CHARS:
        return None
    chain = window.transcript.chain
    edit = ReplaceSpan(
        after=chain[start],
        upto=chain[stop],
        text=text,
        ref=ref,
        why=reason,
        kind="pruned",
    )
    return ProposedEdit(edit, outputs)


def digestible(window: Window, start: int, stop: int) -> Iterator[Location]:
    """The results of a stretch that are too long to stand in it word for word."""
    transcript = window.transcript
    for index in range(start, stop):
        for spot in transcript.tool_results(index):
            leaf = transcript.leaf(spot)
            if window.is_recall(spot) or not isinstance(leaf, Text):
                continue
            if len(leaf.text) > _RESULT_CHARS:
                yield spot


def steps(
    window: Window,
    start: int,
    stop: int,
    digests: Mapping[Location, str],
) -> Iterator[str]:
    """Each step of the messages from ``start`` up to ``stop``, in order.

    Of results that are too long to stand word for word, the digest is shown.

    Args:
        window: the window at the boundary at hand.
        start: the first message of the stretch.
        stop: one past the last.
        digests: what follows the ref of a result, by its place.
    """
    transcript = window.transcript
    answered = _answered(window, start, stop)
    calls_so_far = 0
    for index in range(start, stop):
        message = transcript.messages[index]
        calls_so_far += len(message.calls)
        for number, part in enumerate(message.parts):
            match part:
                case Passage() | Media() | Opaque():
                    yield f"- {message.role}: {_block(window, (index, number, 0))}"
                case Text(text=text):
                    if text.strip():
                        yield _said(message, text, calls_so_far)
                case ToolCall():
                    if id(part) not in answered:
                        yield _defused(f"{_called(part)} → nothing yet")
                case ToolResult():
                    yield from _answer(window, index, number, part, digests)


def _answered(window: Window, start: int, stop: int) -> set[int]:
    """The calls that a result in a stretch answers, by identity: ids may come again."""
    transcript = window.transcript
    answered = set[int]()
    for index in range(start, stop):
        message = transcript.messages[index]
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                call = transcript.call_for(index, number)
                answered.add(id(call))
    return answered


def _defused(step: str) -> str:
    """A step in which no line that a tool or the model wrote looks like one of ours."""
    return _FORGED.sub(r"\g<0> ", step)


def _said(message: Message, text: str, calls_so_far: int) -> str:
    """What somebody said: to the character, or where the model says it, its beginning."""
    if message.role != "assistant":
        return f"- {message.role}: {text}"
    concludes = calls_so_far >= _WORKED_CALLS and not message.calls
    most_chars = _CONCLUDED_CHARS if concludes else _SAID_CHARS
    beginning = _beginning(text.strip(), most_chars, most_chars)
    return _defused(f"- {message.role}: {beginning}")


def _answer(
    window: Window,
    index: int,
    number: int,
    result: ToolResult,
    digests: Mapping[Location, str],
) -> Iterator[str]:
    """The step of a call and what it gave; behind it the user's words, if it gave those."""
    transcript = window.transcript
    words = transcript.user_words(index, number)
    call = transcript.call_for(index, number)
    step = _called(call, asks=bool(words)) if call else "- a tool"
    failed = "error: " if result.is_error else ""
    content = "\n".join(_gave(window, index, number, digests))
    yield _defused(f"{step} → {failed}{content or 'nothing'}")
    if words:
        yield f"- user: {words.strip()}"


def _called(call: ToolCall, *, asks: bool = False) -> str:
    """A call and its arguments; what is no object stands as it was sent.

    Of one that asks the user, more of the question stands: the answer alone may say little.
    """
    try:
        arguments = _loads(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = call.arguments
    most_chars = (
        _CHANGE_CHARS if asks or is_change(call.name) else _VALUE_CHARS
    )
    if not isinstance(arguments, dict):
        return f"- {call.name}({_short(arguments, most_chars)})"
    fields = []
    for key, item in arguments.items():
        value = _short(item, most_chars)
        fields.append(f"{key}={value}")
    return f"- {call.name}({', '.join(fields)})"


def _short(value: object, most_chars: int) -> str:
    """An argument as text: all of it, or half a line of its beginning."""
    text = value if isinstance(value, str) else canon.canonical_json(value)
    return _beginning(text, most_chars, _VALUE_CHARS // 2)


def _beginning(text: str, most_chars: int, head_chars: int) -> str:
    """A text of at most ``most_chars`` characters whole, of any other the head."""
    if len(text) <= most_chars:
        return text
    return f"{text[: safe_cut(text, head_chars)]}…"


def _gave(
    window: Window,
    index: int,
    number: int,
    digests: Mapping[Location, str],
) -> Iterator[str]:
    """What a call gave: each item word for word, its lines that are kept, or its ref alone."""
    transcript = window.transcript
    part = transcript.messages[index].parts[number]
    if not isinstance(part, ToolResult):
        return
    is_page = window.is_recall((index, number, 0))
    is_words = bool(transcript.user_words(index, number))
    is_programs = transcript.reader(index, number) == "program"
    for item, leaf in enumerate(part.content):
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
        else:
            output = transcript.output(spot) if spot in digests else None
            if output is None:
                yield leaf.text
                continue
            size = f"{len(leaf.text):,} characters, ref={output.ref}"
            digest = f"{size}{digests[spot]}"
            yield min(leaf.text, digest, key=len)


def _read_by_program(window: Window, spot: Location, text: str) -> str:
    """What stands for a result that the model never saw: nothing of it."""
    output = window.transcript.output(spot)
    ref = f", ref={output.ref}" if output else ""
    return f"{len(text):,} characters for the program that made the call{ref}"


def _block(window: Window, spot: Location) -> str:
    """What stands for an image, a document, or what only a provider reads."""
    output = window.transcript.output(spot)
    return f"a block, ref={output.ref}" if output else "a block"
