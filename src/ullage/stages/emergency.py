"""Emergency: whatever it takes to fit the hard limit, and never an illegal view.

What is kept whole: what stands outside the messages, everything up to the first user
message and up to what the provider itself compacted, what the system says, the newest
messages. What is between becomes an account: one user message of bullets, with an index of
everything it stands for. Where a summary stood, the account takes it over (`previous`).
If what is kept is itself too large, its largest texts are cut to size. The account is always
made from the original messages, never from an earlier account, so nothing decays however
often it happens (failure F51).

If even that does not fit (signed calls may not be cut), the newest turn is condensed as well.
For every history, and every limit above what stands outside the messages and a small floor,
it returns cuts that fit (failure F39).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ullage.history import canon
from ullage.history.transcript import Location, leaves_of
from ullage.history.window import Window
from ullage.stages.account import account, index_of
from ullage.stages.pressure import is_frozen
from ullage.stages.previous import take_over
from ullage.stages.ranges import (
    begin,
    coverable,
    newest_compaction,
    newly_hidden,
    summarised,
)
from ullage.stages.shorten import level, shorten
from ullage.values.edits import Cut, Replace, Summary
from ullage.values.effects import Output
from ullage.values.messages import Text, ToolCall

__all__ = ["Room", "condense", "cut_to", "emergency", "reach"]

_CHARS_PER_TOKEN = 3
_LEAST_TOKENS = 60
_WORTH_SHARE = 0.95
"""What was cut before is not cut again for less, so that the same request is shown as it was."""


def emergency(
    window: Window,
    /,
    *,
    start: float = 0.94,
    start_tokens: int | None = None,
    target: float = 0.35,
    keep_messages: int = 10,
    account_share: float = 0.12,
    user_share: float = 0.20,
    kept_share: float = 0.80,
) -> Sequence[Cut]:
    """Cuts that bring the window under its hard limit, or none if it surely fits.

    Args:
        window: the window at the boundary at hand.
        start: act when the upper bound of the view is above this share of the limit.
        start_tokens: act also when the view holds this many tokens (multi-stage §1, the
            brake); None for never.
        target: condense down to this share where the kept messages allow it.
        keep_messages: how many of the newest messages stay whole, widened outward to whole
            turns; fewer only where they would go over ``target``.
        account_share: the account may take this share of the limit, or of ``start_tokens``.
        user_share: what the user said may take this share more, quoted word for word.
        kept_share: where even so the view would be over this share, the largest texts are
            cut to size; the default leaves the next turn some room too.
    """
    parted = _parted(window)
    why = parted or _pressed(window, start, start_tokens)
    if why is None:
        return ()
    limit = window.limit_tokens
    chars = min(limit, start_tokens or limit) * _CHARS_PER_TOKEN
    most_tokens = window.calibration.most(int(limit * kept_share))
    room = Room(int(chars * account_share), int(chars * user_share), most_tokens, why)
    first, end = reach(window)
    target_tokens = window.calibration.most(int(limit * target))
    tail = _tail_start(window, first, end, target_tokens, keep_messages)
    plan = _Plan((), 0)
    # a turn that must begin with its thinking goes whole or not at all (A14)
    stops = [first] if is_frozen(window) else [tail]
    if parted:
        stops = [stop for stop in stops if stop < window.size and window.may_cut(stop)]
    if first < end == window.size and window.transcript.closed(end):
        stops.append(window.size)
    for stop in dict.fromkeys(stops):
        # the newest turn is condensed too, but only if nothing else makes the view fit
        plan = _plan(window, first, stop, room)
        if plan.tokens <= window.calibration.most(int(limit * start)):
            break
    return plan.cuts


def _parted(window: Window) -> str | None:
    """Why the account that stands must go further, or None: the turn behind it has lost its head.

    So it is where a loop went on without new thinking, though its beginning was condensed: the
    session joined it half-way, or thinking is manual only now.
    """
    stop = window.summaries[-1].stop if window.summaries else window.size
    if stop == window.size or window.may_go_on(stop):
        return None
    return "the account ended within a turn that must begin with its thinking"


def _pressed(window: Window, start: float, start_tokens: int | None) -> str | None:
    """Why something must be done, or None."""
    if start_tokens is not None and not window.within(start_tokens - 1):
        return f"the view had reached the {start_tokens:,} tokens of the brake"
    if not window.within(int(window.limit_tokens * start), surely=True):
        return f"the view was near its limit of {window.limit_tokens:,} tokens"
    return None


class Room(NamedTuple):
    """Characters for the account and the user's words, tokens for the view; and why it is short."""

    account_chars: int
    user_chars: int
    most_tokens: int
    why: str


class _Plan(NamedTuple):
    """Cuts, and the uncalibrated tokens of the view they would leave."""

    cuts: Sequence[Cut]
    tokens: int


def _plan(window: Window, begin: int, stop: int, room: Room) -> _Plan:
    """Condense [begin, stop), and cut what is kept to size."""
    span = condense(window, begin, stop, room)
    gone = set(coverable(window, begin, stop) if span else ())
    kept = [index for index in window.visible if index not in gone]
    tokens = window.head_tokens + sum(map(window.message_tokens, kept))
    if span is not None and isinstance(span.edit, Summary):
        tokens += window.texts_tokens(span.edit.texts)
    else:
        tokens += window.summaries_tokens
    cuts = [] if span is None else [span]
    least = _behind_thinking(window, kept)
    loose = [index for index in kept if index >= least]
    for spot, cut in _shrink(window, loose, tokens - room.most_tokens):
        cuts.append(cut)
        if isinstance(cut.edit, Replace):
            tokens += window.edit_tokens(cut.edit) - window.leaf_tokens(spot)
    return _Plan(cuts, tokens)


def _behind_thinking(window: Window, kept: Sequence[int]) -> int:
    """The first message that may be cut without the thinking of a frozen turn (A14)."""
    if not is_frozen(window):
        return 0
    thought = (i for i in kept if i >= window.turn_start and window.signed(i))
    return 1 + max(thought, default=-1)


def condense(window: Window, begin: int, stop: int, room: Room) -> Cut | None:
    """The cut that condenses [begin, stop), or None if it would win nothing."""
    if stop <= begin:
        return None
    transcript, words = window.transcript, window.words
    index = index_of(transcript, begin, stop, words)
    ref = canon.ref_of(index)
    over = take_over(window, begin, stop, room.account_chars)
    text = account(
        transcript,
        begin,
        stop,
        words,
        ref,
        room.account_chars - len(over.record),
        user_chars=room.user_chars,
        summary=over.text,
    )
    before = sum(map(window.message_tokens, coverable(window, begin, stop)))
    before += window.summaries_tokens
    edit = Summary(
        transcript.chain[begin],
        transcript.chain[stop],
        text,
        ref,
        room.why,
        said=over.said,
        said_upto=over.said_upto,
        retain=over.retain,
        summarised=bool(over.record),
    )
    if window.texts_tokens(edit.texts) >= before:
        return None
    return Cut(edit, (*newly_hidden(window, begin, stop), Output(ref, index)))


def reach(window: Window) -> tuple[int, int]:
    """The first message that may be condensed, and one past the last.

    What was condensed stays so; else it begins where `begin` says. A compaction of the
    provider that came later is not condensed either: nobody else can read it.
    """
    start, _ = summarised(window) or (begin(window), 0)
    return start, newest_compaction(window, start, window.size)


def _tail_start(window: Window, begin: int, end: int, target: int, keep: int) -> int:
    """Where the kept tail begins: at a reply of the model.

    It holds ``keep`` messages or as many more as make a whole turn, and fewer where those
    would not fit ``target``.
    """
    fixed = window.head_tokens + sum(window.message_tokens(index) for index in range(begin))
    _, floor = summarised(window) or (begin, begin)
    held, best = 0, window.size
    for index in range(window.size - 1, floor - 1, -1):
        held += window.message_tokens(index)
        if best < window.size and (fixed + held > target or window.size - best >= keep):
            break
        if index <= end and window.may_cut(index):
            best = index
    return best if best < window.size else floor


# ── what is kept is itself too large ─────────────────────────────────────────────────────


def _shrink(window: Window, kept: Sequence[int], excess: int) -> Iterator[tuple[Location, Cut]]:
    """Cuts of the largest texts among the kept messages that win ``excess`` tokens."""
    if excess <= 0:
        return
    leaves = sorted(_texts(window, kept), key=lambda pair: -pair[1])
    sizes = [tokens for _, tokens in leaves]
    cap = max(level(sizes, sum(sizes) - excess), _LEAST_TOKENS)
    for spot, tokens in leaves:
        if tokens <= cap:
            break
        cut = cut_to(window, spot, tokens, cap)
        if cut is not None:
            yield spot, cut


def _texts(window: Window, kept: Sequence[int]) -> Iterator[tuple[Location, int]]:
    for index in kept:
        if window.hidden(index):
            continue
        may_go = Text if window.signed(index) else (Text, ToolCall)
        for number, item, leaf in leaves_of(window.transcript.messages[index]):
            if isinstance(leaf, may_go):
                spot = (index, number, item)
                yield spot, window.leaf_tokens(spot)


def cut_to(window: Window, spot: Location, tokens: int, cap: int) -> Cut | None:
    """A cut of one text to at most ``cap`` tokens."""
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    if output is None:
        return None
    original = output.text
    edit = window.shown(spot[0]).get((spot[1], spot[2]))
    shown_chars = len(edit.text) if edit is not None else len(original)
    ref, chars = output.ref, shown_chars * cap // tokens
    for _ in range(8):
        if isinstance(leaf, ToolCall):
            stub = {"_ullage": window.words.arguments(ref, len(original))}
            text: str | None = canon.canonical_json(stub)
        else:
            text = shorten(original, chars, ref, window.words) or None
        if text is None or not _over(window, text, cap) or isinstance(leaf, ToolCall):
            break
        chars = chars * 4 // 5
    if window.tool_of(spot) and isinstance(leaf, Text) and _over(window, text, cap):
        text = window.words.placeholder(ref, original)
    if text is None or len(text) > shown_chars * _WORTH_SHARE:
        return None
    why = f"{tokens:,} tokens in one text; the view was over its hard limit"
    replace = Replace(window.transcript.place(spot), ref, text, "cut", why)
    return Cut(replace, (output,))


def _over(window: Window, text: str | None, cap: int) -> bool:
    return text is None or window.meter.text(text) > cap
