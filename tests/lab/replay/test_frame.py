"""The frame, the adversaries, and the controls that put the metric itself on trial."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.replay.adversaries import ADVERSARIES
from lab.replay.frame import FRAMES, MASKED, frame
from lab.replay.framed import FRAME_NAMES, replay_frame
from lab.replay.past import Memo, Past
from lab.replay.watch import watch_pages
from tests import histories
from tests.replay.evidence.conversation import call, errand, run_of, told, user
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.tools.replay.run import replay_run
from ullage.wires.rules.checker import problems_of

WINDOW = 8_000
SEEDS = (1, 2)


def views(run, policy, budget):
    story, lengths, demands = told(run)
    chosen, judge, memo = (
        ADVERSARIES.get(policy) or frame(policy, demands),
        Judge(),
        Memo(),
    )
    for number, length in enumerate(lengths):
        yield list(
            chosen(Past(story, length, number, judge, memo), budget).messages
        )


def far(policy, window=WINDOW, runs=SEEDS):
    asked = {"profiles": [PROFILES["none"]], "policy": policy}
    shares = [
        replay_frame(errand(seed), window, **asked).evidence.far.er_line
        if policy in FRAME_NAMES
        else replay_run(
            errand(seed), window, watch_of=watch_pages, **asked
        ).evidence.far.er_line
        for seed in runs
    ]
    return sum(shares) / len(shares)


SMALL = run_of(
    user("Task."),
    *(
        call("read_file", f"{n} text of a file\n" * 40, path=f"{n}")
        for n in range(14)
    ),
)


def shown(policy, budget):
    *_, last = views(SMALL, policy, budget)
    return [
        message.get("content")
        for message in last
        if message["role"] != "assistant"
    ]


def test_recency_keeps_the_task_and_the_newest():
    texts = shown("recency", 700)
    assert texts[0] == "Task."
    assert [text.split()[0] for text in texts[1:]] == ["11", "12"]


def test_masking_leaves_out_all_results_but_ten():
    texts = shown("masking", 100_000)
    assert texts[1:4] == [MASKED] * 3
    assert MASKED not in texts[4:]
    assert len(texts) == 14


def test_head_and_tail_stay_of_every_result():
    texts = shown("head_tail", 3_000)
    assert all("characters left out" in text for text in texts[1:])
    assert all(
        text.startswith(f"{n} text") for n, text in enumerate(texts[1:])
    )


def test_the_lot_is_the_same_for_the_same_seed():
    assert shown("random", 2_000) == shown("random", 2_000)
    assert 0 < shown("random", 2_000).count(MASKED) < 13


@pytest.mark.parametrize(
    "policy", [name for name in FRAME_NAMES if name != "hidden_in_ids"]
)
@pytest.mark.parametrize("format", histories.APART)
def test_views_are_legal_and_within_the_budget(format, policy):
    run, judge = errand(1, turns=16, lines=20, format=format), Judge()
    for view in views(run, policy, 4_000):
        assert problems_of(format, view) == []
        assert judge.tokens(view) <= 4_000


@given(
    histories.histories,
    st.sampled_from(FRAMES),
    st.sampled_from(histories.APART),
)
@settings(max_examples=25, deadline=None)
def test_no_call_is_parted_from_its_result(turns, policy, format):
    run = Run("any", format, {}, histories.wire(format, turns))
    for length, view in zip(
        boundaries(run), views(run, policy, 2_000), strict=True
    ):
        recorded = {
            problem.rule
            for problem in problems_of(format, run.messages[:length])
        }
        assert {
            problem.rule for problem in problems_of(format, view)
        } <= recorded


def test_a_view_depends_on_nothing_behind_its_call():
    for policy in set(FRAME_NAMES) - {"belady"}:
        whole = list(views(errand(3, turns=12), policy, 4_000))
        assert list(views(errand(3, turns=8), policy, 4_000)) == whole[:8]


def test_text_hidden_in_ids_breaks_the_wire():
    *_, last = views(errand(1, turns=16, lines=20), "hidden_in_ids", 4_000)
    assert {problem.rule for problem in problems_of("openai-chat", last)} == {
        "C6"
    }


# N2, N3, N6: the metric on trial


def test_the_demands_of_another_task_are_hardly_ever_met():
    hits = asked = 0
    stories = [told(errand(seed)) for seed in range(4)]
    for story, _, demands in stories:
        for other, _, _ in stories:
            found = [
                other.before(d.atom, 10**6)
                for d in chain.from_iterable(demands)
                if other is not story
            ]
            asked, hits = asked + len(found), hits + sum(map(bool, found))
    assert asked > 100
    assert hits < 0.02 * asked


@pytest.fixture(scope="module")
def recency():
    return far("recency")


@pytest.mark.parametrize("policy", ADVERSARIES)
def test_every_adversary_ranks_below_recency(policy, recency):
    assert 0.2 < recency < 0.9
    assert far(policy) < recency


def diary(turns=24):
    """An agent that thinks aloud, and goes by what it wrote as well as by what it read."""
    parts, listed = [user("Find the file at fault.")], []
    for number in range(turns):
        listed.append(f"mod_{number * 7919}_{number}.txt")
        wanted = listed[max(number - 5, 0)] if number else "."
        plan = f"plan_{max(number - 4, 0)}_tide" if number % 2 else "."
        said = (
            f"I call this plan_{number}_tide. "
            + "It may well be the harbour wall. " * 60
        )
        parts.append(
            call(
                "list_files",
                f"{listed[-1]} is kept by nobody",
                said=said,
                path=wanted,
                as_=plan,
            )
        )
    return run_of(*parts)


def test_repeating_all_results_is_level_on_first_uses_and_loses_with_re_uses():
    """`metrics`, limits: who drops what the model wrote is judged by the re-use series as well."""
    found = {
        policy: replay_frame(
            diary(), 6_000, profiles=[PROFILES["none"]], policy=policy
        ).evidence
        for policy in ("recency", "repeat_all", "belady")
    }
    first = {
        policy: evidence.far.er_line for policy, evidence in found.items()
    }
    both = {
        policy: evidence.both.er_line for policy, evidence in found.items()
    }
    assert first["repeat_all"] >= first["recency"]
    assert both["repeat_all"] < both["recency"] <= both["belady"]


@pytest.mark.parametrize("policy", [*FRAMES[:4], "default"])
def test_nothing_ranks_above_the_oracle(policy):
    assert far(policy, runs=SEEDS[:2]) < far("belady", runs=SEEDS[:2]) == 1


def test_names_alone_are_mentioned_and_not_visible():
    found = replay_frame(
        errand(1),
        WINDOW,
        profiles=[PROFILES["none"]],
        policy="identifier_dump",
    )
    assert found.evidence.far.mentioned > found.evidence.far.visible


def test_a_replay_under_the_frame_counts_what_is_over_budget():
    run = run_of(
        user("x " * 9_000),
        call("bash", "y " * 9_000, cmd="a"),
        call("bash", "z", cmd="b"),
    )
    replayed = replay_frame(
        run, 8_000, profiles=[PROFILES["none"]], policy="recency"
    )
    assert replayed.over_limit == len(boundaries(run)) == 2
