import pytest

from tests.stores.postgres.cable import Cable


@pytest.fixture
def cable(bucket):
    """A cable to the S3 server that can be cut, held and made slow."""
    cable = Cable(bucket.port)
    yield cable
    cable.close()
