"""One hash over every view of recorded runs, to show that a change of the code changes no view.

    python -m lab.view_hashes PATH... [--runs 40] [--window 64000] [--policy default]

Each run is fitted call by call with its ledger (a session that goes on), and at some of its calls
without one (a new session that sees the history for the first time). Two trees that print the same
line send the same bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

from ullage import OverLimitError
from ullage.documents import preset
from ullage.tools.replay.calls import boundaries, request_of, session_for
from ullage.tools.replay.readers import Run, read

_COLD_STARTS = 3
_OVER_LIMIT = "over the limit"


def views_of(
    run: Run, window_tokens: int, policy: str
) -> Iterator[tuple[str, Any]]:
    """Each view of a run: ``warm`` or ``cold``, and what would be sent."""
    new_session = session_for(run, preset(policy), window_tokens)
    lengths = boundaries(run)
    cold = {*lengths[:: max(len(lengths) // _COLD_STARTS, 1)]}
    session = new_session()
    for length in lengths:
        request = request_of(run, run.messages[:length])
        yield "warm", _view(session, request)
        if length in cold:
            yield "cold", _view(new_session(), request)


def _view(session: Any, request: dict[str, Any]) -> Any:
    try:
        return dict(session.fit(request))
    except OverLimitError:
        return _OVER_LIMIT


def main() -> None:
    """Print one line: how many runs and views, and a hash of all warm and of all cold ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--policy", default="default")
    options = parser.parse_args()
    hashes = {"warm": blake2b(digest_size=8), "cold": blake2b(digest_size=8)}
    views = runs = 0
    for run in islice(
        chain.from_iterable(map(read, options.paths)), options.runs
    ):
        runs += 1
        for kind, view in views_of(run, options.window, options.policy):
            views += 1
            hashes[kind].update(json.dumps(view, sort_keys=True).encode())
    sums = " ".join(
        f"{kind}={value.hexdigest()}" for kind, value in hashes.items()
    )
    print(f"{runs} runs, {views:,} views: {sums}")


if __name__ == "__main__":
    main()
