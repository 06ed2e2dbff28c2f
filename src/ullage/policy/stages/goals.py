"""Goals: what a view may hold after a compaction, and what of that its summary may take.

A compaction that stops short of its goal comes again a few turns later, and wins little each
time. So the summary has its room inside the goal, and a goal that cannot be reached, because what
may not be touched is larger, is told instead of tried again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.contract.ranges import coverable
from ullage.core.history.measures import Fold
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.policy.stages import rough
from ullage.policy.stages.facts import Utterance, utterances

CHARS_PER_TOKEN = 3
"""What a room in tokens is in characters, before anything is counted."""
_WORDS_SHARE = 0.125
"""A model's words need no more of a goal than this, and have no more of a summary's room than
twice as much."""
_ACCOUNT_SHARE = 0.33
"""What was done has this share of the rest, where the user's words would take all of it."""
_LEAST_SHARE = 0.10
"""A summary has this share of its goal, even where the goal is missed by that,"""
_LEAST_TOKENS = 2_000
"""or so many tokens. In a window of few the user's rules need as much as in any other."""
FRAME_CHARS = 24
"""What stands around each text of the user,"""
FRAME_TOKENS = 8
"""and in tokens."""


class Goal(Struct, frozen=True):
    """What the view holds after a compaction, at most, by one way of counting.

    Attributes:
        most_tokens: the most that it may hold.
        counted: the same as it is counted here; what was learned from reported usage is in that.
        view_tokens: what the view holds.
        message_tokens: what of that is one message, as it is shown.
        text_tokens: what a text adds that is shown as a message.
    """

    most_tokens: Callable[[Window], int]
    counted: Callable[[Window, int], int]
    view_tokens: Callable[[Window], int]
    message_tokens: Callable[[Window, int], int]
    text_tokens: Callable[[Window, str], int]


class SummaryNeeds(NamedTuple):
    """The most that the parts of a summary take where there is room for all of them.

    Attributes:
        account_tokens: what was done.
        user_chars: what the user said.
        words_tokens: what a model adds.
    """

    account_tokens: int
    user_chars: int
    words_tokens: int


class SummaryRoom(NamedTuple):
    """What the parts of a summary may take.

    Attributes:
        account_chars: what was done.
        user_chars: what the user said.
        words_tokens: what a model adds.
        short_tokens: what is missing for all that is wanted.
        missed_tokens: how much the view is over its goal anyway.
    """

    account_chars: int
    user_chars: int
    words_tokens: int
    short_tokens: int = 0
    missed_tokens: int = 0


def by_count(*, share: float) -> Goal:
    """A share of the limit, by the window's own count."""
    return _by_count(partial(_share_of_limit, share=share))


def by_budget(*, tokens: int) -> Goal:
    """So many tokens, or the limit where that is less, by the window's own count."""
    return _by_count(partial(_budget, tokens=tokens))


def by_rough(*, share: float) -> Goal:
    """A share of the whole context, by the estimate that some documents name."""
    return Goal(
        most_tokens=partial(_share_of_context, share=share),
        counted=_as_it_is,
        view_tokens=rough.view_tokens,
        message_tokens=rough.shown_tokens,
        text_tokens=_rough_text,
    )


def of_messages(goal: Goal, window: Window) -> Goal:
    """A goal of this window, for one that holds the messages alone and has no limit of its own."""
    tokens = goal.most_tokens(window) - window.head_tokens
    most_tokens = partial(_fixed, tokens=max(tokens, 0))
    return replace(goal, most_tokens=most_tokens)


def _by_count(most_tokens: Callable[[Window], int]) -> Goal:
    return Goal(
        most_tokens=most_tokens,
        counted=_calibrated,
        view_tokens=_view_tokens,
        message_tokens=Window.message_tokens,
        text_tokens=_text_tokens,
    )


def _share_of_limit(window: Window, *, share: float) -> int:
    return int(window.limit_tokens * share)


def _budget(window: Window, *, tokens: int) -> int:
    return min(tokens, window.limit_tokens)


def _fixed(_: Window, *, tokens: int) -> int:
    return tokens


def _share_of_context(window: Window, *, share: float) -> int:
    return int(window.context_tokens * share)


def _calibrated(window: Window, tokens: int) -> int:
    return window.calibration.most(tokens)


def _as_it_is(_: Window, tokens: int) -> int:
    return tokens


def _view_tokens(window: Window) -> int:
    return window.tokens


def _text_tokens(window: Window, text: str) -> int:
    return window.texts_tokens((text,))


def _rough_text(_: Window, text: str) -> int:
    return rough.text_tokens(text)


def held_tokens(
    window: Window,
    goal: Goal,
    start: int,
    stop: int,
) -> int:
    """What is shown of a range now, and a summary would take the place of."""
    total = 0
    for index in coverable(window, start, stop):
        total += goal.message_tokens(window, index)
    for placed in window.open_summaries:
        if start <= placed.start < stop:
            for text in placed.edit.texts:
                total += goal.text_tokens(window, text)
    return total


def places(
    window: Window,
    start: int,
    earliest: int,
    latest: int,
) -> Iterator[int]:
    """Where a summary from ``start`` on may end, from ``earliest`` to ``latest``."""
    earliest = max(earliest, start + 1)
    for index in range(earliest, latest + 1):
        if window.may_summarise(start, index) and window.may_cut(index):
            yield index


def spare_tokens(
    window: Window,
    goal: Goal,
    start: int,
    stop: int,
) -> int:
    """What a goal leaves for the summary of a range, when all else stays as it is.

    Returns:
        Tokens, by the goal's way of counting; below 0 where all else is over the goal.
    """
    staying = goal.view_tokens(window) - held_tokens(window, goal, start, stop)
    most = goal.counted(window, goal.most_tokens(window))
    return most - staying


class _UserSizes:
    """How much what the user said takes, up to each message of a range."""

    def __init__(self) -> None:
        self._utterances: list[Utterance] = []
        self._chars = [0]
        self._tokens: dict[object, list[int]] = {}

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what the user says in a message."""
        for utterance in utterances(transcript, index, index + 1, "user"):
            total = self._chars[-1] + FRAME_CHARS
            total += len(utterance.text)
            total += len(utterance.question)
            self._utterances.append(utterance)
            self._chars.append(total)

    def _count_before(self, stop: int) -> int:
        return bisect_left(
            self._utterances, stop, key=lambda utterance: utterance.index
        )

    def chars_before(self, stop: int) -> int:
        """Characters of what was said before a message."""
        return self._chars[self._count_before(stop)]

    def tokens_before(self, stop: int, window: Window, goal: Goal) -> int:
        """The same in tokens, by a goal's way of counting."""
        count = self._count_before(stop)
        # sums up to each text; what was counted for an earlier message is not counted again
        sums = self._tokens.setdefault(goal.text_tokens, [0])
        total = sums[-1]
        uncounted = self._utterances[len(sums) - 1 : count]
        for utterance in uncounted:
            text = f"{utterance.question}\n{utterance.text}"
            total += goal.text_tokens(window, text)
            total += FRAME_TOKENS
            sums.append(total)
        return sums[count]


_USER_SIZES = Fold(
    "ullage.user_sizes", _UserSizes, _UserSizes.add, looks_back=True
)


def room_in(
    window: Window,
    goals: Sequence[Goal],
    start: int,
    stop: int,
    needs: SummaryNeeds,
) -> SummaryRoom:
    """What a summary of a range may take, so that every goal is reached if that can be.

    Args:
        window: the window at the boundary at hand.
        goals: what the view holds after it, at most.
        start: the first message of the range.
        stop: one past the last.
        needs: what its parts take where there is room for all of them.
    """
    sizes = window.transcript.folded(_USER_SIZES, start, stop)
    chars = sizes.chars_before(stop)
    # no more is wanted of the user's words than there are
    needs = needs._replace(user_chars=min(needs.user_chars, chars))
    rooms = [_whole(needs)]
    for goal in goals:
        user_tokens = 0
        if chars:
            all_tokens = sizes.tokens_before(stop, window, goal)
            user_tokens = all_tokens * needs.user_chars // chars
        spare = spare_tokens(window, goal, start, stop)
        least = _least_tokens(window, goal)
        rooms.append(_shared(needs, user_tokens, spare, least))
    # each part has the least that any goal leaves it, so that every goal is reached
    return SummaryRoom(
        account_chars=min(room.account_chars for room in rooms),
        user_chars=min(room.user_chars for room in rooms),
        words_tokens=min(room.words_tokens for room in rooms),
        short_tokens=max(room.short_tokens for room in rooms),
        missed_tokens=max(room.missed_tokens for room in rooms),
    )


def needs_in(
    window: Window,
    goals: Sequence[Goal],
    needs: SummaryNeeds,
) -> SummaryNeeds:
    """What a summary would hold, a model's words in proportion to the goals."""
    words_tokens = needs.words_tokens
    for goal in goals:
        share = int(goal.most_tokens(window) * _WORDS_SHARE)
        words_tokens = min(words_tokens, share)
    return needs._replace(words_tokens=words_tokens)


def left_tokens(
    window: Window,
    goals: Sequence[Goal],
    start: int,
    stop: int,
    text: str,
) -> int | None:
    """What the goals leave beside the summary of a range; None without goals."""
    rests = []
    for goal in goals:
        spare = spare_tokens(window, goal, start, stop)
        room = max(spare, _least_tokens(window, goal))
        rests.append(room - goal.text_tokens(window, text))
    return min(rests, default=None)


def _whole(needs: SummaryNeeds) -> SummaryRoom:
    return SummaryRoom(
        account_chars=needs.account_tokens * CHARS_PER_TOKEN,
        user_chars=needs.user_chars,
        words_tokens=needs.words_tokens,
    )


def _shared(
    needs: SummaryNeeds,
    user_tokens: int,
    spare_tokens: int,
    least_tokens: int,
) -> SummaryRoom:
    """How what a goal leaves is shared out.

    A model's words come first, for they are asked for later and must find room; then the account
    of what was done has a third at least, and what the user said the rest.
    """
    all_tokens = needs.account_tokens + needs.words_tokens + user_tokens
    if all_tokens <= spare_tokens:
        return _whole(needs)
    room = max(spare_tokens, least_tokens)
    words_tokens = min(needs.words_tokens, int(room * 2 * _WORDS_SHARE))
    room -= words_tokens
    account_room = max(int(room * _ACCOUNT_SHARE), room - user_tokens)
    account_tokens = min(needs.account_tokens, account_room)
    room -= account_tokens
    user_chars = needs.user_chars
    if user_tokens > room:
        user_chars = user_chars * room // user_tokens
    return SummaryRoom(
        account_chars=account_tokens * CHARS_PER_TOKEN,
        user_chars=user_chars,
        words_tokens=words_tokens,
        short_tokens=all_tokens - spare_tokens,
        missed_tokens=max(least_tokens - spare_tokens, 0),
    )


def _least_tokens(window: Window, goal: Goal) -> int:
    """What a summary has, even where its goal is missed by that."""
    most = goal.most_tokens(window)
    share = int(most * _LEAST_SHARE)
    return max(share, min(_LEAST_TOKENS, most))
