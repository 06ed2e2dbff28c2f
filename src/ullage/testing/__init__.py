"""Proofs for what others write: stores, stages and formats.

    StoreContract      every promise of a store, as tests to inherit
    BlobsContract, RecordsContract    those of its two halves
    check_stage, check_policy         what a stage promises of its views, tried on whole runs
    FormatContract     every promise of a format or a `Host` that needs no provider
    example_runs       made-up runs of an agent, `in_format` for each of the four wires

Nothing here is needed to run ullage, and nothing of ullage imports it. It works with any test
runner that collects methods called ``test_…``; a promise that is not kept is an AssertionError
that names it. `docs/extending.md` writes one of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

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

if TYPE_CHECKING:
    from ullage.testing._samples import Clock
    from ullage.testing.blobs import BlobsContract
    from ullage.testing.formats import FormatContract
    from ullage.testing.records import RecordsContract
    from ullage.testing.runs import boundaries, example_runs, in_format
    from ullage.testing.stages import check_policy, check_stage
    from ullage.testing.stores import StoreContract
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.testing._samples": "Clock",
            "ullage.testing.blobs": "BlobsContract",
            "ullage.testing.formats": "FormatContract",
            "ullage.testing.records": "RecordsContract",
            "ullage.testing.runs": "boundaries example_runs in_format",
            "ullage.testing.stages": "check_policy check_stage",
            "ullage.testing.stores": "StoreContract",
        },
    )
