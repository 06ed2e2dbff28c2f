"""Which reads are edited after a batch, and what it takes to leave them whole."""

from lab.replay.carried.carry import Carrier
from lab.replay.carried.edited import command, taken_reads
from lab.replay.carried.policies import POLICIES
from tests.cli.terminal import ran_by
from tests.cli.test_replay import errands
from tests.replay.evidence.conversation import call, run_of, user

WINDOW = 32_000


def source(number):
    return "\n".join(
        f"{at:5}\tdef part_{number}_{at}(value_{at}): return {at * number}"
        for at in range(160)
    )


def old(number):
    return "\n".join(
        f"def part_{number}_{at}(value_{at}): return {at * number}"
        for at in range(40, 60)
    )


def agent(edited, said="So I go on."):
    """Reads twelve files, speaks, and edits some of them; the batch comes between."""
    read = [
        call("read", source(n), said=said, path=f"src/part_{n}.py")
        for n in range(1, 13)
    ]
    others = [call("bash", "x" * 900, command="make") for _ in range(9)]
    edits = [
        call(
            "edit",
            "done",
            path=f"src/part_{n}.py",
            old_string=old(n),
            new_string="",
        )
        for n in edited
    ]
    return run_of(user("Mend the parts."), *read, *others, *edits)


def test_a_read_is_known_by_what_came_before_the_batch_and_after_it():
    taken = list(taken_reads(agent([2, 3], "Now src/part_2.py."), WINDOW))
    assert len(taken) >= 5
    assert {read.edited for read in taken} == {True, False}
    assert sum(read.edited for read in taken) == 2
    assert all(read.is_whole and not read.was_edited for read in taken)
    assert not any(read.is_reread for read in taken)
    assert [read.age for read in taken] == sorted(
        (read.age for read in taken), reverse=True
    )


def test_a_read_that_stays_whole_is_seen_by_its_edit_and_costs_more():
    carrier = Carrier(agent([1, 2], "Now part_1.py, then part_2.py."))
    default, named = (
        carrier.under(POLICIES[name](), WINDOW).shown
        for name in ("default", "named_reads")
    )
    assert default.anchors == named.anchors == 2
    assert default.anchors_shown < named.anchors_shown == 2
    assert default.again_written > named.again_written == 0
    assert named.cost(0.1, "none") > default.cost(0.1, "none")


def test_the_newest_reads_stay_out_of_a_batch():
    carrier = Carrier(agent([11, 12]))
    tails = {
        name: carrier.under(POLICIES[name](), WINDOW).shown
        for name in ("default", "recent_reads")
    }
    assert (
        tails["recent_reads"].anchors_shown >= tails["default"].anchors_shown
    )


def test_the_command_prints_what_is_alike(tmp_path):
    words = (
        errands(tmp_path, 1),
        *("--split", "all", "--least-tokens", 0, "--window", 8_000),
    )
    ran = ran_by(command, words)
    assert ran.status == 0
    assert "named since, read whole" in ran.text
