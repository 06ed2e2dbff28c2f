"""A span of OpenTelemetry for each call of a model, where its API is installed.

Names are those of the GenAI semantic conventions, at Development as of schema 1.39; they are all
here. No content is in a span.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from ullage.doors.proxy.metrics import done_with
from ullage.doors.proxy.relayed import Relayed, raw_tokens
from ullage.wires import wire_named

_SCHEMA = "https://opentelemetry.io/schemas/1.39.0"
_NS = 1_000_000_000


def spans() -> Callable[[Relayed], None] | None:
    """A function that makes the span of a request that is over; None without the API."""
    if importlib.util.find_spec("opentelemetry") is None:
        return None
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    from ullage import __version__

    tracer = trace.get_tracer("ullage.proxy", __version__, schema_url=_SCHEMA)
    propagator = TraceContextTextMapPropagator()

    def tell(relayed: Relayed) -> None:
        if not relayed.report.wire:
            return
        began = int(relayed.began_s * _NS)
        span = tracer.start_span(
            f"chat {relayed.report.model}".strip(),
            context=propagator.extract({"traceparent": relayed.traceparent}),
            kind=trace.SpanKind.CLIENT,
            attributes=attributes_of(relayed),
            start_time=began,
        )
        if relayed.is_broken or relayed.report.status >= 400:
            span.set_status(trace.StatusCode.ERROR)
        span.end(began + int(relayed.whole_s * _NS))

    return tell


def attributes_of(relayed: Relayed) -> dict[str, Any]:
    """The attributes of a request's span."""
    report = relayed.report
    usage = relayed.report.usage
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": wire_named(report.wire).provider,
        "gen_ai.request.model": report.model,
        "gen_ai.conversation.id": report.conversation,
        "http.response.status_code": report.status,
        "ullage.done": done_with(relayed),
        "ullage.prompt.came_tokens": raw_tokens(relayed),
        "ullage.prompt.sent_tokens": report.view_tokens,
        "ullage.prompt.limit_tokens": report.limit_tokens,
        "ullage.fit.seconds": relayed.fit_s,
        "ullage.recalled": report.recalled,
        "ullage.decisions": len(report.events),
    }
    if report.passed is not None:
        attributes["ullage.passed"] = report.passed
    if report.status >= 400 or relayed.is_broken:
        attributes["error.type"] = str(report.status or "broken")
    if usage is not None:
        attributes["gen_ai.usage.input_tokens"] = usage.input_tokens
        attributes["gen_ai.usage.output_tokens"] = usage.output_tokens
        attributes["gen_ai.usage.cache_read.input_tokens"] = (
            usage.cache_read_tokens
        )
        attributes["gen_ai.usage.cache_creation.input_tokens"] = (
            usage.cache_write_tokens
        )
    for event in report.events:
        if event.broken is not None:
            attributes.update(event.broken.attributes)
    return attributes
