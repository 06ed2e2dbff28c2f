"""Proofs for what others write: stores, stages and formats.

    StoreContract      every promise of a store, as tests to inherit
    BlobsContract, RecordsContract    those of its two halves

Nothing here is needed to run ullage, and nothing of ullage imports it. It works with any test
runner that collects methods called ``test_…``; a promise that is not kept is an AssertionError
that names it.
"""

from ullage.testing._samples import Clock
from ullage.testing.blobs import BlobsContract
from ullage.testing.records import RecordsContract
from ullage.testing.stores import StoreContract

__all__ = ["BlobsContract", "Clock", "RecordsContract", "StoreContract"]
