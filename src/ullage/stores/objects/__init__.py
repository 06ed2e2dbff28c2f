"""The bodies of outputs in object storage; the store keeps everything else.

    store     what is kept, under which ref, whose, how large, when it was used, and which object
              has the body of a chunk                     one row a chunk, a few hundred bytes
    bucket    <prefix>/<store>/<tenant>/<digest>.<chunk>.<at random>        one object a chunk

    storage.py    how bodies are moved there and brought back, and what a clean-up takes
    bucket.py     what is asked of S3, and what its failures mean
    rows.py       what a store does with a row whose body is an object
    in_sqlite.py  what an SQLite file keeps of it

An object is written before the row that names it, and belongs to that row alone: its name ends at
random, and is never used again. So no clean-up can take the object of a row that is just being
written, however the two meet. Objects that no row names (their row went, or a process died before
it wrote the row) go in the last phase of a clean-up, which lists them: those that are older than a
day, and all of a tenant that is forgotten.

The seal of a chunk is in its row: an object that was changed is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = ["ObjectStorage"]

if TYPE_CHECKING:
    from ullage.stores.objects.storage import ObjectStorage
else:
    __getattr__, __dir__ = names(
        __name__, {"ullage.stores.objects.storage": "ObjectStorage"}
    )
