"""What the time of a commit tells of another tenant's content: `python -m lab.bench.tenants`.

Three kinds of outputs in turn, each of one size: what nobody holds, what another tenant holds, and
what the tenant holds itself. The first two must take the same time; printed is the median of each,
in milliseconds of a real file with its syncs.
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import closing
from statistics import median

from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output
from ullage.stores import SqliteStore, Store

_VICTIM, _GUESSER = "victim", "guesser"


def measured(
    store: Store, *, rounds: int = 200, chars: int = 200_000
) -> dict[str, float]:
    """The median seconds of a commit by a tenant, by who holds the content already.

    Args:
        store: an empty store.
        rounds: commits of each kind.
        chars: the characters of each output.
    """
    dice, times = random.Random(7), dict[str, list[float]]()
    for _ in range(rounds):
        cases = [
            ("nobody's", ""),
            ("another's", _VICTIM),
            ("one's own", _GUESSER),
        ]
        dice.shuffle(cases)
        for case, holder in cases:
            text = dice.randbytes(chars // 2).hex()
            output = Output(ref_of(text), text)
            if holder:
                store.commit(holder, [output], ())
            began = time.perf_counter()
            store.commit(_GUESSER, [output], ())
            times.setdefault(case, []).append(time.perf_counter() - began)
    return {
        case: median(times[case])
        for case in ("nobody's", "another's", "one's own")
    }


def main() -> None:
    """Print the figures for a store in a file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(f"{folder}/u.db")) as store,
    ):
        for case, seconds in measured(store).items():
            print(f"{case:10} {seconds * 1e3:7.3f} ms")


if __name__ == "__main__":
    main()
