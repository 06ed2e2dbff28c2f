"""The contract of a store whose bodies are in a bucket: all of it, of both stores."""

from itertools import count

import pytest

from tests.stores.contract import FileContract
from tests.stores.postgres.test_contract import Emptied
from ullage.stores import PostgresStore, SqliteStore
from ullage.stores.objects import ObjectStorage
from ullage.testing import StoreContract

_NUMBERS = count()

pytestmark = pytest.mark.xdist_group("postgres")


class InBucket:
    """Each that is opened has a prefix of its own, and every body is an object."""

    @pytest.fixture(autouse=True)
    def _bucket(self, bucket):
        self._bucket = bucket

    def objects(self):
        return ObjectStorage(
            self._bucket.url(prefix=f"contract/{next(_NUMBERS)}"),
            least_bytes=0,
        )


class TestSqlite(InBucket, FileContract):
    def open(self):
        return SqliteStore(
            self.place(), objects=self.objects(), clock=self.clock
        )


class TestPostgres(InBucket, Emptied, StoreContract):
    test_any_sequence_of_commits_equals_two_dictionaries = (
        None  # with objects, of the file alone
    )

    def open(self):
        return PostgresStore(
            self.emptied(), objects=self.objects(), clock=self.clock
        )
