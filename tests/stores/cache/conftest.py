import pytest

from tests.stores.objects.conftest import bucket
from tests.stores.programs import Redis, program

__all__ = ["bucket"]


@pytest.fixture(scope="session")
def redis():
    """A Redis server for all tests of a process."""
    if program("redis-server") is None:
        pytest.skip("no Redis server is there (make servers)")
    redis = Redis()
    yield redis
    redis.stop()


@pytest.fixture
def near(redis):
    """The address of a server with nothing in it."""
    redis.emptied()
    return redis.url
