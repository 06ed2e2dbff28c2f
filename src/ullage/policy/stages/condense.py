"""Condense: an account in the place of a range of messages, and where it may stand.

It is a user message of its own. Within a tool loop that must begin with thinking (A14) a user
message would begin another turn, and the reply behind it would lack its thinking. There the
account stands in a result: at the end of the last one that answers the reply which thought.

Where a summary stood before, what a model said in it is carried over word for word; the
deterministic part is made again, of the whole range, from the original messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ullage.core.contract.bound import is_frozen
from ullage.core.contract.ranges import coverable, said_before, set_aside
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.values.briefs import quotation
from ullage.core.values.edits import ProposedEdit, Replace, ReplaceSpan
from ullage.core.values.messages import Text
from ullage.policy.stages.account import account, said_chars, user_outputs
from ullage.policy.stages.prune import tokens_won
from ullage.policy.stages.shorten import level, shorten
from ullage.policy.stages.shrink import LEAST_TOKENS, cut_to
from ullage.policy.stages.summary import later_words, summary

CHARS_PER_TOKEN = 3
_HEAD_CHARS = 1_000
"""So much of the result in which an account stands is shown before it."""
_LEAST_CHARS = 400
"""An account is given no less room than this."""
_SAID_SHARE = 0.67
"""What a model said in earlier summaries is carried over up to this share of the bullets' room."""
_SUMMARY_SHARE = 0.6
"""The deterministic summary has this share of it."""
_TRIES = 4
"""Counted again less often than this: a room in characters is an estimate."""


class AccountRoom(NamedTuple):
    """What an account may take, and why room is short.

    Attributes:
        account_chars: characters of its head and its bullets.
        user_chars: and of what the user said.
        most_tokens: tokens of both, and of results that the model has not seen yet.
        reason: the reason, with its numbers.
        is_owed: whether the account is shown though it wins nothing: the view is illegal as it is.
    """

    account_chars: int
    user_chars: int
    most_tokens: int
    reason: str
    is_owed: bool = False


class Range(NamedTuple):
    """Messages from ``start`` up to ``stop``, and the result in which their account stands."""

    start: int
    stop: int
    inside: Location | None = None


def head_of_loop(window: Window) -> Location | None:
    """The result in which an account of what comes behind it can stand, or None.

    It answers the reply whose thinking the open loop must keep: that with which it begins, or,
    where thinking is bound to what is before it, the last that thought.
    """
    if not window.thinks_first:
        return None
    reply = _thinking_reply(window)
    if reply is None:
        return None
    transcript = window.transcript
    results_start = transcript.reply(reply, window.size).stop
    for index in range(results_start, window.size):
        message = transcript.messages[index]
        if message.role == "assistant" or window.hidden(index):
            return None
        texts = _texts_for_model(window, index)
        ends_turn = index + 1 == window.size or transcript.starts_turn(
            index + 1
        )
        if texts and ends_turn:
            return texts[-1]
    return None


def _thinking_reply(window: Window) -> int | None:
    """The reply whose thinking the open loop must keep; None where it is not in view."""
    transcript = window.transcript
    question = transcript.newest_request(window.size)
    loop_start = 0 if question is None else question + 1
    replies = []
    for index in range(loop_start, window.size):
        if transcript.messages[index].role == "assistant":
            replies.append(index)
    # where thinking is bound to what is before it, nothing before the last of it may change
    if is_frozen(window):
        replies = [index for index in replies if window.signed(index)][-1:]
    if not replies:
        return None
    reply = replies[0]
    if window.hidden(reply) or not window.thinks(reply):
        return None
    return reply


def _texts_for_model(window: Window, index: int) -> list[Location]:
    """The texts of results in a message that the model reads and that may be edited."""
    transcript = window.transcript
    spots = []
    for spot in transcript.results(index):
        reader = transcript.reader(*spot[:2])
        if reader != "model" or window.is_pinned(spot):
            continue
        leaf = transcript.leaf(spot)
        if isinstance(leaf, Text):
            spots.append(spot)
    return spots


def ranges_for(window: Window, start: int, stop: int) -> list[Range]:
    """What is to be condensed so that the view goes on at ``stop``.

    Args:
        window: the window at the boundary at hand.
        start: the first message that may be condensed.
        stop: where the view is to go on.

    Returns:
        One range; two where the turn keeps its head between them; none where nothing is left.
    """
    head = None
    if stop < window.size and not window.may_go_on(stop):
        head = head_of_loop(window)
    if head is None:
        return [Range(start, stop)] if start < stop else []
    # the head of the loop stays: what is before its question is a range of its own
    ranges = []
    question = window.transcript.newest_request(window.size)
    if question is not None and _may_end_at(window, start, question):
        ranges.append(Range(start, question))
    behind_head = head[0] + 1
    if behind_head < stop:
        ranges.append(Range(behind_head, stop, head))
    return ranges


def _may_end_at(window: Window, start: int, question: int) -> bool:
    """Whether an account may end before the question that opened the loop, and hides anything."""
    if is_frozen(window) or not window.transcript.may_split(question):
        return False
    return bool(coverable(window, start, question))


def unread(window: Window, span: Range) -> list[Location]:
    """The results of a range that no request has shown yet: its end is that of the window.

    Hidden ones too: where the same request is made again, an account of the first time hides them.
    What the user answered is not among them: it is quoted with the user's other words.
    """
    if span.stop <= window.turn_start:
        return []
    transcript = window.transcript
    spots = []
    for index in range(max(window.turn_start, span.start), span.stop):
        for spot in transcript.tool_results(index):
            leaf = transcript.leaf(spot)
            if isinstance(leaf, Text):
                spots.append(spot)
    return spots


def held_tokens(window: Window, span: Range) -> int:
    """Tokens of what is shown of a range now, and an account would take the place of."""
    total = 0
    for index in coverable(window, span.start, span.stop):
        total += window.message_tokens(index)
    for placed in window.open_summaries:
        if span.start <= placed.start < span.stop:
            total += window.texts_tokens(placed.edit.texts)
    return total


class Condensed(NamedTuple):
    """The cuts that show an account, and how many tokens that adds to the view without them."""

    cuts: tuple[ProposedEdit, ...]
    tokens: int


def condense(
    window: Window, span: Range, room: AccountRoom
) -> Condensed | None:
    """An account of a range.

    Bullets make room for results that the model has not seen yet, and both for what the user said.

    Args:
        window: the window at the boundary at hand.
        span: what the account stands for, and where.
        room: what it may take, and the reason for it.

    Returns:
        The cuts and their cost in tokens; None if the account would win nothing.
    """
    transcript = window.transcript
    start = span.start
    stop = span.stop
    outputs = set_aside(window, start, stop)
    edit = ReplaceSpan(
        after=transcript.chain[start],
        upto=transcript.chain[stop],
        text="",
        ref=outputs[-1].ref,
        why=room.reason,
    )
    record, edit = take_over(window, edit, span, room.account_chars)
    text, later = _text(window, span, edit, record, room)
    edit = replace(edit, text=text, later=later)
    quoted = "\n".join([text, *later])
    named = user_outputs(transcript, start, stop, quoted)
    outputs = (*named, *outputs)
    if span.inside is None:
        tokens = window.texts_tokens(edit.texts)
        condensed = Condensed((ProposedEdit(edit, outputs),), tokens)
    else:
        # the range shows nothing in its own place: its account stands in the result before it
        within = _within(window, span.inside, edit, room.user_chars)
        silent = replace(edit, text="", retain="", later=())
        won = tokens_won(window, span.inside, within)
        condensed = Condensed((ProposedEdit(silent, outputs), within), -won)
    if room.is_owed or condensed.tokens < held_tokens(window, span):
        return condensed
    return None


def _within(
    window: Window,
    spot: Location,
    account: ReplaceSpan,
    user_chars: int,
) -> ProposedEdit:
    """An account at the end of the result before its range; of the user's words more is shown."""
    output = window.transcript.output(spot)
    if output is None:  # `head_of_loop` gives no such place
        raise ValueError(f"no text stands at {spot}")
    most_chars = _HEAD_CHARS
    if window.transcript.user_words(spot[0], spot[1]):
        most_chars = max(_HEAD_CHARS, user_chars)
    result: str | None = output.text
    if len(output.text) > most_chars:
        result = shorten(output.text, most_chars, output.ref, window.words)
    texts = (result, account.retain, account.text, *account.later)
    edit = Replace(
        address=window.transcript.address(spot),
        ref=output.ref,
        text="\n\n".join(text for text in texts if text),
        kind="cut",
        why=f"{account.why}; it holds an account",
    )
    return ProposedEdit(edit, (output,))


def _text(
    window: Window,
    span: Range,
    edit: ReplaceSpan,
    record: str,
    room: AccountRoom,
) -> tuple[str, tuple[str, ...]]:
    """What stands for a range, in no more than its room if that can be; see `ReplaceSpan.later`."""
    transcript = window.transcript
    start = span.start
    stop = span.stop
    earlier = "\n\n".join(
        text for text in (quotation(edit.model_text), record) if text
    )
    results = unread(window, span)
    results_tokens = sum(window.leaf_tokens(spot) for spot in results)
    least_results_tokens = len(results) * LEAST_TOKENS
    # too many to be quoted: the index holds them
    is_crowded = room.most_tokens < least_results_tokens + LEAST_TOKENS
    if results_tokens > LEAST_TOKENS and is_crowded:
        results = []
        results_tokens = 0
        least_results_tokens = 0
    all_user_chars = min(room.user_chars, said_chars(transcript, start, stop))
    user_tokens = all_user_chars // CHARS_PER_TOKEN
    least_tokens = min(user_tokens, room.most_tokens - least_results_tokens)
    spare = max(room.most_tokens - results_tokens, least_tokens, LEAST_TOKENS)
    chars = spare * CHARS_PER_TOKEN
    text = ""
    later = tuple[str, ...]()
    tokens = 0
    for _ in range(_TRIES):
        user_chars = min(all_user_chars, chars)
        room_chars = min(
            room.account_chars, max(chars - user_chars, _LEAST_CHARS)
        )
        until, later = later_words(
            transcript, start, stop, user_chars, window.words
        )
        text = account(
            transcript,
            start,
            stop,
            window.words,
            edit.ref,
            room_chars - len(record),
            user_chars=user_chars,
            summary=earlier,
            said_until=until,
        )
        tokens = _shown_tokens(window, text, later)
        if tokens <= spare or chars <= _LEAST_CHARS:
            break
        # characters are a guess at tokens: by what these came to, the next guess is better
        later_chars = sum(len(words) for words in later)
        chars = min(chars, len(text) + later_chars) * spare // tokens
    return text + _quoted(window, results, room.most_tokens - tokens), later


def _shown_tokens(window: Window, text: str, later: Sequence[str]) -> int:
    """Tokens of an account and of the user's later words."""
    spoken = [words for words in later if words]
    return window.texts_tokens((text, *spoken))


def _quoted(
    window: Window, spots: Sequence[Location], room_tokens: int
) -> str:
    """The results that the model has not seen yet, each as large as it would be on arrival."""
    sizes = [window.leaf_tokens(spot) for spot in spots]
    cap = max(level(sizes, room_tokens), LEAST_TOKENS)
    quoted = ""
    for spot, tokens in zip(spots, sizes, strict=True):
        cut = cut_to(window, spot, tokens, cap)
        text = _result_text(window, spot, cut)
        tool = window.tool_of(spot) or "a tool"
        quoted += f"\n\n## Result of {tool}, new\n{text}"
    return quoted


def _result_text(
    window: Window, spot: Location, cut: ProposedEdit | None
) -> str:
    """A result as a cut shows it, else as the view does, else as it came."""
    if cut is not None and isinstance(cut.edit, Replace):
        return cut.edit.text
    edit = window.edit_at(spot)
    if edit is not None:
        return edit.text
    text: str = getattr(window.transcript.leaf(spot), "text", "")
    return text


def take_over(
    window: Window,
    edit: ReplaceSpan,
    span: Range,
    room_chars: int,
) -> tuple[str, ReplaceSpan]:
    """The deterministic summary of a range where one was shown, and the guard's edit with the rest.

    What a model said comes on top of the ``room_chars`` of the bullets. Where it is too long, it is
    left out: the deterministic summary and the index hold what it was made from.
    """
    placed_here = []
    for placed in window.open_summaries:
        if placed.edit.summarised and span.start <= placed.start < span.stop:
            placed_here.append(placed)
    if not placed_here:
        return "", edit
    record_chars = int(room_chars * _SUMMARY_SHARE)
    record = summary(window.transcript, span.start, span.stop, record_chars)
    edit = replace(edit, summarised=True)
    model_words, upto = said_before(window)
    retain = "\n\n".join(
        placed.edit.retain for placed in placed_here if placed.edit.retain
    )
    # the bullets must have some room left: the index opens what was said
    if len(model_words) + len(retain) > room_chars * _SAID_SHARE:
        return record, edit
    return record, replace(
        edit, model_text=model_words, model_upto=upto, retain=retain
    )
