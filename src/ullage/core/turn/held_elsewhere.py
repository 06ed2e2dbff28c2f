"""Requests whose history the provider holds: what may be decided of them.

Nothing can be decided of a history that is not in the request. A thread has the tools that it was
created with, ours among them or not; none can be added now.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn.request import Request
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State
from ullage.core.turn.threads import Thread, thread_of
from ullage.core.values.effects import Steps
from ullage.core.values.events import Event


class Continuation(NamedTuple):
    """What a request goes on from.

    Attributes:
        settings: those for this request.
        previous: the policy that was in force before it, or None.
        events: what is reported of a history that the provider holds.
    """

    settings: Settings
    previous: PolicyRecord | None
    events: tuple[Event, ...] = ()


def continuation_of(
    request: Request, settings: Settings, state: State
) -> Steps[Continuation]:
    """What a request goes on from; the store is asked where it continues a thread."""
    if not request.elsewhere:
        return Continuation(settings, state.policy_record)
    settings = _without_history(settings)
    if not request.is_thread:
        events = (_passed_on(request, None),)
        return Continuation(settings, state.policy_record, events)
    thread = yield from thread_of(
        request.wire.name, settings.tenant, request.before
    )
    events = (_passed_on(request, thread),)
    if thread is None or not thread.offers(settings.policy.toolset.names):
        return Continuation(replace(settings, recall=False), None, events)
    policy = PolicyRecord(
        settings.policy.name, recall=True, prefix=thread.prefix
    )
    return Continuation(replace(settings, recall="host"), policy, events)


def _without_history(settings: Settings) -> Settings:
    """The settings with which nothing is repaired, and nothing decided under pressure."""
    policy = replace(settings.policy, under_pressure=(), guard=None)
    return replace(settings, policy=policy, repair=False)


def _passed_on(request: Request, thread: Thread | None) -> Event:
    """The event of a request whose history the provider holds, perhaps as a known thread."""
    size = ""
    if thread is not None and thread.tokens:
        size = f", {thread.tokens:,} tokens by its count"
    reason = (
        f"what comes before is held by the provider{size}: what stands in this request was cut "
        "on arrival; batches, the guard and an exact count need the whole history"
    )
    return Event(kind="passed_on", where=request.elsewhere, why=reason)
