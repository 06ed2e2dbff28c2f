"""What a decision would change, and what that would cost, before it is made.

The next turn is worked out twice, with the decision and without, and nothing of it is kept: what
the store holds is read, and what would be written goes nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct

from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.hand import rewriting_usd
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State, TurnResult
from ullage.core.turn.turn import turn
from ullage.core.values.effects import Commit, Steps, Summarise
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.spend.cost import cost_of
from ullage.wires import Format

T = TypeVar("T")


class Preview(Struct, frozen=True, kw_only=True):
    """What a decision would come to at the next turn.

    Attributes:
        tokens_before: estimated tokens of the next view without the decision.
        tokens_after: and with it.
        changed_from: the first message of the request that would be sent otherwise, counted from
            1; None: none would be.
        rewritten_tokens: tokens that would be written to the prompt cache again, as estimated.
        cost_now_usd: what that costs, once, at list price; None: the model's prices are unknown.
        cost_per_call_usd: what every later call costs more, as read from the cache; below zero, it
            costs less. None: the model's prices are unknown.
        events: what would be told.
    """

    tokens_before: int
    tokens_after: int
    changed_from: int | None
    rewritten_tokens: int
    cost_now_usd: float | None
    cost_per_call_usd: float | None
    events: tuple[Event, ...]

    @property
    def changes_nothing(self) -> bool:
        """Whether the next view would be the same."""
        return (
            self.changed_from is None
            and self.tokens_before == self.tokens_after
        )

    def __str__(self) -> str:
        if self.changes_nothing:
            return f"nothing changes: {self.tokens_after:,} tokens"
        price = (
            f"{self.rewritten_tokens:,} tokens are written to the cache again"
        )
        if (
            self.cost_now_usd is not None
            and self.cost_per_call_usd is not None
        ):
            price += f": ${self.cost_now_usd:.4f} now, ${self.cost_per_call_usd:+.4f} a call later"
        range_text = (
            f", from message {self.changed_from} on"
            if self.changed_from
            else ""
        )
        return f"{self.tokens_before:,} → {self.tokens_after:,} tokens{range_text}; {price}"


def preview(
    request: Mapping[str, Any],
    state: State,
    decided: State,
    settings: Settings,
) -> Steps[Preview]:
    """Work out the next turn with a decision and without.

    Args:
        request: the newest request, as it came.
        state: of the conversation, as it is.
        decided: the same with the decision.
        settings: of the session.

    Raises:
        OverLimitError: the view could not be made to fit with the decision.
    """
    baseline = yield from _dry(turn(request, state, SessionCache(), settings))
    changed = yield from _dry(turn(request, decided, SessionCache(), settings))
    index = _first_changed(baseline, changed)
    rewritten = 0 if index is None else _tokens_from(changed, index)
    window = changed.window
    more = window.estimate - baseline.window.estimate
    return Preview(
        tokens_before=baseline.window.estimate,
        tokens_after=window.estimate,
        changed_from=None if index is None else index + 1,
        rewritten_tokens=rewritten,
        cost_now_usd=rewriting_usd(window.meter.model, rewritten),
        cost_per_call_usd=reading_usd(
            window.meter.model, more, changed.wire.wire
        ),
        events=changed.events,
    )


def _dry(steps: Steps[T]) -> Steps[T]:
    """Steps that read from the store, write nothing and ask no model."""
    answer: Any = None
    try:
        while True:
            effect = steps.send(answer)
            if isinstance(effect, Commit):
                answer = ()  # as if no other worker had decided here
            elif isinstance(effect, Summarise):
                answer = None
            else:
                answer = yield effect
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _messages(turned: TurnResult) -> list[Any]:
    return list(turned.request[turned.wire.key])


def _first_changed(baseline: TurnResult, changed: TurnResult) -> int | None:
    """The index of the first message that differs; None where all are alike."""
    old_messages = _messages(baseline)
    new_messages = _messages(changed)
    pairs = zip(old_messages, new_messages, strict=False)
    for index, (old_message, new_message) in enumerate(pairs):
        if old_message != new_message:
            return index
    if len(old_messages) == len(new_messages):
        return None
    return min(len(old_messages), len(new_messages))


def _tokens_from(turned: TurnResult, start: int) -> int:
    """Estimated tokens of the messages of a request from an index on."""
    window = turned.window
    wire = turned.wire
    tokens = sum(
        _tokens(window, wire, raw) for raw in _messages(turned)[start:]
    )
    return window.calibration.apply(tokens)


def _tokens(window: Window, wire: Format, raw: Any) -> int:
    message = wire.parse(raw, "view")
    leaves = (leaf for *_, leaf in leaves_of(message))
    return window.meter.framing(message) + sum(map(window.meter.leaf, leaves))


def reading_usd(model: str, tokens: int, wire: str = "") -> float | None:
    """What it costs to read so many tokens from the cache; below zero for fewer.

    Args:
        model: the model that is asked.
        tokens: the tokens; below zero: so many fewer.
        wire: the name of the wire; ``""``: the price is the model's.

    Returns:
        At list price; None: the model's prices are unknown.
    """
    usage = Usage(cache_read_tokens=abs(tokens))
    price = cost_of(usage, model, wire)
    if price is None:
        return None
    return price if tokens >= 0 else -price
