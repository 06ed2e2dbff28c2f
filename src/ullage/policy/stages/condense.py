"""Condense: an account in the place of a range of messages, and where it may stand.

It is a user message of its own. Within a tool loop that must begin with thinking (A14) a user
message would begin another turn, and the reply behind it would lack its thinking. There the
account stands in a result: at the end of the last one that answers the reply which thought.

Where a summary stood before, what a model said in it is carried over word for word; the
deterministic part is made anew, of the whole range, from the original messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
_SAID_SHARE = 0.67
_SUMMARY_SHARE = 0.6
_TRIES = 4


class Room(NamedTuple):
    """What an account may take, and why room is short.

    Attributes:
        account_chars: characters of its head and its bullets.
        user_chars: and of what the user said.
        most_tokens: tokens of both, and of results that the model has not seen yet.
        why: the reason, with its numbers.
        is_owed: whether the account is shown though it wins nothing: the view is illegal as it is.
    """

    account_chars: int
    user_chars: int
    most_tokens: int
    why: str
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
    transcript = window.transcript
    asked = transcript.newest_request(window.size)
    loop = range(0 if asked is None else asked + 1, window.size)
    replies = [at for at in loop if transcript.messages[at].role == "assistant"]
    if is_frozen(window):
        replies = [at for at in replies if window.signed(at)][-1:]
    head = next(iter(replies), None)
    if head is None or window.hidden(head) or not window.thinks(head):
        return None
    for at in range(transcript.reply(head, window.size).stop, window.size):
        message = transcript.messages[at]
        if message.role == "assistant" or window.hidden(at):
            break
        results = (
            spot
            for spot in transcript.results(at)
            if transcript.reader(*spot[:2]) == "model"
        )
        texts = [spot for spot in results if isinstance(transcript.leaf(spot), Text)]
        found = [spot for spot in texts if not window.is_pinned(spot)]
        if found and (at + 1 == window.size or transcript.starts_turn(at + 1)):
            return found[-1]
    return None


def ranges_for(window: Window, first: int, stop: int) -> list[Range]:
    """What is to be condensed so that the view goes on at ``stop``."""
    head = (
        None if stop >= window.size or window.may_go_on(stop) else head_of_loop(window)
    )
    if head is None:
        return [Range(first, stop)] if first < stop else []
    found = []
    asked = window.transcript.newest_request(window.size)
    if (
        asked is not None
        and not is_frozen(window)
        and window.transcript.may_split(asked)
    ):
        found = [Range(first, asked)] if coverable(window, first, asked) else []
    return [*found, Range(head[0] + 1, stop, head)] if head[0] + 1 < stop else found


def unread(window: Window, each: Range) -> list[Location]:
    """The results of a range that no request has shown yet: its end is that of the window.

    Hidden ones too: where the same request is made again, an account of the first time hides them.
    What the user answered is not among them: it is quoted with the user's other words.
    """
    if each.stop <= window.turn_start:
        return []
    messages = range(max(window.turn_start, each.start), each.stop)
    found = (
        spot for index in messages for spot in window.transcript.tool_results(index)
    )
    return [spot for spot in found if isinstance(window.transcript.leaf(spot), Text)]


def held_tokens(window: Window, each: Range) -> int:
    """Tokens of what is shown of a range now, and an account would take the place of."""
    shown = sum(map(window.message_tokens, coverable(window, each.start, each.stop)))
    return shown + sum(
        window.texts_tokens(placed.edit.texts)
        for placed in window.open_summaries
        if each.start <= placed.start < each.stop
    )


class Condensed(NamedTuple):
    """The cuts that show an account, and how many tokens that adds to the view without them."""

    cuts: tuple[ProposedEdit, ...]
    tokens: int


def condense(window: Window, each: Range, room: Room) -> Condensed | None:
    """An account of a range; None if it would win nothing.

    Bullets make room for results that the model has not seen yet, and both for what the user said.
    """
    chain, outputs = window.transcript.chain, set_aside(window, each.start, each.stop)
    bare = ReplaceSpan(
        chain[each.start], chain[each.stop], "", outputs[-1].ref, room.why
    )
    record, edit = take_over(window, bare, each, room.account_chars)
    text, later = _text(window, each, edit, record, room)
    edit = replace(edit, text=text, later=later)
    quoted = "\n".join((text, *later))
    outputs = (
        *user_outputs(window.transcript, each.start, each.stop, quoted),
        *outputs,
    )
    cuts: tuple[ProposedEdit, ...] = (ProposedEdit(edit, outputs),)
    tokens = window.texts_tokens(edit.texts)
    if each.inside is not None:
        within = _within(window, each.inside, edit, room.user_chars)
        cuts = (
            ProposedEdit(replace(edit, text="", retain="", later=()), outputs),
            within,
        )
        tokens = -tokens_won(window, each.inside, within)
    is_worth_it = room.is_owed or tokens < held_tokens(window, each)
    return Condensed(cuts, tokens) if is_worth_it else None


def _within(
    window: Window, spot: Location, account: ReplaceSpan, user_chars: int
) -> ProposedEdit:
    """An account at the end of the result before its range; of the user's words more is shown."""
    output = window.transcript.output(spot)
    if output is None:
        raise ValueError(
            f"no text stands at {spot}"
        )  # `head_of_loop` gives no such place
    result: str | None = output.text
    is_words = bool(window.transcript.words(spot[0], spot[1]))
    most = max(_HEAD_CHARS, user_chars) if is_words else _HEAD_CHARS
    if len(output.text) > most:
        result = shorten(output.text, most, output.ref, window.words)
    whole = "\n\n".join(
        filter(None, (result, account.retain, account.text, *account.later))
    )
    why = f"{account.why}; it holds an account"
    return ProposedEdit(
        Replace(window.transcript.address(spot), output.ref, whole, "cut", why),
        (output,),
    )


def _text(
    window: Window, each: Range, edit: ReplaceSpan, record: str, room: Room
) -> tuple[str, tuple[str, ...]]:
    """What stands for a range, in no more than its room if that can be; see `ReplaceSpan.later`."""
    transcript, around = window.transcript, (each.start, each.stop)
    before = "\n\n".join(filter(None, (quotation(edit.model_text), record)))
    told = partial(account, transcript, *around, window.words, edit.ref, summary=before)
    new = unread(window, each)
    new_tokens = sum(map(window.leaf_tokens, new))
    if new_tokens > LEAST_TOKENS and room.most_tokens < (len(new) + 1) * LEAST_TOKENS:
        new, new_tokens = [], 0  # too many to be quoted: the index holds them
    said = min(room.user_chars, said_chars(transcript, *around))
    least = min(said // CHARS_PER_TOKEN, room.most_tokens - len(new) * LEAST_TOKENS)
    spare = max(room.most_tokens - new_tokens, least, LEAST_TOKENS)
    chars, text, later = spare * CHARS_PER_TOKEN, "", tuple[str, ...]()
    for _ in range(_TRIES):
        user_chars = min(said, chars)
        room_chars = min(room.account_chars, max(chars - user_chars, _LEAST_CHARS))
        until, later = later_words(transcript, *around, user_chars, window.words)
        text = told(room_chars - len(record), user_chars=user_chars, said_until=until)
        tokens = window.texts_tokens((text, *filter(None, later)))
        if tokens <= spare or chars <= _LEAST_CHARS:
            break
        chars = min(chars, len(text) + sum(map(len, later))) * spare // tokens
    shown_tokens = window.texts_tokens((text, *filter(None, later)))
    return text + _quoted(window, new, room.most_tokens - shown_tokens), later


def _quoted(window: Window, new: Sequence[Location], room_tokens: int) -> str:
    """The results that the model has not seen yet, each as large as it would be at first sight."""
    sizes = list(map(window.leaf_tokens, new))
    cap = max(level(sizes, room_tokens), LEAST_TOKENS)
    pieces = []
    for spot, tokens in zip(new, sizes, strict=True):
        cut = cut_to(window, spot, tokens, cap)
        shown = cut.edit if cut else window.shown(spot[0]).get(spot[1:])
        leaf = window.transcript.leaf(spot)
        text = shown.text if isinstance(shown, Replace) else getattr(leaf, "text", "")
        pieces.append(
            f"\n\n## Result of {window.tool_of(spot) or 'a tool'}, new\n{text}"
        )
    return "".join(pieces)


def take_over(
    window: Window, edit: ReplaceSpan, each: Range, room_chars: int
) -> tuple[str, ReplaceSpan]:
    """The deterministic summary of a range where one was shown, and the guard's edit with the rest.

    What a model said comes on top of the ``room_chars`` of the bullets. Where it is too long, it is
    left out: the deterministic summary and the index hold what it was made from.
    """
    shown = (placed for placed in window.open_summaries if placed.edit.summarised)
    placed = [placed for placed in shown if each.start <= placed.start < each.stop]
    if not placed:
        return "", edit
    room = int(room_chars * _SUMMARY_SHARE)
    record = summary(window.transcript, each.start, each.stop, room)
    edit, (said, upto) = replace(edit, summarised=True), said_before(window)
    retain = "\n\n".join(filter(None, (it.edit.retain for it in placed)))
    if len(said) + len(retain) > room_chars * _SAID_SHARE:
        return record, edit
    return record, replace(edit, model_text=said, model_upto=upto, retain=retain)
