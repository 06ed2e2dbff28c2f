"""Development and held-out runs."""

from msgspec.structs import replace

from lab.replay.split import SIDES, is_on
from tests.replay.evidence.conversation import call, run_of, user


def run(task, said="ok"):
    return replace(
        run_of(user("Go."), call("bash", said, command="a")), task=task
    )


def sides(task, said="ok"):
    return [side for side in SIDES if is_on(side, run(task, said))]


def test_every_run_is_on_one_side_and_all_runs_of_a_task_on_the_same():
    for number in range(40):
        found = sides(f"task {number}")
        assert found in (["all", "dev"], ["all", "held-out"])
        assert sides(f"task {number}", "something else") == found


def test_about_half_of_the_tasks_are_held_out_and_the_sides_never_change():
    held = [
        number
        for number in range(400)
        if "held-out" in sides(f"task {number}")
    ]
    assert 160 < len(held) < 240
    assert held[:5] == HELD


HELD = [1, 2, 5, 7, 10]
