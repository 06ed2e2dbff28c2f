"""A trace: what a session showed turn by turn, folded from its windows alone."""

import pytest

from tests.replay.test_run import small_run
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.run import replay_run
from ullage.tools.replay.trace import KINDS
from ullage.tools.replay.tracer import Tracer, clipped

FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")


def traced(run, window_tokens, policy="default"):
    tracer = Tracer(Judge().text)
    profiles = [PROFILES["anthropic-5m"]]
    replayed = replay_run(
        run, window_tokens, profiles=profiles, policy=policy, on_view=tracer
    )
    return replayed, tracer.trace(policy), tracer.story(run)


@pytest.fixture(scope="module")
def pressed():
    """24 turns of two calls with long results, in a window far too small for them."""
    return traced(small_run("openai-chat"), 16_000)


def of(trace, kind):
    return [sizes[KINDS.index(kind)] for sizes in trace.sizes]


@pytest.mark.parametrize("format", FORMATS)
def test_without_edits_what_is_shown_is_what_there_is(format):
    replayed, trace, story = traced(small_run(format, 2), 64_000)
    assert [sum(sizes) for sizes in trace.sizes] == trace.raw
    assert trace.marks == trace.changes == []
    assert of(trace, "notice") == [0] * replayed.calls
    assert max(of(trace, "result")) > max(of(trace, "call")) > 0
    assert {said.kind for row in story.parts for said in row} >= {
        "user",
        "call",
        "result",
    }


@pytest.mark.parametrize("format", FORMATS)
def test_every_edit_that_was_told_is_a_mark_with_its_ref(format):
    replayed, trace, _ = traced(small_run(format), 16_000)
    kinds = [mark.kind for mark in trace.marks]
    assert kinds.count("pruned") == replayed.events["pruned"]
    assert kinds.count("condensed") == replayed.events.get("condensed", 0)
    assert all(
        mark.ref and mark.reason and mark.tokens_before > mark.tokens_after
        for mark in trace.marks
    )


def test_tokens_move_from_results_to_what_stands_for_them(pressed):
    _, trace, _ = pressed
    turn = next(mark.turn for mark in trace.marks if mark.kind == "pruned")
    results = of(trace, "result")
    instead = [
        sum(sizes)
        for sizes in zip(
            of(trace, "excerpt"),
            of(trace, "notice"),
            of(trace, "record"),
            strict=True,
        )
    ]
    assert results[turn] < results[turn - 1]
    assert instead[turn] > instead[turn - 1]
    assert all(sum(sizes) <= trace.limit_tokens for sizes in trace.sizes)


def test_what_stands_for_a_result_is_named_by_what_it_is():
    """A line is a notice, several lines are an excerpt, a stretch has a record."""
    log = "\n".join(f"{number} ok" for number in range(4_000))
    run = small_run("openai-chat", 24)
    for message in run.messages:
        if message["role"] == "tool":
            message["content"] += log
    _, trace, _ = traced(run, 16_000)
    last = {kind: of(trace, kind)[-1] for kind in KINDS}
    assert last["excerpt"] > 0
    condensed = [
        mark.turn for mark in trace.marks if mark.stop > mark.message + 1
    ]
    records = of(trace, "record")
    assert condensed
    assert max(records[: condensed[0]], default=0) == 0
    assert records[condensed[0]] > 0
    lines = [
        mark
        for mark in trace.marks
        if mark.stop == mark.message + 1 and "\n" not in mark.text.strip()
    ]
    assert bool(lines) == (max(of(trace, "notice")) > 0)


def test_the_figures_are_those_of_the_judge(pressed):
    replayed, trace, _ = pressed
    head = trace.sizes[0][0]
    assert max(map(sum, trace.sizes)) - head == pytest.approx(
        replayed.peak_tokens, rel=0.02
    )
    assert max(trace.raw) - head == pytest.approx(
        replayed.raw_peak_tokens, rel=0.02
    )
    (bill,) = [bill for bill in replayed.bills if bill.clock == "warm"]
    assert sum(trace.cost_usd) == pytest.approx(bill.shown.cost_usd)
    assert sum(trace.raw_cost_usd) == pytest.approx(bill.raw.cost_usd)
    assert sum(tokens > 0 for tokens in trace.rewritten) == replayed.breaks


def test_each_message_is_known_from_the_turn_it_was_said_and_changes_after(
    pressed,
):
    _, trace, story = pressed
    assert trace.lengths == sorted(trace.lengths)
    assert len(story.parts) == len(story.roles) == trace.lengths[-1]
    for turn, message, _ in trace.changes:
        assert message < trace.lengths[turn]
    assert len({(turn, message) for turn, message, _ in trace.changes}) == len(
        trace.changes
    )


def test_a_trace_is_the_same_whenever_it_is_made(pressed):
    _, trace, story = pressed
    _, again, same = traced(small_run("openai-chat"), 16_000)
    assert (again, same) == (trace, story)


def test_a_long_text_says_how_much_of_it_is_missing():
    short = clipped("a" * 700 + "b" * 300, 90)
    assert (
        short
        == "a" * 60 + " ⟨… 910 characters not in this page …⟩ " + "b" * 30
    )
    assert clipped("\ud800", 90) == "?"
