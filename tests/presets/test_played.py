"""The gates G1 to G4 of `metrics`, for each preset in every format, with room and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.presets.played import ROOMY, SMALL, check_gates, played
from ullage.documents.presets.multi_stage import (
    MultiStageSettings,
    multi_stage,
)
from ullage.documents.presets.output_cache import (
    ToolOutputCacheConfig,
    output_cache,
)

POLICIES = {
    "output_cache": output_cache(
        ToolOutputCacheConfig(
            context_budget_tokens=500,
            max_message_bytes=600,
            max_line_length=60,
        )
    ),
    "multi_stage": multi_stage(
        MultiStageSettings(
            SAFE_TRIGGER_TOKENS=3_000,
            MAX_RESULT_CHARS=600,
            MAX_LIST_ITEMS=5,
            PREVIEW_CHARS=80,
        )
    ),
}
each = pytest.mark.parametrize("name", POLICIES)


@each
@pytest.mark.parametrize("format", sorted(histories.MODEL))
def test_views_are_legal_and_pure_and_lose_nothing(name, format):
    @given(histories.histories, st.sampled_from((ROOMY, SMALL)))
    def proof(turns, window_tokens):
        check_gates(POLICIES[name], format, turns, window_tokens)

    proof()


@each
def test_where_the_guard_must_act_it_says_so(name):
    call = histories.Call("bash", "make", "a line\n" * 40)
    turns = [
        histories.Turn(said="thought " * 300, calls=(call,)) for _ in range(12)
    ]
    session, _, _ = played(POLICIES[name], "openai-chat", turns, SMALL)
    assert {"condensed", "compacted"} & {
        event.kind for event in session.events
    }
    assert session.window.estimate <= session.window.limit_tokens
    check_gates(POLICIES[name], "openai-chat", turns, SMALL)
