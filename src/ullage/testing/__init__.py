"""Proofs for what others write: stores, stages and formats.

    StoreContract      every promise of a store, as tests to inherit
    BlobsContract, RecordsContract    those of its two halves
    check_stage, check_policy         what a stage promises of its views, tried on whole runs
    FormatContract     every promise of a format or a `Host` that needs no provider
    example_runs       made-up runs of an agent, `in_format` for each of the wires

Nothing here is needed to run ullage, and nothing of ullage imports it. It works with any test
runner that collects methods called ``test_…``; a promise that is not kept is an AssertionError
that names it. `docs/extending.md` writes one of each.
"""

from __future__ import annotations

from ullage.testing._samples import Clock
from ullage.testing.formats import FormatContract
from ullage.testing.halves import BlobsContract, RecordsContract
from ullage.testing.runs import boundaries, example_runs, in_format
from ullage.testing.stages import check_policy, check_stage
from ullage.testing.stores import StoreContract

__all__ = [
    "BlobsContract",
    "Clock",
    "FormatContract",
    "RecordsContract",
    "StoreContract",
    "boundaries",
    "check_policy",
    "check_stage",
    "example_runs",
    "in_format",
]
