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
_LEAST_SHARE, _LEAST_TOKENS = 0.10, 2_000
"""A summary has this share of its goal or so many tokens, even where the goal is missed by that.
In a window of few tokens the user's rules need as much as in any other."""
FRAME_CHARS, FRAME_TOKENS = 24, 8
"""What stands around each text of the user."""


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
        missed_tokens: how much the view is over its goal all the same.
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
    return replace(goal, most_tokens=partial(_fixed, tokens=max(tokens, 0)))


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


def held_tokens(window: Window, goal: Goal, start: int, stop: int) -> int:
    """What is shown of a range now, and a summary would take the place of."""
    messages = sum(
        goal.message_tokens(window, at) for at in coverable(window, start, stop)
    )
    summaries = (
        placed for placed in window.open_summaries if start <= placed.start < stop
    )
    texts = (text for placed in summaries for text in placed.edit.texts)
    return messages + sum(goal.text_tokens(window, text) for text in texts)


def places(window: Window, start: int, first: int, last: int) -> Iterator[int]:
    """Where a summary from ``start`` on may end, from ``first`` to ``last``."""
    for index in range(max(first, start + 1), last + 1):
        if window.may_summarise(start, index) and window.may_cut(index):
            yield index


def spare_tokens(window: Window, goal: Goal, start: int, stop: int) -> int:
    """What a goal leaves for the summary of a range, when all else stays as it is."""
    shown = goal.view_tokens(window) - held_tokens(window, goal, start, stop)
    return goal.counted(window, goal.most_tokens(window)) - shown


class _UserSizes:
    """How much what the user said takes, up to each message of a range."""

    def __init__(self) -> None:
        self._said: list[Utterance] = []
        self._chars = [0]
        self._tokens: dict[object, list[int]] = {}

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what the user says in a message."""
        for text in utterances(transcript, index, index + 1, "user"):
            self._said.append(text)
            chars = len(text.text) + len(text.question) + FRAME_CHARS
            self._chars.append(self._chars[-1] + chars)

    def _before(self, stop: int) -> int:
        return bisect_left(self._said, stop, key=lambda text: text.index)

    def chars_before(self, stop: int) -> int:
        """Characters of what was said before a message."""
        return self._chars[self._before(stop)]

    def tokens_before(self, stop: int, window: Window, goal: Goal) -> int:
        """The same in tokens, by a goal's way of counting."""
        count, tokens = (
            self._before(stop),
            self._tokens.setdefault(goal.text_tokens, [0]),
        )
        for text in self._said[len(tokens) - 1 : count]:
            line_tokens = goal.text_tokens(window, f"{text.question}\n{text.text}")
            tokens.append(tokens[-1] + line_tokens + FRAME_TOKENS)
        return tokens[count]


_USER_SIZES = Fold("ullage.user_sizes", _UserSizes, _UserSizes.add, looks_back=True)


def room_in(
    window: Window, goals: Sequence[Goal], start: int, stop: int, wanted: SummaryNeeds
) -> SummaryRoom:
    """What a summary of a range may take, so that every goal is reached if that can be."""
    user = window.transcript.folded(_USER_SIZES, start, stop)
    chars = user.chars_before(stop)
    wanted = wanted._replace(user_chars=min(wanted.user_chars, chars))
    rooms = [_whole(wanted)]
    for goal in goals:
        spare = spare_tokens(window, goal, start, stop)
        user_tokens = 0
        if chars:
            whole = user.tokens_before(stop, window, goal)
            user_tokens = whole * wanted.user_chars // chars
        rooms.append(_shared(wanted, user_tokens, spare, _least_tokens(window, goal)))
    return SummaryRoom(
        account_chars=min(room.account_chars for room in rooms),
        user_chars=min(room.user_chars for room in rooms),
        words_tokens=min(room.words_tokens for room in rooms),
        short_tokens=max(room.short_tokens for room in rooms),
        missed_tokens=max(room.missed_tokens for room in rooms),
    )


def wanted_in(
    window: Window, goals: Sequence[Goal], wanted: SummaryNeeds
) -> SummaryNeeds:
    """What a summary would hold, a model's words in proportion to the goals."""
    most = [int(goal.most_tokens(window) * _WORDS_SHARE) for goal in goals]
    return wanted._replace(words_tokens=min(wanted.words_tokens, *most, 1 << 62))


def left_tokens(
    window: Window, goals: Sequence[Goal], start: int, stop: int, text: str
) -> int | None:
    """What the goals leave beside the summary of a range; None without goals."""
    left = [
        max(spare_tokens(window, goal, start, stop), _least_tokens(window, goal))
        - goal.text_tokens(window, text)
        for goal in goals
    ]
    return min(left, default=None)


def _whole(wanted: SummaryNeeds) -> SummaryRoom:
    return SummaryRoom(
        wanted.account_tokens * CHARS_PER_TOKEN, wanted.user_chars, wanted.words_tokens
    )


def _shared(
    wanted: SummaryNeeds, user_tokens: int, spare_tokens: int, least_tokens: int
) -> SummaryRoom:
    """How what a goal leaves is shared out.

    A model's words come first, for they are asked for later and must find room; then the account
    of what was done has a third at least, and what the user said the rest.
    """
    all_tokens = wanted.account_tokens + wanted.words_tokens + user_tokens
    if all_tokens <= spare_tokens:
        return _whole(wanted)
    room = max(spare_tokens, least_tokens)
    words = min(wanted.words_tokens, int(room * 2 * _WORDS_SHARE))
    left = room - words
    account = min(
        wanted.account_tokens, max(int(left * _ACCOUNT_SHARE), left - user_tokens)
    )
    user_chars = wanted.user_chars
    if user_tokens > left - account:
        user_chars = user_chars * (left - account) // user_tokens
    return SummaryRoom(
        account_chars=account * CHARS_PER_TOKEN,
        user_chars=user_chars,
        words_tokens=words,
        short_tokens=all_tokens - spare_tokens,
        missed_tokens=max(least_tokens - spare_tokens, 0),
    )


def _least_tokens(window: Window, goal: Goal) -> int:
    most = goal.most_tokens(window)
    return max(int(most * _LEAST_SHARE), min(_LEAST_TOKENS, most))
