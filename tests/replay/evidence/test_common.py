"""The stop list."""

import pytest
from msgspec.structs import replace

from tests.replay.evidence.conversation import call, errand, run_of, user
from ullage.tools.replay.evidence.common import common_in, task_of


def using(task, name, result=""):
    return run_of(user(task), call("read_file", result, path=name))


def test_a_value_of_other_tasks_is_no_evidence():
    runs = [
        using("one", "setup_file.cfg"),
        using("two", "other_file.cfg", "x setup_file.cfg"),
    ]
    assert common_in(runs) == {"setup_file.cfg"}


def test_several_runs_of_one_task_are_one_task():
    runs = [
        using("one", "setup_file.cfg"),
        using("one", "setup_file.cfg"),
        using("two", "none_x"),
    ]
    assert common_in(runs) == frozenset()


def test_a_path_is_known_by_its_end():
    runs = [
        using("one", "src/limits.py"),
        using("two", "z_z_z_z", "/repo/src/limits.py"),
    ]
    assert common_in(runs) == {"src/limits.py"}


@pytest.mark.parametrize(("others", "common"), [(98, True), (102, False)])
def test_more_than_two_in_a_hundred_other_tasks_make_it_common(others, common):
    runs = [using(task, "setup_file.cfg") for task in ("a", "b", "c")]
    runs += [using(f"other {number}", "x") for number in range(others - 2)]
    assert common_in(runs) == ({"setup_file.cfg"} if common else set())


def test_a_recorded_task_goes_before_what_the_user_said():
    run = using("one", "x")
    assert task_of(run) == "one"
    assert task_of(replace(run, task="recorded")) == "recorded"
    assert task_of(run_of(call("bash", "x"))) == ""


def test_errands_share_nothing():
    assert common_in(errand(seed, turns=5) for seed in range(4)) == frozenset()
