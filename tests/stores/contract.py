"""What the tests of our own stores share beside `ullage.testing.StoreContract`."""

from __future__ import annotations

import pytest

from ullage.core.values.edits import Address, Replace
from ullage.testing import Clock, StoreContract
from ullage.testing._samples import ODD, batch, decided, output

__all__ = [
    "ODD",
    "Clock",
    "FileContract",
    "batch",
    "decided",
    "output",
    "replaced",
]


def replaced(ref: str) -> Replace:
    return Replace(Address("result", "call", 0), ref, "[cut]", "pruned", "why")


class FileContract(StoreContract):
    """The contract of a store that is kept in files: each that is opened has its own place."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory):
        self._places = tmp_path_factory.mktemp("stores")
        self._count = 0

    def place(self):
        self._count += 1
        return self._places / str(self._count)
