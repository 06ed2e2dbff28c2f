"""What follows from a provider's answer for its limits: a refusal, a reply, a count too small.

A refusal lowers the limit of the next view. It may be false: a rate limit in the words of an
overflow, or a request that is large by something we do not see. So a limit never falls below

    what the provider accepted before in this conversation
    a quarter of the window: of the one it names where its count agrees with ours, else of the
        one that was given or is known
    4,096 tokens, where no window is known or the request had too many bytes

and where no shorter view is left to be sent, the provider's own error stands. A provider that
names no window gets one shorter view anyway: it may serve the model with a smaller one.
Numbers by which hardly an empty request would do teach nothing. A reply that was accepted takes
the limit back.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history.ledger import Ledger
from ullage.core.tokens.calibrate import MAX_SCALE, MIN_SCALE
from ullage.core.tokens.catalog import lookup
from ullage.core.turn.lessons import Lesson, Lessons, limits_for
from ullage.core.values.events import Event
from ullage.core.values.limits import TextLimit
from ullage.policy.stages.overlong import overlong
from ullage.session.state import SessionState
from ullage.session.view import RequestInfo
from ullage.wires.overflow import Overflow

LEAST_SHARE = 0.25
"""No refusal lowers a limit below this share of the window."""
LEAST_TOKENS = 4_096
"""Nor below this, where no window is known."""
SHORT_REPLIES = 3
"""So many replies in a row have to count far less than was sent before it is told."""

_LEAST_WINDOW_TOKENS = 1_000
_UNSEEN_TOKENS = 8_192
"""What a small prompt may hold that we do not see."""
_MARGIN = 0.95
_LEAST_ROOM_SHARE = 0.05
_UNITS: tuple[Literal["characters", "bytes"], ...] = ("characters", "bytes")
_SHORT_SLACK_TOKENS = 200


class RefusalOutcome(Struct, frozen=True):
    """What follows from a refusal.

    Attributes:
        learnt: what is known of limits now.
        event: the event that tells of it.
        helps: whether a shorter view is to be sent now. If not, the provider's error stands.
    """

    learnt: Lessons
    event: Event
    helps: bool


def after_refusal(
    learnt: Lessons, overflow: Overflow, info: RequestInfo, ledger: Ledger
) -> RefusalOutcome:
    """What follows once a view was refused as too long.

    Args:
        learnt: what is known of limits so far.
        overflow: what the refusal says.
        info: the view that was refused.
        ledger: what was reported of earlier views.
    """
    lesson = learnt.of(info.transcript, info.model)
    if overflow.by == "text":
        next_lesson, event, helps = _text_refused(lesson, overflow, info)
    else:
        next_lesson, event, helps = _view_refused(
            lesson, overflow, info, ledger
        )
    learnt = learnt.with_lesson(
        next_lesson, lesson, info.transcript, info.size
    )
    return RefusalOutcome(learnt, event, helps)


def _view_refused(
    lesson: Lesson, overflow: Overflow, info: RequestInfo, ledger: Ledger
) -> tuple[Lesson, Event, bool]:
    """The lesson, event and outcome where the whole view was too long."""
    limits = info.limits
    tokens = info.estimate
    room = overflow.room_tokens(info.estimate)
    accepted = max(lesson.accepted_tokens, _reported_tokens(info, ledger))
    floor = _accepted_floor(overflow, accepted)
    numbers = f"{_numbers_of(overflow)}, by its own count"
    reason = f"the provider refused the request as too long: {numbers}"
    # by such numbers hardly an empty request would do
    if room < tokens * _LEAST_ROOM_SHARE:
        event = _not_shortened(reason, floor or LEAST_TOKENS, accepted, tokens)
        return lesson, event, False
    limit = _credible_limit(overflow, tokens)
    if limit is not None:
        room = min(room, limit)
        limit = max(limit, accepted)
        if limit < limits_for(info.model, limits, lesson).window_tokens:
            lesson = replace(lesson, window_tokens=limit)
    is_first_try = overflow.limit_tokens is None and lesson.room_tokens is None
    if not is_first_try:
        window = limits_for(info.model, limits, lesson).window_tokens
        is_known = (
            limit is not None
            or limits is not None
            or lookup(info.model).has_one_window
        )
        is_bound = is_known and overflow.by != "bytes"
        floor = max(
            floor, int(window * LEAST_SHARE) if is_bound else LEAST_TOKENS
        )
    room = max(room, floor)
    if room < tokens:
        return (
            replace(lesson, room_tokens=room),
            _event(reason, tokens, room),
            True,
        )
    if lesson.room_tokens is not None and lesson.room_tokens < floor:
        lesson = replace(
            lesson, room_tokens=floor
        )  # the shorter try did not help
    return lesson, _not_shortened(reason, floor, accepted, tokens), False


def _credible_limit(overflow: Overflow, tokens: int) -> int | None:
    """The window that a refusal names, where our view may well be longer than that; else None."""
    limit = overflow.limit_tokens
    if overflow.by == "bytes" or limit is None or limit < _LEAST_WINDOW_TOKENS:
        return None
    counted = (overflow.size_tokens or limit) - (
        overflow.asked_output_tokens or 0
    )
    is_over = tokens > limit or counted <= _most_counted(tokens)
    return limit if is_over else None


def _accepted_floor(overflow: Overflow, accepted: int) -> int:
    """The least the next view may be cut to, by what was accepted before it.

    A prompt that was accepted beside a short answer may be too long beside a long one; and what is
    full after the answer began was accepted itself.
    """
    if overflow.by != "tokens":
        return 0
    if overflow.limit_tokens and overflow.asked_output_tokens:
        prompt_tokens = int(
            _MARGIN * (overflow.limit_tokens - overflow.asked_output_tokens)
        )
        return min(accepted, max(prompt_tokens, 0))
    return accepted


def _reported_tokens(info: RequestInfo, ledger: Ledger) -> int:
    """The largest prompt that a provider reported of this history and model before this request.

    What it reported of the very same request says nothing: it has just said otherwise. Nor does
    what is beyond any count of what was sent, such as the sum over several calls.
    """
    keys = info.transcript.decision_keys(0, info.size)
    observed = (
        ledger.at(key).observed.get(info.model)
        for key in keys
        if key != info.key
    )
    credible = (
        min(
            observation.reported_tokens,
            _most_counted(observation.estimated_tokens),
        )
        for observation in observed
        if observation is not None
    )
    return max(credible, default=0)


def _most_counted(tokens: int) -> int:
    """The most that a provider may count where we estimate so many tokens."""
    return int(MAX_SCALE * tokens) + _UNSEEN_TOKENS


def _text_refused(
    lesson: Lesson, overflow: Overflow, info: RequestInfo
) -> tuple[Lesson, Event, bool]:
    """The lesson, event and outcome where one text of the view was over a limit of its own."""
    most = overflow.limit_chars or 0
    tokens = info.estimate
    size = (
        "" if overflow.size_chars is None else f" of {overflow.size_chars:,}"
    )
    reason = (
        f"the provider refused a text{size} for a limit of {most:,} characters"
    )
    for unit in _UNITS:  # some count bytes, and call them characters
        limit = TextLimit(most, unit)
        if overlong(info.window, limit):
            event = _event(f"{reason}; it is cut", tokens, tokens)
            return replace(lesson, text_limit=limit), event, True
    return (
        lesson,
        _event(f"{reason}; no text that may be cut is longer", tokens, tokens),
        False,
    )


def after_reply(
    lesson: Lesson, reported_tokens: int | None, info: RequestInfo
) -> Lesson:
    """The lesson on a conversation's limits after a view was answered.

    Args:
        lesson: what was known.
        reported_tokens: the whole prompt as the provider counted it; None if it did not say.
        info: the view.
    """
    if reported_tokens is None:
        return _accepted_unreported(lesson, info.estimate)
    named_window = lesson.window_tokens
    if named_window is not None and reported_tokens > named_window:
        # the refusal named the window of another model or server
        lesson = replace(lesson, window_tokens=None)
    is_short = reported_tokens < MIN_SCALE * info.tokens - _SHORT_SLACK_TOKENS
    return replace(
        lesson,
        room_tokens=None,  # estimates are anchored in the report from here on
        short_replies=lesson.short_replies + 1 if is_short else 0,
        short_tokens=reported_tokens if is_short else 0,
    )


def _accepted_unreported(lesson: Lesson, tokens: int) -> Lesson:
    """The lesson of a view that was accepted without a count: the next may be a quarter larger."""
    room = lesson.room_tokens
    named_window = lesson.window_tokens
    if room is not None:
        room = max(room, tokens) * 5 // 4
    if named_window is not None and tokens > named_window:
        named_window = None
    accepted = max(lesson.accepted_tokens, tokens)
    return replace(
        lesson,
        room_tokens=room,
        window_tokens=named_window,
        accepted_tokens=accepted,
    )


def short_event(
    previous: Lesson, lesson: Lesson, info: RequestInfo
) -> Event | None:
    """The event of a provider that seems to cut prompts silently, told at the third such reply.

    Args:
        previous: the lesson before the reply.
        lesson: the lesson after it.
        info: the view that was answered.
    """
    if not (previous.short_replies < lesson.short_replies == SHORT_REPLIES):
        return None
    reason = (
        f"{SHORT_REPLIES} times in a row the provider counted far less than was sent "
        f"({lesson.short_tokens:,} of some {info.tokens:,} tokens): it may cut the prompt without "
        "saying so, or leave cached tokens out of its count. Give the server a larger window "
        "(Ollama: num_ctx), or ullage the one it has: limits=Limits(window_tokens=...)"
    )
    return Event(
        kind="undercounted",
        where="reply",
        why=reason,
        tokens_before=info.tokens,
        tokens_after=lesson.short_tokens,
    )


def _numbers_of(overflow: Overflow) -> str:
    """The size and the limit that a refusal names, in words."""
    size = "a size it does not name"
    if overflow.size_tokens is not None:
        size = f"{overflow.size_tokens:,}"
    if overflow.limit_tokens is None:
        return size
    return f"{size} for a limit of {overflow.limit_tokens:,}"


def _not_shortened(
    reason: str, floor: int, accepted: int, tokens: int
) -> Event:
    """The event of a refusal that no shorter view follows."""
    least = f"no refusal lowers the limit below {floor:,} tokens"
    if accepted and floor == accepted:
        least = f"{accepted:,} tokens were accepted before"
    return _event(
        f"{reason}; no shorter one is sent, as {least}", tokens, tokens
    )


def _event(reason: str, tokens_before: int, tokens_after: int) -> Event:
    return Event(
        kind="refused",
        where="request",
        why=reason,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
    )


def learn_from(
    state: SessionState, info: RequestInfo, reported_tokens: int | None
) -> tuple[SessionState, tuple[Event, ...]]:
    """The state with what a reply taught of the provider's limits, and the events to warn of.

    Args:
        state: of the session.
        info: the view that was answered.
        reported_tokens: of its prompt; None: nobody reported them.
    """
    lesson = state.learnt.of(info.transcript, info.model)
    next_lesson = after_reply(lesson, reported_tokens, info)
    info.warning = short_event(lesson, next_lesson, info)
    warnings = () if info.warning is None else (info.warning,)
    learnt = state.learnt.with_lesson(
        next_lesson, lesson, info.transcript, info.size
    )
    return replace(state, learnt=learnt), warnings
