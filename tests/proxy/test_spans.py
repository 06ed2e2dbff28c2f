"""A span for each call of a model, by the GenAI conventions."""

import pytest

from tests.proxy.told import FITTED, broke, passed, relayed
from ullage.doors.proxy.spans import attributes_of, spans

trace = pytest.importorskip(
    "opentelemetry.trace", reason="opentelemetry-api is not installed"
)


class Tracer:
    """What a tracer of the SDK is asked for."""

    def __init__(self):
        self.spans = []

    def start_span(self, name, **given):
        span = Span(name, given)
        self.spans.append(span)
        return span


class Span(trace.NonRecordingSpan):
    def __init__(self, name, given):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name, self.given, self.status, self.ended = (
            name,
            given,
            None,
            None,
        )

    def set_status(self, status, description=None):
        self.status = status

    def end(self, end_time=None):
        self.ended = end_time


@pytest.fixture
def tracer(monkeypatch):
    found = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: found)
    return found


def test_a_call_is_a_span_of_its_callers_trace(tracer):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    spans()(relayed(traceparent=parent))
    (span,) = tracer.spans
    assert span.name == "chat claude-opus-4-8"
    context = trace.get_current_span(span.given["context"]).get_span_context()
    assert (
        format(context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    )
    assert span.ended - span.given["start_time"] == 500_000_000
    assert span.status is None


def test_what_is_no_call_is_no_span_and_a_failed_one_says_so(tracer):
    tell = spans()
    tell(passed())
    assert tracer.spans == []
    tell(relayed(is_broken=True))
    assert tracer.spans[0].status is trace.StatusCode.ERROR


def test_attributes_are_numbers_and_names_and_no_content():
    found = attributes_of(relayed())
    assert found["gen_ai.provider.name"] == "anthropic"
    assert found["gen_ai.usage.input_tokens"] == 1_000
    assert found["gen_ai.usage.cache_read.input_tokens"] == 900
    assert found["ullage.prompt.came_tokens"] == 4_000
    assert all(
        isinstance(value, str | int | float) for value in found.values()
    )
    assert FITTED.path not in map(str, found.values())


def test_a_broken_cache_is_on_the_span_with_its_cause_and_price():
    attributes = attributes_of(broke())
    assert attributes["ullage.cache.cause"] == "tools"
    assert attributes["ullage.cache.by"] == "the client"
    assert attributes["ullage.cache.rebilled_tokens"] == 900
    assert attributes["ullage.cache.cost_usd"] == 0.25
    assert "ullage.cache.cause" not in attributes_of(relayed())
