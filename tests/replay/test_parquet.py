"""Replays as Parquet, read again by DuckDB."""

import duckdb
import msgspec
import pytest

from lab.replay.many import Tried, tried
from tests.replay.test_run import small_run
from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.parquet import write_parquet
from ullage.tools.replay.run import Replayed, replay_run


@pytest.fixture(scope="module")
def replayed():
    run = small_run("openai-chat", 3)
    return replay_run(run, 8_000, profiles=[PROFILES["none"]])


def asked(question, path):
    with duckdb.connect() as db:
        return db.execute(
            question, {"path": str(path)} if "$path" in question else None
        ).fetchall()


def test_a_row_holds_all_that_a_replay_found(replayed, tmp_path):
    path = tmp_path / "re'sults.parquet"
    named = [
        ("it's a file.jsonl", replayed),
        ("other", msgspec.structs.replace(replayed, share=0.2)),
    ]
    write_parquet(path, named)
    with duckdb.connect() as db:
        rows = db.read_parquet(str(path)).fetchall()
        names = db.read_parquet(str(path)).columns
    assert names == ["file", *Replayed.__struct_fields__]
    (one, other) = (dict(zip(names, row, strict=True)) for row in rows)
    as_read = msgspec.json.decode(msgspec.json.encode(replayed))
    assert one == {"file": "it's a file.jsonl", **as_read}
    assert (other["file"], other["share"]) == ("other", 0.2)


def test_what_it_cost_can_be_summed_in_sql(replayed, tmp_path):
    path = tmp_path / "results.parquet"
    write_parquet(path, [("a", replayed), ("b", replayed)])
    question = """
        SELECT bill.profile, sum(bill.shown.input_units)
        FROM (SELECT unnest(bills) AS bill FROM read_parquet($path)) GROUP BY 1
    """
    clocks = len(replayed.bills)
    (row,) = asked(question, path)
    assert clocks
    assert row[1] == pytest.approx(
        2 * sum(bill.shown.input_units for bill in replayed.bills)
    )


def test_more_of_a_replay_is_more_columns(replayed, tmp_path):
    path = tmp_path / "tried.parquet"
    with_more = msgspec.structs.replace(tried(replayed))
    write_parquet(path, [], Tried)
    assert asked("SELECT count(*) FROM read_parquet($path)", path) == [(0,)]
    assert "served" in type(with_more).__struct_fields__


def test_what_was_there_stays_until_the_new_file_is_whole(replayed, tmp_path):
    path = tmp_path / "results.parquet"
    write_parquet(path, [("a", replayed)])
    before = path.read_bytes()

    def broken():
        yield "a", replayed
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parquet(path, broken())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["results.parquet"]


def test_a_folder_that_is_not_there_is_told_of(replayed, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_parquet(tmp_path / "none" / "results.parquet", [("a", replayed)])
