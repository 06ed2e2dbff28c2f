import pytest

from tests.stores.postgres.server import Server, is_there


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
