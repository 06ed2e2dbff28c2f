"""A session's events as metrics and on spans; nothing of content goes out."""

import pytest

pytest.importorskip(
    "opentelemetry.metrics", reason="opentelemetry-api is not installed"
)

from opentelemetry import metrics, trace

import ullage
from tests.loop.server import calling
from ullage.integrations.opentelemetry import events_told

SECRET = "the tide came in"


class Kept(metrics.NoOpMeterProvider):
    """What the counters of an SDK are told."""

    def __init__(self):
        self.added = []

    def get_meter(self, *_, **__):
        kept = self

        class Meter(metrics.NoOpMeter):
            def create_counter(self, name, unit="", description=""):
                class Counter(metrics.NoOpCounter):
                    def add(self, amount, attributes=None, context=None):
                        kept.added.append((name, unit, amount, attributes))

                return Counter(name)

        return Meter("kept")


class Span(trace.NonRecordingSpan):
    def __init__(self):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.events = []

    def is_recording(self):
        return True

    def add_event(self, name, attributes=None, timestamp=None):
        self.events.append((name, attributes))


def test_what_a_session_decides_is_counted_and_on_the_span_that_is_open():
    kept, span = Kept(), Span()
    told = events_told("gpt-5.4", meter_provider=kept, conversation="c-1")
    session = ullage.Session("gpt-5.4", on_event=told, recall=True)
    result = {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": f"{SECRET}\n" * 20_000,
    }
    messages = [
        {"role": "user", "content": "Why?"},
        calling(1, "read_log"),
        result,
    ]
    with trace.use_span(span):
        session.fit({"model": "gpt-5.4", "messages": messages})
    (event,) = (event for event in session.events if event.kind == "truncated")
    labels = {
        "ullage.event.kind": "truncated",
        "gen_ai.request.model": "gpt-5.4",
    }
    fewer = event.tokens_before - event.tokens_after
    assert ("ullage.events", "{event}", 1, labels) in kept.added
    assert (
        "ullage.core.tokens.removed",
        "{token}",
        fewer,
        labels,
    ) in kept.added
    attributes = dict(span.events)["ullage.truncated"]
    assert attributes["ullage.ref"] == event.ref
    assert attributes["gen_ai.conversation.id"] == "c-1"
    assert SECRET not in repr(span.events) + repr(kept.added)


def test_without_an_sdk_nothing_is_told_and_nothing_fails():
    session = ullage.Session(
        "house-7b", format="openai-chat", on_event=events_told("house-7b")
    )
    session.fit(
        {
            "model": "house-7b",
            "messages": [{"role": "user", "content": "Why?"}],
        }
    )
    assert session.events


def test_a_broken_cache_is_counted_by_its_cause_and_told_on_the_span():
    kept, span = Kept(), Span()
    told = events_told("gpt-5.4", meter_provider=kept)
    session = ullage.Session("gpt-5.4", on_event=told)
    messages = [{"role": "user", "content": "Why? " * 3_000}]
    with trace.use_span(span):
        for system in ("Be brief.", f"{SECRET} " * 9):
            head = {"role": "system", "content": system}
            view = session.fit(
                {"model": "gpt-5.4", "messages": [head, *messages]}
            )
            tokens = view.sent.estimate
            view.observe(ullage.Usage(fresh_tokens=tokens, output_tokens=3))
            messages += [
                {"role": "assistant", "content": "So."},
                {"role": "user", "content": "And?"},
            ]
    labels = {
        "ullage.cache.cause": "system",
        "gen_ai.request.model": "gpt-5.4",
    }
    broken = view.sent.broken
    assert (
        "ullage.cache.rebilled_tokens",
        "{token}",
        broken.tokens,
        labels,
    ) in kept.added
    attributes = dict(span.events)["ullage.cache_broken"]
    assert attributes["ullage.cache.place"] == "system prompt at character 1"
    assert attributes["ullage.cache.cost_usd"] == broken.cost_usd > 0
    assert SECRET not in repr(span.events) + repr(kept.added)
