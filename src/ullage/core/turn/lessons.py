"""What a provider's answers taught of its limits, conversation by conversation. Values only.

A conversation is known by how it begins: what was asked first, and the first reply if there was one
when the lesson was learnt. A lesson holds for every history that begins so, and for no other.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history.transcript import Transcript
from ullage.core.tokens.catalog import lookup
from ullage.core.values.limits import Limits, TextLimit

_MOST_LESSONS = 64


class Lesson(Struct, frozen=True, kw_only=True):
    """What is known of a provider's limits in one conversation with one model.

    Attributes:
        place: the chain behind the beginning of the conversation; empty: nothing was learnt.
        model: as in the request.
        window_tokens: the window the provider named, where it is smaller than the one that was
            given or is known; None otherwise.
        room_tokens: the most the next prompt may hold after a refusal; None once a reply was
            counted.
        text_limit: the most of one text, where the provider refused a longer one.
        accepted_tokens: the largest prompt that was answered without a report of its size, as we
            estimate it. What was reported is in the ledger.
        short_replies: how many of the newest replies in a row counted far less than was sent.
        short_tokens: what the newest of these counted.
    """

    place: bytes = b""
    model: str = ""
    window_tokens: int | None = None
    room_tokens: int | None = None
    text_limit: TextLimit | None = None
    accepted_tokens: int = 0
    short_replies: int = 0
    short_tokens: int = 0


class Lessons(Struct, frozen=True):
    """The lessons of a session, the one that changed last at the end."""

    lessons: tuple[Lesson, ...] = ()

    def of(self, transcript: Transcript, model: str) -> Lesson:
        """What was learnt in the conversation that a history goes on with; an empty lesson if
        nothing was.
        """
        for lesson in reversed(self.lessons):
            if (
                lesson.model == model
                and transcript.find(lesson.place) is not None
            ):
                return lesson
        return Lesson(model=model)

    def with_lesson(
        self,
        lesson: Lesson,
        earlier: Lesson,
        transcript: Transcript,
        size: int,
    ) -> Lessons:
        """These with a lesson in place of an earlier one of the same conversation.

        Args:
            lesson: what is known now.
            earlier: what `of` gave.
            transcript: of the conversation.
            size: how many of its messages were sent.
        """
        if lesson == earlier:
            return self
        rest = [one for one in self.lessons if one is not earlier]
        place = earlier.place or _beginning(transcript, size)
        rest.append(replace(lesson, place=place))
        return Lessons(tuple(rest[-_MOST_LESSONS:]))

    def without_room(self, room_tokens: int, model: str) -> Lessons:
        """These without what a refusal left of a model's window, where nothing fits into it."""
        lessons: list[Lesson] = []
        for lesson in self.lessons:
            if lesson.room_tokens == room_tokens and lesson.model == model:
                lesson = replace(lesson, room_tokens=None)
            lessons.append(lesson)
        return Lessons(tuple(lessons))


def _beginning(transcript: Transcript, size: int) -> bytes:
    """The chain behind the first reply; before there is one, behind what was asked."""
    requests = transcript.boundaries(0, size)
    if len(requests) > 1:
        size = requests[1]
    return transcript.decision_key(size)


def limits_for(model: str, limits: Limits | None, lesson: Lesson) -> Limits:
    """The window of a model in a conversation: as its provider named it, as given, or as known."""
    if limits is None:
        limits = Limits(window_tokens=lookup(model).window_tokens)
    return within(limits, lesson.window_tokens)


def within(limits: Limits, window_tokens: int | None) -> Limits:
    """Limits in a window that may be smaller; None: it is not known."""
    if window_tokens is None or window_tokens >= limits.window_tokens:
        return limits
    reserve = limits.output_reserve_tokens
    if reserve is not None and reserve >= window_tokens:
        reserve = None
    return Limits(window_tokens=window_tokens, output_reserve_tokens=reserve)
