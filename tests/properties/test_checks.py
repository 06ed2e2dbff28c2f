"""Whatever a stage proposes: every view is legal, and everything opens byte for byte."""

import copy
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import histories
from tests.properties.test_gates import boundaries
from tests.second_reading import broken
from ullage import Limits, MemoryStore, Policy, Session, problems
from ullage.core.history.canon import ref_of
from ullage.testing import anything
from ullage.wires import FORMATS

formats = st.sampled_from(sorted(FORMATS))
seeds = st.integers(0, 1 << 30)
moments = st.sampled_from(("on_arrival", "under_pressure", "both", "guard"))
thinking = st.sampled_from((None, "adaptive", "enabled", "bound"))


def policy_of(moment, seed):
    stage = partial(anything, seed=seed)
    if moment == "guard":
        return Policy(name="anything-1", guard=stage)
    if moment == "both":
        return Policy(
            name="anything-1", on_arrival=(stage,), under_pressure=(stage,)
        )
    return Policy(name="anything-1", **{moment: (stage,)})


def request_of(format, messages, thinks):
    request = histories.request(format, messages)
    if format == "anthropic" and thinks == "bound":
        request["model"] = "claude-opus-5-5"
        request["thinking"] = {"type": "adaptive"}
    elif format == "anthropic" and thinks:
        request["thinking"] = {"type": thinks}
        if thinks == "enabled":
            request["thinking"]["budget_tokens"] = 1_024
            request["max_tokens"] = 4_096
    return request


def rules_of(format, request):
    """The rules that a request breaks, by both readings."""
    return {problem.rule for problem in problems(request)} | broken(
        format, request
    )


def opened(session, ref):
    kept = session.store.get(session.settings.tenant, ref)
    assert ref_of(kept.text, kept.kind) == ref
    return kept


def assert_everything_opens(session):
    """Whatever the view does not show stands in the store, under a ref that the view names."""
    window = session.window
    transcript = window.transcript
    for index in range(window.size):
        for leaf, edit in window.shown(index).items():
            spot = (index, *leaf)
            output = transcript.output(spot)
            assert edit.ref in edit.text or output.text in edit.text, (
                "it opens, or is there whole"
            )
            assert opened(session, edit.ref) == output
    for start, stop, edit in window.summaries:
        assert edit.ref in edit.text
        index_text = opened(session, edit.ref).text
        for message in range(start, stop):
            for number, part in enumerate(transcript.messages[message].parts):
                text = getattr(part, "text", None) or getattr(
                    part, "arguments", ""
                )
                outputs = list(transcript.outputs(message, number))
                if type(part).__name__ in ("Text", "ToolCall"):
                    assert text in index_text
                    continue
                for output in outputs:
                    assert output.ref in index_text
                    assert opened(session, output.ref) == output


def open_session(format, policy, store, model=None):
    return Session(
        model or histories.MODEL[format],
        policy=policy,
        limits=Limits(window_tokens=400_000),
        format=format,
        recall=True,
        store=store,
    )


@given(formats, histories.histories, st.booleans(), seeds, moments, thinking)
def test_no_stage_makes_an_illegal_view_or_loses_anything(
    format, turns, reuse, seed, moment, thinks
):
    if (
        thinks == "enabled"
    ):  # then every reply to the user begins with thinking (A14)
        turns = [replace(turn, thought=True) for turn in turns]
    messages = histories.wire(format, turns, reuse_ids=reuse)
    store = MemoryStore()
    policy = policy_of(moment, seed)
    warm = open_session(format, policy, store)
    for length in boundaries(format, messages):
        request = request_of(format, messages[:length], thinks)
        before = copy.deepcopy(request)
        was_broken = rules_of(format, request)
        view = warm.fit(request)
        assert request == before
        assert rules_of(format, dict(view)) <= was_broken
        assert_everything_opens(warm)
        # another worker on the same store, who starts here, and one who was started again
        other = open_session(format, policy, store)
        assert other.fit(request) == view
        assert warm.fit(request) == view
    # who sees the whole history at once, with a store of their own, decides the same
    if moment == "on_arrival" and thinks != "bound":
        alone = open_session(format, policy, MemoryStore())
        assert alone.fit(request) == view
