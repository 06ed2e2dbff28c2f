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
    seam_from,
    summarised,
)
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit
from ullage.policy.stages.account import done_chars, said_chars
from ullage.policy.stages.condense import (
    CHARS_PER_TOKEN,
    AccountRoom,
    Range,
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
_SPOKEN = (Tier.HANDED, Tier.SAID)
_LAST = (*_SPOKEN, Tier.TASK, Tier.SYSTEM)


def emergency(
    window: Window,
    /,
    *,
    start: float = GUARD_SHARE,
    start_tokens: int | None = None,
    target: float = 0.35,
    keep_messages: int | None = 10,
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
            turns; fewer only where they would go over ``target``. None: as many as ``target``
            holds, and the records before them.
        account_share: the account may take this share of the limit, or of ``start_tokens``.
        user_share: what the user said may take this share more, quoted word for word.
        kept_share: where even so the view would be over this share, texts are cut to size; the
            default leaves the next turn some room too.
    """
    parted = _parted(window)
    reason = parted or _pressed(window, start, start_tokens)
    if reason is None:
        return ()
    limit = window.limit_tokens
    start_limit = int(limit * start)
    calibration = window.calibration
    whole_view = calibration.without(0)
    new_view = calibration.without(window.tokens)
    # of a view made anew nothing was reported yet: it has to fit with a margin for all of it
    most_tokens = min(
        whole_view.most(int(limit * kept_share)), new_view.most(start_limit)
    )
    chars = min(limit, start_tokens or limit) * CHARS_PER_TOKEN
    room = AccountRoom(
        account_chars=int(chars * account_share),
        user_chars=int(chars * user_share),
        most_tokens=most_tokens,
        reason=reason,
        is_owed=parted is not None,
    )
    begin_at, end = reach(window)
    user_chars = min(
        room.user_chars, said_chars(window.transcript, begin_at, end)
    )
    beside_account = most_tokens
    beside_account -= user_chars // CHARS_PER_TOKEN
    beside_account -= room.account_chars // CHARS_PER_TOKEN
    target_tokens = whole_view.most(int(limit * target))
    target_tokens = min(target_tokens, beside_account)
    cuts: Sequence[ProposedEdit] = ()
    # the mildest way that fits; the last one where none does
    for stop, tiers in _ways(
        window, begin_at, end, target_tokens, keep_messages
    ):
        ranges = ranges_for(window, begin_at, stop)
        cuts, tokens = _plan(window, ranges, room, tiers)
        removed = calibration.removed_tokens + window.tokens - tokens
        rest = calibration.without(removed)
        if rest.upper(tokens) <= start_limit:
            break
    return cuts


def _ways(
    window: Window,
    start: int,
    end: int,
    target_tokens: int,
    keep: int | None,
) -> Iterator[tuple[int, Sequence[Tier]]]:
    """Where what is condensed may end and what of the rest may be cut, the mildest way first.

    Args:
        window: the window at the boundary at hand.
        start: the first message that may be condensed.
        end: one past the last.
        target_tokens: what the view should come down to.
        keep: how many messages stay whole, if that can be; None: as many as can.
    """
    reaches_tail = start < end == control_tail(window)
    may_take_all = reaches_tail and window.transcript.closed(end)
    head = head_of_loop(window)
    tail = _tail_start(
        window,
        start,
        end,
        target=target_tokens,
        keep=keep,
        in_result=head is not None,
    )
    is_parted = _parted(window) is not None
    if is_frozen(window):
        # what stands before the newest thinking of the turn goes whole or not at all (A14)
        is_behind_head = head is not None and tail > head[0] + 1
        if not is_parted:
            yield (tail if is_behind_head else start), BEFORE_NEW
        yield (end if may_take_all else start), tuple(Tier)
        return
    if not is_parted or (tail < window.size and window.may_cut(tail)):
        yield tail, BEFORE_NEW
        yield tail, tuple(Tier)
    if may_take_all:
        yield end, tuple(Tier)


def _parted(window: Window) -> str | None:
    """Why the account that stands must go further, or None: the turn behind it has lost its head.

    So it is where a loop went on without new thinking, though its beginning was condensed: the
    session joined it half-way, or thinking is manual only now.
    """
    account_stop = window.size
    for placed in reversed(window.summaries):
        if placed.edit.text:
            account_stop = placed.stop
            break
    question = window.transcript.newest_request(window.size)
    if question is not None and question >= account_stop:
        return None
    if account_stop >= control_tail(window) or window.may_go_on(account_stop):
        return None
    return "the account ended within a turn that must begin with its thinking"


def _pressed(
    window: Window, start: float, start_tokens: int | None
) -> str | None:
    """Why something must be done, or None."""
    if start_tokens is not None and not window.within(start_tokens - 1):
        return f"the view had reached the {start_tokens:,} tokens of the brake"
    limit = window.limit_tokens
    start_limit = int(limit * start)
    if not window.within(start_limit, surely=True):
        return f"the view was near its limit of {limit:,} tokens"
    return None


def _plan(
    window: Window,
    ranges: Sequence[Range],
    room: AccountRoom,
    tiers: Sequence[Tier],
) -> tuple[Sequence[ProposedEdit], int]:
    """Condense ranges, and cut what is kept to size: the cuts, and the uncalibrated tokens left.

    What is old makes room first. Then new results do, for what users said and for a few bullets, as
    long as half of the limit holds what users said; what is over that makes room before they do.
    """
    tokens = window.tokens
    account_tokens = 0
    for span in ranges:
        tokens -= held_tokens(window, span)
        account_tokens += _account_tokens(window, span, room)
    staying = _staying(window, ranges)
    excess = tokens + account_tokens - room.most_tokens
    # first what the model has seen and answered (gate G8)
    early, won = shrink(window, staying, BEFORE_NEW, excess)
    tokens -= won
    excess -= won
    spoken_over = _spoken_over(window, staying, ranges, room)
    # what new results lend to the accounts they give back below, if the accounts need it
    spare = reducible_tokens(window, staying, (Tier.NEW,)) if ranges else 0
    lent = min(spare, max(excess - spoken_over, 0))
    cuts = list[ProposedEdit]()
    for span in ranges:
        span_tokens = room.most_tokens - (tokens - lent)
        account = condense(
            window, span, room._replace(most_tokens=span_tokens)
        )
        if account is None:  # it is shorter as it is
            shorter = [rest for rest in ranges if rest != span]
            return _plan(window, shorter, room, tiers)
        cuts += account.cuts
        tokens += account.tokens
    gives = window.tokens if Tier.NEW in tiers else lent
    excess = tokens - room.most_tokens
    late, won = _late(
        window,
        staying,
        tiers,
        excess=excess,
        spoken_over=spoken_over,
        gives=gives,
    )
    return [*cuts, *early, *late], tokens - won


def _staying(window: Window, ranges: Sequence[Range]) -> list[int]:
    """The messages whose texts may be cut: no account stands for them, and none stands in them."""
    leaving = set[int]()
    for span in ranges:
        leaving.update(coverable(window, span.start, span.stop))
        if span.inside:
            leaving.add(span.inside[0])
    start = editable_from(window)
    visible = window.visible_in(start, window.size)
    return [index for index in visible if index not in leaving]


def _late(
    window: Window,
    staying: Sequence[int],
    tiers: Sequence[Tier],
    excess: int,
    spoken_over: int,
    gives: int,
) -> tuple[list[ProposedEdit], int]:
    """Cuts of new results and of what was said, and the tokens they win.

    Of what users said and handed over ``spoken_over`` tokens go first, and more only where nothing
    else is left; new results have ``gives`` tokens to give.
    """
    spoken, won = shrink(window, staying, _SPOKEN, min(excess, spoken_over))
    results, won_of_results = shrink(
        window, staying, (Tier.NEW,), min(excess - won, gives)
    )
    final_tiers = [tier for tier in _LAST if tier in tiers]
    # what users said goes beyond its share only when nothing else is left to give
    if final_tiers and won + won_of_results < excess:
        spoken, won = shrink(
            window, staying, final_tiers, excess - won_of_results
        )
    return [*spoken, *results], won + won_of_results


def _spoken_over(
    window: Window,
    staying: Sequence[int],
    ranges: Sequence[Range],
    room: AccountRoom,
) -> int:
    """About how many tokens users gave more than their room holds, here and in accounts."""
    chars = 0
    for span in ranges:
        chars += said_chars(window.transcript, span.start, span.stop)
    for spot, tier in texts_of(window, staying):
        if tier is Tier.TASK or tier in _SPOKEN:
            leaf = window.transcript.leaf(spot)
            chars += len(getattr(leaf, "text", ""))
    excess = max(chars - room.user_chars, 0)
    return excess // CHARS_PER_TOKEN


def _account_tokens(window: Window, span: Range, room: AccountRoom) -> int:
    """Tokens that an account should have: what was said, what is new, and its bullets."""
    transcript = window.transcript
    start = span.start
    stop = span.stop
    user_chars = min(room.user_chars, said_chars(transcript, start, stop))
    step_chars = min(room.account_chars, done_chars(transcript, start, stop))
    total = _LEAST_ACCOUNT_TOKENS
    total += (user_chars + step_chars) // CHARS_PER_TOKEN
    for spot in unread(window, span):
        total += window.leaf_tokens(spot)
    return total


def reach(window: Window) -> tuple[int, int]:
    """The first message that may be condensed, and one past the last.

    What was condensed stays so; else it begins where `begin` says. A compaction of the
    provider that came later is not condensed either: nobody else can read it. Nor is what the
    host added at the end for the provider alone.
    """
    start = begin(window)
    placed = condensed(window)
    if placed and placed[0].edit.text:
        start = placed[0].start
    tail = control_tail(window)
    compactions = window.transcript.marked("compacted", start, tail)
    # of what stands between them, the part that shows the most
    edges = [start - 1, *compactions, tail]
    stretches = []
    for edge, next_edge in pairwise(edges):
        # behind a compaction its own reply may go on, and no range begins within a reply
        stretches.append((seam_from(window, edge + 1, next_edge), next_edge))
    return max(stretches, key=lambda stretch: _tokens_of(window, *stretch))


def _tokens_of(window: Window, start: int, stop: int) -> int:
    """The tokens that the messages of a range have in the view."""
    visible = window.visible_in(start, stop)
    return sum(window.message_tokens(index) for index in visible)


def _tail_start(
    window: Window,
    begin: int,
    end: int,
    target: int,
    keep: int | None,
    in_result: bool,
) -> int:
    """Where the kept tail begins: at a reply of the model.

    It holds ``keep`` messages or as many more as make a whole turn, and fewer where those
    would not fit ``target``; all that fit where ``keep`` is None: of a record more stays than an
    account says. Where an account can stand in a result, the reply need not think.
    """
    fixed = window.head_tokens
    for index in range(begin):
        fixed += window.message_tokens(index)
    _, earliest = summarised(window) or (begin, begin)
    may_cut = window.transcript.may_cut if in_result else window.may_cut
    records = {}
    for placed in window.open_summaries:
        if placed.start >= earliest:
            records[placed.start] = placed
    tail_tokens = 0
    best = window.size
    for index in range(window.size - 1, earliest - 1, -1):
        is_hidden = window.hidden(index)
        if not is_hidden:
            tail_tokens += window.message_tokens(index)
        # a record stands where its first message stood, though that is hidden
        if index in records:
            tail_tokens += window.texts_tokens(records[index].edit.texts)
        elif is_hidden:
            continue
        # the first reply from the end on is kept whatever it takes
        is_over = fixed + tail_tokens > target
        is_enough = keep is not None and window.size - best >= keep
        if best < window.size and (is_over or is_enough):
            break
        if index <= end and may_cut(index):
            best = index
    return best if best < window.size else earliest
