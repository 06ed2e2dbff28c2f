"""A session's events for OpenTelemetry: metrics of them, and events on the span that is open.

    session = ullage.Session(model, on_event=events_told(model))

    ullage.events           counter, by kind and model
    ullage.core.tokens.removed   counter of tokens that left a view, by kind and model
    ullage.cache.rebilled_tokens     counter of tokens that were billed again, by cause and model
    ullage.pruned, …        an event on the current span: tokens before and after, and the ref

Names are those of the GenAI conventions where they have one (``gen_ai.request.model``). The span is
the caller's, such as that of an agent's step or of an instrumented SDK. Nothing of content goes
out: an event has none. Without an OpenTelemetry SDK in the process nothing is done.

The extra ``opentelemetry`` brings the API. `ullage proxy` has spans of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ullage import Event, __version__
from ullage.integrations._needs import needs

with needs("opentelemetry"):
    from opentelemetry import metrics, trace

__all__ = ["events_told"]

_NAME = "ullage"


def events_told(
    model: str,
    *,
    meter_provider: metrics.MeterProvider | None = None,
    conversation: str = "",
) -> Callable[[Event], None]:
    """What is given to a session as ``on_event``.

    Args:
        model: the model, for ``gen_ai.request.model``.
        meter_provider: whose meters; None: the global one.
        conversation: for ``gen_ai.conversation.id`` on spans; no metric has it, for each would be
            a series of its own.
    """
    meter = metrics.get_meter(_NAME, __version__, meter_provider)
    events = meter.create_counter(
        "ullage.events",
        unit="{event}",
        description="Decisions of sessions, by kind.",
    )
    removed = meter.create_counter(
        "ullage.core.tokens.removed",
        unit="{token}",
        description="Tokens that left a view, by kind.",
    )
    on_spans = {"gen_ai.conversation.id": conversation} if conversation else {}
    anew = meter.create_counter(
        "ullage.cache.rebilled_tokens",
        unit="{token}",
        description="Tokens that had been sent before and were billed again, by cause.",
    )

    def tell(event: Event) -> None:
        labels = {
            "ullage.event.kind": event.kind,
            "gen_ai.request.model": model,
        }
        events.add(1, labels)
        if (fewer := event.tokens_before - event.tokens_after) > 0:
            removed.add(fewer, labels)
        if event.broken is not None:
            cause = {"ullage.cache.cause": event.broken.cause}
            anew.add(
                event.broken.tokens, {**cause, "gen_ai.request.model": model}
            )
        span = trace.get_current_span()
        if span.is_recording():
            span.add_event(
                f"ullage.{event.kind}", {**labels, **on_spans, **_told(event)}
            )

    return tell


def _told(event: Event) -> dict[str, str | int | float]:
    sizes = {
        "ullage.core.tokens.before": event.tokens_before,
        "ullage.core.tokens.after": event.tokens_after,
    }
    texts = {"ullage.where": event.where, "ullage.why": event.why}
    return {
        **texts,
        **sizes,
        **({} if event.broken is None else event.broken.attributes),
        **({"ullage.ref": event.ref} if event.ref else {}),
    }
