"""Logs in a bucket of a real S3 server."""

import gzip

import obstore
import pytest
from obstore.store import S3Store

from tests.replay.test_readers import TRAJECTORY, lines
from tests.stores.programs import PAGE_KEYS, Bucket, program
from ullage.core.errors import FormatError
from ullage.tools.replay.readers import logs_under, read, size_of

LISTED = 2 * PAGE_KEYS + 10
pytestmark = pytest.mark.xdist_group(
    "logs in a bucket"
)  # one server for all of them


@pytest.fixture(scope="module")
def bucket():
    if program("moto_server") is None:
        pytest.skip("no S3 server is there (make servers)")
    bucket = Bucket()
    store = S3Store(
        bucket.name,
        endpoint=f"http://127.0.0.1:{bucket.port}",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    for key, data in {
        "logs/b.jsonl.gz": gzip.compress(lines(TRAJECTORY | {"id": "b"})),
        "logs/a.json": lines(TRAJECTORY | {"id": "a"}),
        "logs/deep/c.json": lines(TRAJECTORY | {"id": "c"}),
        "logs/.git/d.json": lines(TRAJECTORY | {"id": "d"}),
        "logs.json": lines(TRAJECTORY | {"id": "e"}),
        "many/gone.json": b"",
        **{f"listed/{n:04}.json": b"{}" for n in range(LISTED)},
    }.items():
        obstore.put(store, key, data)
    yield bucket
    bucket.stop()


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("logs", "abc"),
        ("logs/", "abc"),
        ("logs.json", "e"),
        ("logs/deep/c.json", "c"),
    ],
)
def test_an_address_is_an_object_or_what_is_below_it(bucket, prefix, expected):
    assert [run.id for run in read(bucket.url(prefix=prefix))] == list(
        expected
    )


def test_what_is_listed_in_pages_is_listed_whole(bucket):
    found = logs_under(bucket.url(prefix="listed"))
    assert [file.name for file in found] == [
        f"{n:04}.json" for n in range(LISTED)
    ]
    assert size_of(bucket.url(prefix="listed")) == 2 * LISTED


def test_nothing_at_an_address_is_told(bucket):
    with pytest.raises(FormatError, match="no such file"):
        read(bucket.url(prefix="none/at/all"))


def test_the_environment_may_say_where_it_is(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{bucket.port}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    (run,) = read(f"s3://{bucket.name}/logs.json")
    assert run.id == "e"


def test_an_object_that_cannot_be_fetched_is_damage_and_not_the_end(
    bucket, monkeypatch
):
    damage, files = [], logs_under(bucket.url(prefix="logs"))
    monkeypatch.setattr(
        "ullage.tools.replay.readers.logs_under", lambda _: files
    )
    gone = bucket._asked  # the object goes between the listing and the reading
    gone("DELETE", f"/{bucket.name}/logs/a.json")
    found = [
        run.id
        for run in read(bucket.url(prefix="logs"), on_damage=damage.append)
    ]
    assert found == ["b", "c"]
    assert [(each.file, each.problem) for each in damage] == [
        (
            "a.json",
            "the file cannot be opened (the object store says FileNotFoundError)",
        )
    ]
