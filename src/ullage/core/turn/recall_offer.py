"""Whether a request is offered the recall tools, and what is cut while it is not.

A history that was under way when it was first seen waits: it is shown as it was sent, until
`ullage.core.turn.joining` says that it pays to offer the recall tools. A history that nothing is
known of is offered them from its start.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from msgspec.json import decode

from ullage.core.errors import ConfigError
from ullage.core.history import canon
from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn import names
from ullage.core.turn.active_policy import PolicyResolution
from ullage.core.turn.joining import Cuts, Offer
from ullage.core.turn.settings import Settings
from ullage.core.values.events import Event

if TYPE_CHECKING:
    from ullage.core.turn.caches import HistoryCache
    from ullage.core.turn.request import Request


def offer_of(
    resolution: PolicyResolution, request: Request, settings: Settings
) -> Offer | None:
    """What a request says about joining its conversation; None where that does not wait for it.

    Args:
        resolution: the policy so far.
        request: the request at hand.
        settings: of the session at hand.
    """
    active = resolution.active
    if not active.waits or request.elsewhere:
        return None
    cuts: Cuts = "nothing" if active.cuts_from < 0 else "new"
    if settings.policy.without_recall is None:
        cuts = "all"
    return Offer(
        can_add=_can_add(request, settings),
        broken=_broken(resolution, request, settings),
        is_met_now=_is_met_now(resolution),
        cuts=cuts,
    )


def _is_met_now(resolution: PolicyResolution) -> bool:
    """Whether nothing was known of the conversation before this request."""
    return bool(resolution.records) and not resolution.shows_same


def _broken(
    resolution: PolicyResolution, request: Request, settings: Settings
) -> str:
    """Why the request itself breaks the cached prefix, or ``""``."""
    tools = resolution.active.record.tools
    if _is_wanted(settings):
        return "the recall tools are asked for"
    if tools and tools != digest_of_tools(request):
        return "the request's own tools changed"
    kinds = [event.kind for event in resolution.events]
    if _is_met_now(resolution) and "changed" in kinds:
        return "another model, policy or wording decides"
    return ""


def _can_add(request: Request, settings: Settings) -> bool:
    """Whether our tools may be added, and the model may call them in its reply."""
    envelope = request.envelope
    if not envelope.takes_tools or not envelope.uses_tools:
        return False
    choice = envelope.choice
    return choice.takes_more or choice.allows(settings.policy.toolset.names)


def may_join(settings: Settings) -> bool:
    """Whether a history under way may be offered the recall tools later."""
    if _is_wanted(settings):
        return True
    on_its_own = settings.recall == "auto" and settings.joins
    return on_its_own and settings.policy.toolset.offered != "no"


def _is_wanted(settings: Settings) -> bool:
    """Whether the caller or a document wants the recall tools, whatever they cost."""
    if settings.recall is True:
        return True
    return (
        settings.recall == "auto"
        and settings.policy.toolset.offered == "always"
    )


def cuts_new(
    history: HistoryCache, request: Request, settings: Settings
) -> bool:
    """Whether a history that waits is cut on arrival from here on, though nothing opens it yet.

    That is where reasoning is bound to what was sent: it is lost when the history is joined, and
    that may not even be allowed for as long as its turn is open. What is new breaks nothing. A
    policy that cuts without the tools too does so at once, if it may.
    """
    if settings.policy.without_recall is None:
        return is_frozen(history, request)
    if request.envelope.bars_tools:
        return False  # nothing tells when it can be joined
    if not may_join(settings) or request.envelope.reasoning == "free":
        return False
    return _is_bound(history)


def is_frozen(history: HistoryCache, request: Request) -> bool:
    """Whether reasoning is there that must stay as it is while its turn is open."""
    return request.envelope.reasoning == "frozen" and _is_bound(history)


def _is_bound(history: HistoryCache) -> bool:
    """Whether a history holds reasoning that is bound to what was sent before it."""
    transcript = history.transcript
    return bool(transcript.marked("bound", 0, len(transcript)))


def digest_of_tools(request: Request) -> str:
    """A digest of the caller's own tools, by their names."""
    tools = request.envelope.tools
    listed = [request.wire.tool_name(tool) or "" for tool in tools]
    return canon.ref_of("\n".join(listed))


def may_open_again(
    record: PolicyRecord,
    history: HistoryCache,
    request: Request,
    settings: Settings,
) -> bool:
    """Whether nothing was decided of recall tools, and now it can be.

    The caller's own tools are new to the request then, so that ours break no prefix that these do
    not. Or ours were refused, or had no room, and may be added now: that breaks it, so what was
    sent whole is cut with it. Of a history that was met under way this is not known: it waits like
    any other.
    """
    if not record.has_no_tools or record.joined:
        return False
    envelope = request.envelope
    if (
        not envelope.uses_tools
        or envelope.bars_tools
        or settings.recall != "auto"
    ):
        return False
    return not is_frozen(history, request)


def is_offered(
    request: Request, settings: Settings, *, present: bool, under_way: bool
) -> bool:
    """Whether the requests of a history are to offer the recall tools.

    Args:
        request: the first one of them that is seen.
        settings: of the session at hand.
        present: whether the request has the tools already.
        under_way: whether a model worked on the history before it was seen.

    Raises:
        ConfigError: they are asked for, and the request takes no functions.
    """
    recall = settings.recall
    if recall == "host":
        return settings.joins or not under_way
    takes = request.envelope.takes_tools
    if recall == "auto":
        if present:
            return True
        times = ("always",) if under_way else ("always", "from the start")
        uses = takes and request.envelope.uses_tools
        return uses and settings.policy.toolset.offered in times
    if recall and not (present or takes):
        raise ConfigError(
            "recall",
            f"{request.envelope.model!r} takes no functions in this request",
            "Give recall=False, another wire format, or a function beside the provider's tools.",
        )
    return recall


def has_no_names(
    request: Request, settings: Settings, prefix: str = ""
) -> bool:
    """Whether a host adds none of ours, because the caller has all names that they could have.

    The tools of our names take none of our arguments then.

    Args:
        request: the request.
        settings: of the session.
        prefix: what stands before our names.
    """
    if settings.recall != "host":
        return False
    toolset = settings.policy.toolset
    prefix = names.prefix_of_host(request, toolset, prefix)
    arguments = {
        prefix + spec.name: spec.parameters.get("properties", {})
        for spec in toolset.tools
    }
    for tool in request.envelope.tools:
        named = arguments.get(request.wire.tool_name(tool))
        if named is None:
            continue
        properties = _properties(decode(request.wire.tool_text(tool, "tools")))
        if properties is not None and not named.keys() & properties:
            return True
    return False


def _properties(definition: Any) -> Collection[str] | None:
    """The arguments that a tool takes; None where its definition does not say."""
    if not isinstance(definition, dict):
        return None
    properties = definition.get("properties")
    if isinstance(properties, dict):
        return properties
    inner = (_properties(value) for value in definition.values())
    return next((found for found in inner if found is not None), None)


NO_NAMES = Event(
    kind="renamed",
    where="tools",
    why="tools of the caller's have all names that the recall tools could have: recall is off",
)
"""What is told where a conversation `has_no_names` from here on."""
