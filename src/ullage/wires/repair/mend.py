"""Make a broken history legal without losing any of it.

Agents are interrupted, results come late or twice, stores reorder messages, tools answer
nothing. Each of these is a 400 on every later request (failures F04, F05, F10, F11, F17,
F18). `mend` gives the messages as the provider takes them:

    broken                               mended
    ------                               ------
    a call without a result              one result behind it that says so, constant bytes
    a result that comes later            stands behind its call, in place of that one
    a result parted from its call        stands behind its call
    a result without a call              set aside; a line of user text names its ref
    a second result                      the first real one stays, the others are set aside
    two calls with one id, an odd id     another id, the same in call and result
    empty text                           left out, or a few words where that is not legal
    the first message is not the user's  a short user message in front (Anthropic)
    calls not behind the user, or the    a short user message between or behind (Gemini)
    last message is the model's
    reasoning without what it was for    left out (Responses)
    an item id twice or of another type  left out (Responses)
    a server tool without its result     set aside (Anthropic); a result without its call too
    a request for approval unanswered    set aside (Responses); an answer without its request too
    a result of another type than its    gets the type of its call (Responses: functions and
    call                                 custom tools)

It is pure and blind to the future: a call is answered by what stands behind it, never by
what stands before it, and what was mended once is mended so in every longer history, unless
a late result takes its place. Messages it does not touch are the caller's own objects.

Consecutive messages of one role are legal and stay (A2). Shapes the API does not know (A0,
A23, C0, G1), names of tools (A8), cache markers (A21) and lost signatures (G7, G8) are not
history gone wrong but a caller's mistake: `ullage.problems` tells of them, nobody guesses.

In Responses a late output and a second one are taken as legal by the judge and mended all the
same: a request that was sent with our own result must not show another in its place.

A new format is a new module here and one line in `_HISTORIES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.errors import ConfigError
from ullage.wires import FORMATS
from ullage.wires.anthropic import repair as _anthropic
from ullage.wires.gemini import repair as _gemini
from ullage.wires.openai_chat import repair as _openai_chat
from ullage.wires.openai_responses import repair as _openai_responses
from ullage.wires.repair.base import INTERRUPTED, MOVED, Growing
from ullage.wires.repair.growth import Repairing
from ullage.wires.repaired import Repaired

__all__ = ["INTERRUPTED", "MOVED", "Repaired", "Repairing", "mend", "mending", "mends"]

_HISTORIES: Mapping[str, type[Growing]] = {
    "anthropic": _anthropic.History,
    "openai-chat": _openai_chat.History,
    "openai-responses": _openai_responses.History,
    "gemini": _gemini.History,
}


def mends(format_name: str) -> bool:
    """Whether histories of this format can be mended."""
    return format_name in _HISTORIES


def mending(format_name: str) -> Repairing:
    """A history of a format, to be followed as it grows.

    Raises:
        ConfigError: it is not a format that `mends` knows.
    """
    if not mends(format_name):
        raise ConfigError(
            "repair",
            f"histories of the format {format_name!r} cannot be repaired",
            f"Give repair=False, or a request of one of {', '.join(_HISTORIES)}.",
        )
    return Repairing(_HISTORIES[format_name])


def mend(format_name: str, raws: Sequence[Any]) -> Repaired:
    """The messages of a history as the provider takes them.

    Args:
        format_name: one of those that `mends` knows; any other is given back as it is.
        raws: the raw messages, dicts or SDK objects. They are not changed.

    Raises:
        FormatError: what is to be set aside is not what its format says it is.
    """
    if not mends(format_name):
        return Repaired(raws)
    return mending(format_name).follow(raws, FORMATS[format_name].key)
