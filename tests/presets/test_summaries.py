"""Where three presets leave the word of their documents on summaries: who, for what, when."""

from itertools import pairwise

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.documents.presets.output_cache import (
    CompactionConfig,
    ToolOutputCacheConfig,
    output_cache,
)
from ullage.policy.stages.compact import rough_full
from ullage.policy.stages.rough import view_tokens
from ullage.wires.rules.checker import problems_of

LIMITS = Limits(window_tokens=60_000, output_reserve_tokens=4_000)
OUTPUT = "".join(
    f"{number}: a metric and its value\n" for number in range(400)
)
THOUGHT = " thought" * 3_000
TURNS = [
    Turn(
        user="Mend it.",
        said=f"Step {number}.{THOUGHT}",
        calls=(Call("query", "q", OUTPUT),),
    )
    for number in range(14)
]
MESSAGES = histories.wire("openai-chat", TURNS)
SUMMARISED = pytest.mark.parametrize(
    "policy", ["multi_stage", "output_cache", "three_layer"]
)


def told(policy, messages=MESSAGES, *, summariser=None, each=None):
    """A session to which a history was told request by request, unobserved, and its last view."""
    session = Session(
        "gpt-4.1", policy=policy, limits=LIMITS, summariser=summariser
    )
    view = None
    for stop, message in enumerate(messages):
        if message["role"] == "assistant":
            view = session.fit(
                histories.request("openai-chat", messages[:stop])
            )["messages"]
            if each is not None:
                each(session.window)
    return session, view


def compactions(session):
    return [event for event in session.events if event.kind == "compacted"]


@SUMMARISED
def test_without_a_summariser_the_deterministic_summary_stands_alone(policy):
    session, view = told(policy)
    assert compactions(session)
    assert len(view) < len(MESSAGES) - 2
    assert not problems_of("openai-chat", view)


@SUMMARISED
def test_a_model_is_given_each_message_and_the_two_ends_of_a_long_output(
    policy,
):
    asked = []
    told(policy, summariser=lambda question: asked.append(question) or "")
    given = "".join(asked[0].texts)
    assert "[assistant]\nStep 0. thought" in given
    assert "0: a metric" in given
    assert "399: a metric" in given or policy == "three_layer"
    assert OUTPUT not in given


def test_without_a_report_output_cache_goes_by_the_estimate():
    config = ToolOutputCacheConfig(
        compaction=CompactionConfig(threshold_ratio=0.5)
    )
    sizes = []
    session, _ = told(
        output_cache(config), each=lambda window: sizes.append(window.estimate)
    )
    assert compactions(session)
    assert max(sizes) < 0.5 * LIMITS.window_tokens


def test_a_window_slides_by_five_events_or_more():
    stops = []
    told(
        "multi_stage",
        each=lambda window: stops.extend(
            span[1] for span in window.summaries[-1:]
        ),
    )
    reached = sorted(set(stops))
    assert len(reached) > 2
    assert all(later - earlier >= 5 for earlier, later in pairwise(reached))


def test_three_layer_compacts_at_its_threshold_itself():
    session, _ = told("three_layer", MESSAGES[:6])
    window = session.window
    held, context = view_tokens(window), window.context_tokens
    assert rough_full(window, share=(held + 0.5) / context)
    assert not rough_full(window, share=(held + 1.5) / context), "a token more"
