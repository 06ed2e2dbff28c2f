"""A real Ray cluster of one machine, in an environment of its own (``make test-ray``)."""

import duckdb
import obstore
import pytest
from obstore.store import S3Store

from tests.cli.terminal import ullage
from tests.cli.test_replay import errands
from tests.replay.engines import workers
from tests.stores.programs import Bucket, program
from ullage import __version__
from ullage.core.errors import ConfigError
from ullage.tools.replay.engines import TRIES, WorkerDied, _ray, open_engine

pytest.importorskip(
    "ray", reason="Ray is in an environment of its own (make test-ray)"
)


def test_no_cluster_at_the_address_is_told(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with (
        pytest.raises(ConfigError, match="no Ray cluster answers"),
        open_engine("ray"),
    ):
        pass


@pytest.fixture(scope="module")
def engine():
    with open_engine("ray", 2) as engine:
        yield engine


def test_every_unit_comes_back_with_its_tag(engine):
    found = dict(
        engine.map(workers.square, ((f"tag {n}", n) for n in range(9)))
    )
    assert found == {f"tag {n}": n * n for n in range(9)}


def test_units_are_drawn_as_there_is_room(engine):
    drawn = []

    def units():
        for number in range(30):
            drawn.append(number)
            yield number, number

    for count, _ in enumerate(engine.map(workers.square, units()), 1):
        assert len(drawn) <= count + 4


def test_a_worker_that_died_is_made_good_and_what_ends_each_is_given_up(
    engine, tmp_path
):
    units = [(number, (number, str(tmp_path))) for number in range(4)]
    assert dict(engine.map(workers.fatal_once, units)) == {
        n: n for n in range(4)
    }
    assert {mark.name for mark in tmp_path.iterdir()} == {"0", "3"}, (
        "they did die"
    )
    found = dict(engine.map(workers.fatal, ((n, n) for n in range(5))))
    assert found == {0: 0, 1: 1, 2: 2, 3: WorkerDied(TRIES), 4: 4}


def test_an_exception_of_the_function_is_that_exception(engine):
    with pytest.raises(ValueError, match="5"):
        list(engine.map(workers.refused, [("", 5)]))


def test_a_node_with_another_version_says_so(engine, monkeypatch):
    monkeypatch.setattr(_ray, "__version__", "0.0.1")
    with pytest.raises(
        ConfigError, match=f"a node has ullage {__version__}.* 0.0.1"
    ):
        list(engine.map(workers.square, [("", 5)]))


def test_logs_in_a_bucket_are_replayed_on_a_cluster(tmp_path):
    if program("moto_server") is None:
        pytest.skip("no S3 server is there (make servers)")
    path, bucket, out = (
        errands(tmp_path, 3),
        Bucket(),
        tmp_path / "found.parquet",
    )
    try:
        logs = S3Store(
            bucket.name,
            endpoint=f"http://127.0.0.1:{bucket.port}",
            region="us-east-1",
            client_options={"allow_http": True},
        )
        for number, line in enumerate(path.read_text("utf-8").splitlines()):
            obstore.put(logs, f"agents/{number}.jsonl", line.encode())
        words = (
            "--budget",
            "30%",
            "--cache",
            "none",
            "--jobs",
            2,
            "--out",
            out,
        )
        done = ullage(
            "replay", bucket.url(prefix="agents/"), *words, "--engine", "ray"
        )
    finally:
        bucket.stop()
    assert done.status == 0
    with duckdb.connect() as db:
        files = db.execute(
            "SELECT file FROM read_parquet(?) ORDER BY file", [str(out)]
        ).fetchall()
    assert files == [(f"{number}.jsonl",) for number in range(3)]


def test_a_cluster_finds_what_processes_find(tmp_path):
    path, found = errands(tmp_path, 3), []
    for name in ("ray", "processes"):
        out = tmp_path / f"{name}.parquet"
        words = (
            "--budget",
            "30%",
            "--cache",
            "none",
            "--jobs",
            2,
            "--out",
            out,
        )
        assert ullage("replay", path, *words, "--engine", name).status == 0
        with duckdb.connect() as db:
            rows = "SELECT * EXCLUDE (fit_ms) FROM read_parquet(?) ORDER BY digest"
            found.append(db.execute(rows, [str(out)]).fetchall())
    assert found[0] == found[1]
    assert len(found[0]) == 3
