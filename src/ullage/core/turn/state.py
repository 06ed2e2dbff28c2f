"""What goes into a turn and comes out of it: values alone."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ullage.core.contract.format import Format
from ullage.core.history.frozen import FrozenWindow
from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.core.history.window import Window
from ullage.core.turn.caches import FrozenRequest, SessionCache
from ullage.core.turn.lessons import Lesson
from ullage.core.turn.settings import Settings
from ullage.core.turn.standing import Standing
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.usage import Usage


class State(Struct, frozen=True, kw_only=True):
    """Everything a session knows between two turns. Small, frozen, serialisable.

    Attributes:
        format: name of the wire format, pinned by the first request.
        policy_record: what decided in the history of the last turn.
        ledger: what was decided and observed, by place in the chain.
        usage: the sum of everything reported.
        cost_usd: what that cost at list price; None once a reply had no known price.
    """

    format: str | None = None
    policy_record: PolicyRecord | None = field(default=None, name="opened")
    ledger: Ledger = Ledger()
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


class TurnResult(Struct, frozen=True):
    """What a turn gives.

    Attributes:
        request: a new request that fits; untouched messages are the caller's own objects.
        state: the state after it.
        events: what happened, in order.
        window: the working window behind the request, which the next turn moves on.
        frozen: the same as it is now, for whoever reads it.
        raw: the request as it came, for whoever reads it.
        wire: the format of the request.
        offers: whether the recall tools stand in it.
        cache: what is remembered for speed, brought up to date.
        lesson: what was learnt of the provider's limits in this conversation.
        standing: why nothing is cut on arrival, or None where it is.
        is_thread: whether the next request may go on from the reply by its id alone.
        limits: those that held when it was made, before anything was learnt; None: the model's own.
    """

    request: dict[str, Any]
    state: State
    events: tuple[Event, ...]
    window: Window
    frozen: FrozenWindow
    raw: FrozenRequest
    wire: Format
    offers: bool
    cache: SessionCache
    lesson: Lesson
    standing: Standing | None = None
    is_thread: bool = False
    limits: Limits | None = None


def wire_of(state: State, settings: Settings) -> Format | None:
    """The format that a conversation has, or is to have; None while that is open.

    Raises:
        ConfigError: the conversation is in a format that was not given and is not known.
    """
    wire = settings.format
    if state.format is None:
        return wire
    if wire is not None and wire.name == state.format:
        return wire
    return settings.formats.named(state.format)
