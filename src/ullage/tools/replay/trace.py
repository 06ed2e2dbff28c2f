"""What a session showed, turn by turn, as data: what a picture is drawn from.

    Trace      what one policy showed of a run: per turn how many tokens of each kind, and what
               that did to the cache; every edit (`TracedEdit`); which message looked otherwise from
               which turn on
    Story      the messages themselves, long texts cut in their middle (`TracedPart`)

`ullage.tools.replay.tracer` makes both; `ullage.tools.replay.report` draws them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from ullage.tools.replay.cost.prices import Profile

KINDS = (
    "head",
    "user",
    "assistant",
    "reasoning",
    "call",
    "result",
    "excerpt",
    "notice",
    "record",
)
"""What a token shown is of.

- ``head``: the system text and the tools.
- ``user``, ``assistant``, ``reasoning``, ``call``, ``result``: what each wrote, as the caller
  has it.
- ``excerpt``: the beginning and the lines that are kept of a longer result.
- ``notice``: the line that stands in place of a result.
- ``record``: a record, an account or a summary, which stands in place of whole messages.
"""

WHOLE, SHORTENED, STUB, SUMMED_UP, REASONING_DROPPED = range(5)
"""How a message is shown: as it is; in part; set aside; within a summary; without its
reasoning."""

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who speaks."""


class TracedEdit(Struct, frozen=True, kw_only=True):
    """One edit.

    Attributes:
        turn: the request before which it was made, from 0.
        message: index of the first message it changed; ``stop`` is one past the last.
        kind: the kind of its event.
        is_new: whether the message was new, so that nothing sent before was changed.
        subject: the tool and its arguments, or what else was there.
        ref: what opens the original; "" where there is none.
        tokens_before: tokens of the place as it was.
        tokens_after: tokens of ``text``, which is shown in its place.
    """

    turn: int
    message: int
    stop: int
    kind: str
    is_new: bool = field(name="first")
    subject: str = field(name="what")
    reason: str = field(name="why")
    ref: str
    tokens_before: int = field(name="before")
    tokens_after: int = field(name="after")
    text: str


class TracedPart(Struct, frozen=True, array_like=True):
    """One part of a message: of what kind, its tool, its text, its tokens and characters."""

    kind: str
    tool: str
    text: str
    tokens: int
    chars: int


class TracedRun(Struct, frozen=True, kw_only=True):
    """The messages of one run, as they were recorded; long texts without their middle.

    Attributes:
        head: the system text.
        roles: who speaks, by message.
        clipped: how many texts were cut for this story.
        began: the day of its first message, as ``2026-11-21``, or "".
    """

    run: str
    head: str
    roles: list[Role]
    parts: list[list[TracedPart]]
    clipped: int
    model: str = ""
    began: str = ""


class Trace(Struct, frozen=True, kw_only=True):
    """What one policy showed of a run in one window. Lists run over the turns.

    Attributes:
        share: of the largest request, where that was asked for.
        limit_tokens: the most that a prompt may hold.
        lengths: how many messages the history had.
        sizes: tokens shown, by kind (`KINDS`); ``raw``, those of the history without any edit.
        cached: tokens read from the cache; then those written to it, those that are neither, and
            what had been sent before and was not sent again in its place.
        cost_usd: of the request and its answer; None where no price is known.
        changes: turn, message, and how it is shown from then on.
        profile: whose cache and prices these are; None without any.
    """

    policy: str
    window_tokens: int = 0
    share: float | None = None
    limit_tokens: int = 0
    lengths: list[int] = []
    sizes: list[list[int]] = []
    raw: list[int] = []
    cached: list[int] = []
    written: list[int] = []
    fresh: list[int] = []
    rewritten: list[int] = []
    cost_usd: list[float | None] = []
    raw_cost_usd: list[float | None] = []
    marks: list[TracedEdit] = []
    changes: list[tuple[int, int, int]] = []
    profile: Profile | None = None
