import pytest

from tests.stores.postgres.cable import Cable
from tests.stores.postgres.conftest import server, url
from tests.stores.programs import Bucket, program

__all__ = ["server", "url"]


@pytest.fixture(scope="session")
def bucket():
    """An S3 server for all tests of a process."""
    if program("moto_server") is None:
        pytest.skip("no S3 server is there (make servers)")
    bucket = Bucket()
    yield bucket
    bucket.stop()


@pytest.fixture
def cable(bucket):
    """A cable to the S3 server that can be cut, held and made slow."""
    cable = Cable(bucket.port)
    yield cable
    cable.close()
