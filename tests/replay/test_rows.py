"""Which rows a table has."""

from msgspec.structs import replace

from tests.replay.test_run import small_run
from ullage.replay.cost.prices import PROFILES
from ullage.replay.rows import row_of, rows_of
from ullage.replay.run import replay_run


def replays(files, policies=("default",)):
    """One small run for each file, under each policy."""
    run = small_run("openai-chat", 2)
    for policy in policies:
        done = replay_run(run, 16_000, profiles=[PROFILES["none"]], policy=policy)
        yield from ((name, replace(done, digest=name)) for name in files)


def test_each_file_has_a_row_and_then_all_of_them():
    rows = rows_of(replays(["b.jsonl", "a.jsonl"]), row_of)
    assert [(row.name, row.runs) for row in rows] == [("a.jsonl", 1), ("b.jsonl", 1), ("all", 2)]


def test_a_folder_of_session_logs_is_one_row():
    logs = [f"{number:02}.jsonl" for number in range(20)]
    many = [
        ("set.jsonl", replace(done, digest=f"{n}")) for n in range(3) for _, done in replays("x")
    ]
    rows = rows_of([*replays(logs, ("default", "continuation")), *many], row_of)
    assert [(row.name, row.policy, row.runs) for row in rows] == [
        ("20 files of a run each", "continuation", 20),
        ("20 files of a run each", "default", 20),
        ("set.jsonl", "default", 3),
        ("all", "continuation", 20),
        ("all", "default", 23),
    ]


def test_each_run_has_a_row_where_that_is_asked_for():
    rows = rows_of(replays([f"{number:02}.jsonl" for number in range(20)]), row_of, each=True)
    assert {row.name for row in rows} == {small_run("openai-chat", 2).id}
