"""Emergency: whatever it takes to fit the hard limit, and never an illegal view.

What is between the task and the newest messages becomes an account: one user message of
bullets, with an index of everything it stands for (`ullage.policy.stages.condense`). Within a turn
that must begin with thinking the account stands in a result instead, so that the turn keeps its
head. If what is kept is itself too large, its texts are cut, user text last
(`ullage.policy.stages.shrink`). The account is always made from the original messages, never from
an earlier account, so nothing decays however often it happens (failure F51).

If even that does not fit (signed calls may not be cut), the newest turn is condensed as well,
and its results are quoted: the model has not seen them yet (gate G8).
For every history, and every limit above what stands outside the messages and a small floor,
it returns cuts that fit (failure F39).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ullage.core.contract.bound import editable_from, is_frozen
from ullage.core.contract.ranges import (
    begin,
    condensed,
    control_tail,
    coverable,
    summarised,
)
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit
from ullage.policy.stages.account import done_chars, said_chars
from ullage.policy.stages.condense import (
    CHARS_PER_TOKEN,
    Range,
    Room,
    condense,
    head_of_loop,
    held_tokens,
    ranges_for,
    unread,
)
from ullage.policy.stages.pressure import GUARD_SHARE
from ullage.policy.stages.quotes import USER_SHARE
from ullage.policy.stages.shrink import (
    BEFORE_NEW,
    Tier,
    reducible_tokens,
    shrink,
    texts_of,
)

_LEAST_ACCOUNT_TOKENS = 150
_LAST = (Tier.SAID, Tier.TASK, Tier.SYSTEM)


def emergency(
    window: Window,
    /,
    *,
    start: float = GUARD_SHARE,
    start_tokens: int | None = None,
    target: float = 0.35,
    keep_messages: int = 10,
    account_share: float = 0.12,
    user_share: float = USER_SHARE,
    kept_share: float = 0.80,
) -> Sequence[ProposedEdit]:
    """Cuts that bring the window under its hard limit, or none if it surely fits.

    Args:
        window: the window at the boundary at hand.
        start: act when the upper bound of the view is above this share of the limit.
        start_tokens: act also when the view holds this many tokens (multi-stage §1, the
            brake); None for never.
        target: condense down to this share where the kept messages allow it, or to what
            ``kept_share`` leaves beside the account, if that is less.
        keep_messages: how many of the newest messages stay whole, widened outward to whole
            turns; fewer only where they would go over ``target``.
        account_share: the account may take this share of the limit, or of ``start_tokens``.
        user_share: what the user said may take this share more, quoted word for word.
        kept_share: where even so the view would be over this share, texts are cut to size; the
            default leaves the next turn some room too.
    """
    parted = _parted(window)
    why = parted or _pressed(window, start, start_tokens)
    if why is None:
        return ()
    limit, calibration = window.limit_tokens, window.calibration
    whole, anew = calibration.without(0), calibration.without(window.tokens)
    chars = min(limit, start_tokens or limit) * CHARS_PER_TOKEN
    # of a view made anew nothing was reported yet: it has to fit with a margin for all of it
    most_tokens = min(
        whole.most(int(limit * kept_share)), anew.most(int(limit * start))
    )
    most_chars = int(chars * account_share), int(chars * user_share)
    room = Room(*most_chars, most_tokens, why, is_owed=parted is not None)
    first, end = reach(window)
    said_tokens = (
        min(room.user_chars, said_chars(window.transcript, first, end))
        // CHARS_PER_TOKEN
    )
    beside = most_tokens - said_tokens - room.account_chars // CHARS_PER_TOKEN
    target_tokens = min(whole.most(int(limit * target)), beside)
    cuts: Sequence[ProposedEdit] = ()
    for stop, tiers in _ways(window, first, end, target_tokens, keep_messages):
        cuts, tokens = _plan(window, ranges_for(window, first, stop), room, tiers)
        removed = calibration.removed_tokens + window.tokens - tokens
        if calibration.without(removed).upper(tokens) <= int(limit * start):
            break
    return cuts


def _ways(
    window: Window, first: int, end: int, target_tokens: int, keep: int
) -> Iterator[tuple[int, Sequence[Tier]]]:
    """Where what is condensed may end and what of the rest may be cut, the mildest way first."""
    whole = first < end == control_tail(window) and window.transcript.closed(end)
    head = head_of_loop(window)
    tail = _tail_start(window, first, end, target_tokens, keep, head is not None)
    if is_frozen(window):
        # what stands before the newest thinking of the turn goes whole or not at all (A14)
        behind = head is not None and tail > head[0] + 1
        if _parted(window) is None:
            yield (tail if behind else first), BEFORE_NEW
        yield (end if whole else first), tuple(Tier)
        return
    if _parted(window) is None or (tail < window.size and window.may_cut(tail)):
        yield tail, BEFORE_NEW
        yield tail, tuple(Tier)
    if whole:
        yield end, tuple(Tier)


def _parted(window: Window) -> str | None:
    """Why the account that stands must go further, or None: the turn behind it has lost its head.

    So it is where a loop went on without new thinking, though its beginning was condensed: the
    session joined it half-way, or thinking is manual only now.
    """
    placed = (each.stop for each in reversed(window.summaries) if each.edit.text)
    stop = next(placed, window.size)
    opening = window.transcript.newest_request(window.size)
    is_later = opening is not None and opening >= stop
    if is_later or stop >= control_tail(window) or window.may_go_on(stop):
        return None
    return "the account ended within a turn that must begin with its thinking"


def _pressed(window: Window, start: float, start_tokens: int | None) -> str | None:
    """Why something must be done, or None."""
    if start_tokens is not None and not window.within(start_tokens - 1):
        return f"the view had reached the {start_tokens:,} tokens of the brake"
    if not window.within(int(window.limit_tokens * start), surely=True):
        return f"the view was near its limit of {window.limit_tokens:,} tokens"
    return None


def _plan(
    window: Window, ranges: Sequence[Range], room: Room, tiers: Sequence[Tier]
) -> tuple[Sequence[ProposedEdit], int]:
    """Condense ranges, and cut what is kept to size: the cuts, and the uncalibrated tokens left.

    What is old makes room first. Then new results do, for what users said and for a few bullets, as
    long as half of the limit holds what users said; what is over that makes room before they do.
    """
    tokens = window.tokens - sum(held_tokens(window, each) for each in ranges)
    wanted = sum(_wanted_tokens(window, each, room) for each in ranges)
    gone = {at for each in ranges for at in coverable(window, each.start, each.stop)}
    gone |= {each.inside[0] for each in ranges if each.inside}
    shown = window.visible_in(editable_from(window), window.size)
    loose = [at for at in shown if at not in gone]
    early, won = shrink(window, loose, BEFORE_NEW, tokens + wanted - room.most_tokens)
    tokens -= won
    over = _said_over(window, loose, ranges, room)
    spare = reducible_tokens(window, loose, (Tier.NEW,)) if ranges else 0
    lent = min(spare, max(tokens + wanted - room.most_tokens - over, 0))
    cuts = list[ProposedEdit]()
    for each in ranges:
        left = room.most_tokens - (tokens - lent)
        made = condense(window, each, room._replace(most_tokens=left))
        if made is None:  # it is shorter as it is
            return _plan(
                window, [other for other in ranges if other != each], room, tiers
            )
        cuts += made.cuts
        tokens += made.tokens
    gives = lent if Tier.NEW not in tiers else window.tokens
    late, won = _late(window, loose, tiers, tokens - room.most_tokens, over, gives)
    return [*cuts, *early, *late], tokens - won


def _late(
    window: Window,
    kept: Sequence[int],
    tiers: Sequence[Tier],
    excess: int,
    over: int,
    gives: int,
) -> tuple[list[ProposedEdit], int]:
    """Cuts of new results and of what was said, and the tokens they win.

    Of what users said ``over`` tokens go first, and more only where nothing else is left; new
    results have ``gives`` tokens to give.
    """
    said, won = shrink(window, kept, (Tier.SAID,), min(excess, over))
    new, won_new = shrink(window, kept, (Tier.NEW,), min(excess - won, gives))
    last = [tier for tier in _LAST if tier in tiers]
    if last and won + won_new < excess:
        said, won = shrink(window, kept, last, excess - won_new)
    return [*said, *new], won + won_new


def _said_over(
    window: Window, kept: Sequence[int], ranges: Sequence[Range], room: Room
) -> int:
    """About how many tokens users said more than their room holds, here and in accounts."""
    chars = sum(said_chars(window.transcript, each.start, each.stop) for each in ranges)
    for spot, tier in texts_of(window, kept):
        if tier in (Tier.SAID, Tier.TASK):
            chars += len(getattr(window.transcript.leaf(spot), "text", ""))
    return max(chars - room.user_chars, 0) // CHARS_PER_TOKEN


def _wanted_tokens(window: Window, each: Range, room: Room) -> int:
    """Tokens that an account should have: what was said, what is new, and its bullets."""
    said = min(room.user_chars, said_chars(window.transcript, each.start, each.stop))
    done = min(room.account_chars, done_chars(window.transcript, each.start, each.stop))
    new = sum(map(window.leaf_tokens, unread(window, each)))
    return new + (said + done) // CHARS_PER_TOKEN + _LEAST_ACCOUNT_TOKENS


def reach(window: Window) -> tuple[int, int]:
    """The first message that may be condensed, and one past the last.

    What was condensed stays so; else it begins where `begin` says. A compaction of the
    provider that came later is not condensed either: nobody else can read it. Nor is what the
    host added at the end for the provider alone.
    """
    placed = condensed(window)
    goes_on = placed and placed[0].edit.text
    start = placed[0].start if goes_on else begin(window)
    tail = control_tail(window)
    compactions = window.transcript.marked("compacted", start, tail)
    # of what stands between them, the part that shows the most
    edges = [start - 1, *compactions, tail]
    stretches = [(before + 1, after) for before, after in pairwise(edges)]
    return max(stretches, key=lambda stretch: _tokens_of(window, *stretch))


def _tokens_of(window: Window, start: int, stop: int) -> int:
    """The tokens that the messages of a range have in the view."""
    return sum(map(window.message_tokens, window.visible_in(start, stop)))


def _tail_start(
    window: Window, begin: int, end: int, target: int, keep: int, in_result: bool
) -> int:
    """Where the kept tail begins: at a reply of the model.

    It holds ``keep`` messages or as many more as make a whole turn, and fewer where those
    would not fit ``target``. Where an account can stand in a result, the reply need not think.
    """
    fixed = window.head_tokens + sum(
        window.message_tokens(index) for index in range(begin)
    )
    _, floor = summarised(window) or (begin, begin)
    may_cut = window.transcript.may_cut if in_result else window.may_cut
    records = {
        each.start: each for each in window.open_summaries if each.start >= floor
    }
    held, best = 0, window.size
    for index in range(window.size - 1, floor - 1, -1):
        held += 0 if window.hidden(index) else window.message_tokens(index)
        if index in records:
            held += window.texts_tokens(records[index].edit.texts)
        elif window.hidden(index):
            continue
        if best < window.size and (fixed + held > target or window.size - best >= keep):
            break
        if index <= end and may_cut(index):
            best = index
    return best if best < window.size else floor
