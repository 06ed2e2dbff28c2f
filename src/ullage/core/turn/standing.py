"""Standing: why a conversation is sent whole, or as it was, for whoever looks at it.

It is asked of every request, and answered for the request at hand: an event tells of a decision
once, and this tells of a state for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.core.turn.active_policy import PolicyResolution
from ullage.core.turn.joining import Joining, waiting
from ullage.core.turn.recall_offer import has_no_names
from ullage.core.turn.request import Request
from ullage.core.turn.settings import Settings

Reason: TypeAlias = Literal[
    "price",
    "reasoning",
    "tools",
    "refused",
    "full",
    "names",
    "recall",
    "joins",
    "store",
]
"""Why nothing is cut.

    price       the conversation was met under way, and to cut it does not pay yet
    reasoning   it was met under way, and reasoning of the open turn must stay as it is
    tools       the request has no tools that the model may call
    refused     the provider refused a request that the recall tools were added to
    full        the request has as many tools as its wire takes
    names       tools of the caller's have all names that the recall tools could have
    recall      ``recall=False``
    joins       it was met under way, and ``joins=False``
    store       what decides in it, or decided in it first, offers no recall tools
"""

_WHY: Mapping[Reason, str] = {
    "tools": "the request has no tools that the model may call, so nothing that left the view "
    "could be opened by it",
    "refused": "the provider refused the recall tools, so nothing that left the view could be "
    "opened by the model",
    "full": "the request has as many tools as its provider takes, so nothing that left the view "
    "could be opened by the model",
    "names": "tools of the caller's have all names that the recall tools could have, so nothing "
    "that left the view could be opened by the model",
    "recall": "recall=False, so nothing that left the view could be opened by the model",
    "joins": "it was under way when it was first seen, and joins=False",
    "store": "the recall tools are not offered in it",
}
_UNTIL = "nothing is cut until the window is nearly full"


class Standing(Struct, frozen=True):
    """Why nothing of a conversation is cut on arrival, or not what was sent before.

    Attributes:
        reason: in one word.
        why: in words, with its numbers. No content.
        was_joined: whether the conversation was under way when it was first seen.
    """

    reason: Reason
    why: str
    was_joined: bool = False


def standing_of(
    resolution: PolicyResolution,
    request: Request,
    settings: Settings,
    joining: Joining | None,
) -> Standing | None:
    """Why nothing of a conversation is cut on arrival; None where it is.

    Args:
        resolution: the terms on which it is shown.
        request: the request at hand.
        settings: of the session.
        joining: whether it is joined, as that was weighed.
    """
    active = resolution.active
    if active.record.recall or request.elsewhere:
        return None
    cuts_all = settings.policy.without_recall is None
    if cuts_all and not request.envelope.uses_tools:
        return None  # it does as its document says, and there is nothing to wait for
    if active.record.joined and joining is not None and joining.waits_for:
        return Standing(joining.waits_for, waiting(joining), was_joined=True)
    if cuts_all:
        return None
    reason = _reason(resolution, request, settings)
    return Standing(
        reason, f"{_UNTIL}: {_WHY[reason]}", was_joined=active.record.joined
    )


def _reason(
    resolution: PolicyResolution, request: Request, settings: Settings
) -> Reason:
    if settings.recall is False:
        return "recall"
    if has_no_names(request, settings):
        return "names"
    if request.envelope.bars_tools:
        return request.envelope.bars_tools
    if not request.envelope.uses_tools or not request.envelope.takes_tools:
        return "tools"
    if resolution.active.record.joined and not settings.joins:
        return "joins"
    return "store"
