"""Many runs in several processes, and what is kept of them."""

import logging

from msgspec.structs import replace

from tests.replay.test_run import small_run
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.engines import open_engine
from ullage.tools.replay.many import (
    SESSIONS,
    Job,
    Replayer,
    ResultFile,
    replay_all,
    replay_session,
)
from ullage.tools.replay.readers import Damage

JOB = Job((PROFILES["none"],))
TRIES = (("default", 16_000), ("continuation", 16_000))


def outcomes(runs, kept=None, processes=1, replayer=SESSIONS):
    wanted = (("file", run, at) for at, run in enumerate(runs))
    with open_engine("processes", processes) as engine:
        return list(
            replay_all(
                wanted, TRIES, JOB, engine, kept or ResultFile(None), replayer
            )
        )


def bare(replayed):
    """What came out, without the times."""
    return replace(replayed, fit_ms=[])


def test_two_processes_find_what_one_finds():
    runs = [small_run("openai-chat", turns) for turns in (2, 3)]
    one, two = outcomes(runs), outcomes(runs, processes=2)
    key = lambda found: (found[2], found[1].policy)  # noqa: E731
    assert sorted(
        [(name, bare(found), at) for name, found, at in two], key=key
    ) == sorted([(name, bare(found), at) for name, found, at in one], key=key)
    assert len(one) == 4


def test_kept_is_what_was_found_and_runs_alike_are_done_once(tmp_path):
    path = tmp_path / "kept"
    first = outcomes([small_run("gemini", 2)], ResultFile(path))
    text = path.read_bytes()
    again = outcomes(
        [small_run("gemini", 2), small_run("gemini", 3)], ResultFile(path)
    )
    assert again[:2] == [
        (name, found, 0) for name, found, _ in first
    ]  # the times as well
    assert path.read_bytes().startswith(text)
    assert len(path.read_bytes().splitlines()) == 4


def test_a_run_that_cannot_be_replayed_is_damage_and_not_kept(tmp_path):
    odd = replace(
        small_run("openai-chat", 1),
        messages=[{"role": "user"}, {"role": 7}],
        line=5,
    )
    odd.messages.append({"role": "assistant", "content": "x"})
    path = tmp_path / "kept"
    found = [damage for _, damage, _ in outcomes([odd], ResultFile(path))]
    assert {type(damage) for damage in found} == {Damage}
    assert {(damage.file, damage.line, damage.grade) for damage in found} == {
        ("file", 5, "skipped")
    }
    assert path.read_bytes() == b""


def test_a_defect_of_ours_costs_one_run_and_is_told(tmp_path):
    path = tmp_path / "kept"

    def broken(run, *more):
        if len(run.messages) < 6:
            raise IndexError("what the user said")
        return replay_session(run, *more)

    runs = [small_run("openai-chat", 1), small_run("openai-chat", 3)]
    failed, _, *done = [
        found
        for _, found, _ in outcomes(
            runs, ResultFile(path), replayer=Replayer(broken)
        )
    ]
    assert failed.problem.startswith(
        "ullage failed on a run under default: IndexError in broken, line"
    )
    assert "user said" not in failed.problem
    assert [replayed.policy for replayed in done] == [
        "default",
        "continuation",
    ]
    assert len(path.read_bytes().splitlines()) == 2


def test_two_runs_of_one_name_are_told_apart():
    one, other = small_run("openai-chat", 2), small_run("openai-chat", 3)
    digests = {found.digest for _, found, _ in outcomes([one, other])}
    assert len(digests) == 2


def test_the_log_speaks_again_once_all_is_replayed():
    """What replays here may be a program with a log of its own."""
    log, during = logging.getLogger("ullage"), []
    before = [*log.handlers]

    def noted(*told):
        during.append([*log.handlers])
        return replay_session(*told)

    outcomes([small_run("openai-chat", 1)], replayer=Replayer(noted))
    assert during
    for handlers in during:
        assert len(handlers) == len(before) + 1
    assert log.handlers == before
