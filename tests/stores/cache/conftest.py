import pytest

from tests.stores.programs import CacheServer, program


@pytest.fixture(scope="session", params=["valkey-server", "redis-server"])
def program_name(request):
    """The program of a cache, one that is here."""
    if program(request.param) is None:
        pytest.skip(f"no {request.param} is there (make servers)")
    return request.param


@pytest.fixture(scope="session")
def server(program_name):
    """A server for all tests of a process."""
    server = CacheServer(program_name)
    yield server
    server.stop()


@pytest.fixture
def near(server):
    """The address of a server with nothing in it."""
    server.emptied()
    return server.url


@pytest.fixture
def another(program_name):
    """A server that a test may kill."""
    server = CacheServer(program_name)
    yield server
    server.stop()
