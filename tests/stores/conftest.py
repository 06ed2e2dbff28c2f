"""The servers that the tests of several stores share: each is started once for a process."""

import pytest

from tests.stores.postgres.server import Server, is_there
from tests.stores.programs import Bucket, program


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server for all tests of a process."""
    if not is_there():
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def url(server):
    """The address of a database without tables of ours."""
    with server.connect() as db:
        db.execute("DROP SCHEMA IF EXISTS ullage CASCADE")
    return server.url


@pytest.fixture(scope="session")
def bucket():
    """An S3 server for all tests of a process."""
    yield from _served()


@pytest.fixture
def own_bucket():
    """An S3 server of one test's own, which may kill it."""
    yield from _served()


def _served():
    if program("moto_server") is None:
        pytest.skip("no S3 server is there (make servers)")
    bucket = Bucket()
    yield bucket
    bucket.stop()
