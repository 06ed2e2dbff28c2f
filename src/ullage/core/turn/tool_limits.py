"""Whether the recall tools may be added to a request.

A provider may have refused them before, and the caller's own tools may leave no room for them.
Both are known before anything is decided of the request.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from ullage.core.turn.request import Request
from ullage.core.turn.settings import Settings


def with_tool_limits(request: Request, settings: Settings) -> Request:
    """The request, with what is known of whether the recall tools may be added to it.

    Args:
        request: as it was read.
        settings: those for this request.
    """
    reason = _bars_tools(request, settings)
    if not reason:
        return request
    envelope = replace(request.envelope, takes_tools=False, bars_tools=reason)
    return replace(request, envelope=envelope)


def _bars_tools(
    request: Request, settings: Settings
) -> Literal["", "refused", "full"]:
    """Why no tools may be added, beside what the wire says; ``""`` where they may."""
    if settings.recall == "host":
        return ""
    if not settings.may_add_tools:
        return "refused"
    if settings.recall is True:
        return ""  # the caller wants them in any case: its provider decides
    most = request.wire.most_tools
    count = len(request.envelope.tools) + len(settings.policy.toolset.tools)
    return "" if most is None or count <= most else "full"
