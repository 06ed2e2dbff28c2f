"""The playbook on trial: each way a stage can break its word is told by its name."""

import json
import random
from functools import partial
from itertools import count

import pytest

from ullage import Output, Policy, ProposedEdit, Replace, problems
from ullage.core.history.canon import ref_of
from ullage.documents import preset
from ullage.policy.stages.default import DEFAULT
from ullage.testing import (
    anything,
    boundaries,
    check_policy,
    check_stage,
    example_runs,
    in_format,
)
from ullage.testing.runs import MODELS

RUNS = example_runs(2)


def leaving(window, /, *, share=0.5, newest=3, shown=None, keep=True):
    """Old results leave, once the window is so full."""
    if window.tokens < share * window.limit_tokens:
        return ()
    return [
        cut
        for spot in list(window.results(0, window.size))[:-newest]
        for cut in one(window, spot, shown, keep)
    ]


def one(window, spot, shown, keep):
    output = window.transcript.output(spot)
    text = shown or window.words.placeholder(output.ref, output.text)
    if window.shown(spot[0]).get(spot[1:]) or (
        len(text) >= len(output.text) and not shown
    ):
        return []
    edit = Replace(
        window.transcript.address(spot),
        output.ref,
        text,
        "pruned",
        "it was old",
    )
    return [ProposedEdit(edit, (output,) if keep else ())]


def test_a_stage_that_keeps_its_word_passes_and_made_cuts():
    assert check_stage(leaving, runs=RUNS) > 50


@pytest.mark.parametrize(
    "policy",
    [DEFAULT, *map(preset, ("continuation", "three_layer", "output_cache"))],
)
def test_ours_keep_their_word(policy, capsys):
    assert check_policy(policy, runs=RUNS[:1]) > 20


def test_a_stage_that_makes_no_cut_says_so():
    assert check_stage(lambda window: (), runs=RUNS) == 0


chance = random.Random(1)  # the same chances in every run of the tests


def by_chance(window):
    return leaving(window, newest=chance.randrange(1, 9))


calls = count()


def by_the_call(window):
    return leaving(window, newest=next(calls) // 2 % 2 + 1)


def sees_what_comes(window):
    """The transcript of who sees a history at once holds what comes later."""
    at_end = len(window.transcript) == window.size
    return leaving(window, share=0.5 if at_end else 0.2)


def adds_to_the_history(window):
    window.transcript.messages.append(window.transcript.messages[0])
    return ()


def other_content(window):
    cuts = leaving(window)
    return [
        ProposedEdit(cut.edit, (Output(ref_of("other"), "other"),))
        for cut in cuts
    ]


def arguments(window, text):
    """The arguments of every call that was answered, shown as something else."""
    if window.tokens < 0.5 * window.limit_tokens:
        return []
    calls = [
        (index, number, 0)
        for index, message in enumerate(
            window.transcript.messages[: window.size - 4]
        )
        for number, part in enumerate(message.parts)
        if part in message.calls and not window.shown(index)
    ]
    cuts = [one(window, spot, text, keep=True) for spot in calls]
    return [cut for some in cuts for cut in some]


BROKEN = {
    "deterministic": (by_chance, by_the_call),
    "prefix-closed": (sees_what_comes,),
    "pure": (adds_to_the_history,),
    "kept": (partial(leaving, keep=False), other_content),
    "legal": (partial(arguments, text='{"x"'),),
    "smaller": (partial(leaving, shown="longer than it was\n" * 900),),
}


@pytest.mark.parametrize(
    ("promise", "stage"),
    [(name, one) for name, some in BROKEN.items() for one in some],
)
def test_a_stage_that_breaks_its_word_is_told_which_and_where(promise, stage):
    with pytest.raises(
        AssertionError, match=rf"^{promise}: .*\(request \d+ of the run"
    ) as caught:
        check_stage(stage, runs=RUNS, formats=["openai-chat", "anthropic"])
    assert "history of" in str(caught.value)


@pytest.mark.parametrize(
    "stage", [partial(leaving, keep=False), other_content]
)
def test_what_the_engine_mends_may_be_enough(stage):
    assert check_stage(stage, runs=RUNS[:1], mends=True) > 20


def test_what_the_engine_has_to_mend_is_said():
    with pytest.raises(
        AssertionError,
        match=r"^kept: the engine has to repair message \d+: 1 of 1 ",
    ):
        check_stage(partial(leaving, keep=False), runs=RUNS[:1])


@pytest.mark.parametrize("at", ["on_arrival", "under_pressure"])
def test_a_stage_that_tries_everything_is_held_to_the_laws(at):
    stage = partial(anything, seed=3)
    assert (
        check_stage(
            stage, at=at, runs=RUNS[:1], window_tokens=400_000, mends=True
        )
        > 20
    )
    with pytest.raises(AssertionError, match=r"^(legal|kept|smaller): "):
        check_stage(stage, at=at, runs=RUNS[:1], window_tokens=400_000)


def test_the_history_that_shows_it_is_short():
    with pytest.raises(AssertionError) as caught:
        check_stage(
            partial(leaving, keep=False), runs=RUNS, formats=["openai-chat"]
        )
    shown = str(caught.value).partition("history of ")[2]
    assert int(shown.split()[0]) <= 12


@pytest.mark.parametrize("format", MODELS)
def test_the_runs_are_legal_in_every_format_and_the_same_everywhere(format):
    assert example_runs(2) == example_runs(2) != example_runs(2, seed=1)
    for run in example_runs(3):
        for stop in boundaries(run):
            assert problems(in_format(run[:stop], format)) == []
    assert json.loads(json.dumps(RUNS)) == list(map(list, RUNS))


def test_first_sight_is_a_moment_of_its_own():
    policy = Policy(name="p", on_arrival=DEFAULT.on_arrival)
    assert (
        check_policy(
            policy, runs=example_runs(2, scale=4), window_tokens=30_000
        )
        > 5
    )
