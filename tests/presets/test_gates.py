"""The gates of `metrics` for presets, in the four formats: legal, fitting, repeatable, whole.

The settings are small, so that generated histories reach every stage.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import reading
from tests import histories
from tests.properties.test_gates import boundaries
from tests.world import recount
from ullage import FormatError, Limits, Session, Usage, problems
from ullage.documents.presets.continuation import (
    ContinuationSettings,
    continuation,
)
from ullage.documents.presets.token_budget import (
    TokenBudgetSettings,
    token_budget,
)
from ullage.wires import FORMATS

POLICIES = {
    "token_budget": token_budget(
        TokenBudgetSettings(
            input_token_budget=3_000, tool_result_retention_chars=80
        )
    ),
    "continuation": continuation(
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=600)
    ),
}
every = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
formats = st.sampled_from(sorted(FORMATS))
ROOM, LITTLE_ROOM = 200_000, 6_000


def new_session(policy, format, window, **more):
    limits = Limits(window_tokens=window)
    return Session(
        histories.MODEL[format],
        policy=policy,
        format=format,
        limits=limits,
        **more,
    )


def live_through(session, format, messages):
    """Every view, each reported as we counted it."""
    for length in boundaries(format, messages):
        view = session.fit(histories.request(format, messages[:length]))
        session.observe(Usage(fresh_tokens=session.window.tokens))
        yield view


@every
@given(format=formats, turns=histories.histories, reuse=st.booleans())
def test_views_are_legal_and_every_result_can_be_read_back(
    policy, format, turns, reuse
):
    """G1 and G4: by the visible notices alone, byte for byte."""
    messages = histories.wire(format, turns, reuse_ids=reuse)
    session = new_session(policy, format, ROOM)
    for view in live_through(session, format, messages):
        assert not problems(view, format)
    shown, opened = list(reading.visible(FORMATS[format].history(view))), {}
    reading.reachable(session, shown, opened)
    seen = {*shown, *opened.values()}
    for message in messages:
        for _, texts in reading.results(message):
            assert seen.issuperset(texts)


@every
@given(
    format=formats,
    turns=histories.histories,
    window=st.sampled_from((ROOM, LITTLE_ROOM)),
)
def test_a_cold_session_with_the_reports_shows_the_same(
    policy, format, turns, window
):
    """G3: what is in the history and the ledger is all that counts."""
    messages = histories.wire(format, turns)
    warm = new_session(policy, format, window)
    *_, view = live_through(warm, format, messages)
    cold = new_session(policy, format, window, state=warm.state)
    assert json.dumps(
        cold.fit(histories.request(format, messages))
    ) == json.dumps(view)
    assert not [event for event in cold.events if event.kind == "diagnostic"]


@every
@given(format=formats, turns=histories.histories)
def test_in_a_small_window_every_view_fits_and_events_say_why(
    policy, format, turns
):
    """G2: the guard stands behind the preset, and says when it acts."""
    messages = histories.wire(format, turns)
    session = new_session(policy, format, LITTLE_ROOM)
    for view in live_through(session, format, messages):
        assert recount(session, view) == session.window.tokens
        assert session.window.estimate <= session.window.limit_tokens
        assert not problems(view, format)
    acted = bool(session.window.summaries)
    assert acted <= ("condensed" in {event.kind for event in session.events})


@every
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_guard_acts_where_the_preset_is_not_enough(policy, format):
    call = histories.Call("bash", "a.py", "a short line\n" * 40)
    messages = histories.wire(
        format, [histories.Turn(calls=(call,), said="So.")] * 60
    )
    session = new_session(policy, format, LITTLE_ROOM)
    *_, view = live_through(session, format, messages)
    assert "condensed" in {event.kind for event in session.events}
    assert session.window.estimate <= session.window.limit_tokens
    assert not problems(view, format)


ODD = (
    "\ud800 half\n" * 500,
    "\x00\x1b[31m" * 900,
    "line\r\n" * 2_000,
    "👩‍👩‍👧e\u0301" * 1_500,
    "",
)


@every
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_text_of_any_kind_comes_back_as_it_was(policy, format):
    calls = [
        histories.Turn(calls=(histories.Call("bash", "a.py", text),))
        for text in ODD
    ]
    messages = histories.wire(
        format, [*calls, histories.Turn(said="so", user="and?")]
    )
    session = new_session(policy, format, ROOM)
    *_, view = live_through(session, format, messages)
    shown, opened = list(reading.visible(FORMATS[format].history(view))), {}
    reading.reachable(session, shown, opened)
    nothing = (
        {""} if format == "bedrock-converse" else set()
    )  # a blank text is no block there
    assert {*shown, *opened.values()}.issuperset({*ODD} - nothing)
    assert len(opened) >= 3 or nothing


@every
@pytest.mark.parametrize(
    "result",
    [b"bytes", 3, object(), (part for part in "ab")],
    ids=["bytes", "a number", "an object", "a generator"],
)
def test_a_result_that_is_no_content_is_refused_and_the_session_goes_on(
    policy, result
):
    call = histories.Call("bash", "a.py", "a line\n" * 900)
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(call,))] * 2
    )
    session = new_session(policy, "openai-chat", ROOM)
    wrong = [*messages[:-1], {**messages[-1], "content": result}]
    with pytest.raises(FormatError, match=r"messages\[\d\]\.content"):
        session.fit(histories.request("openai-chat", wrong))
    assert session.fit(histories.request("openai-chat", messages))
