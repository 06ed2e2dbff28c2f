"""Receipts beside replay: what `ullage report` says of recorded runs, and what a replay reckons.

    python -m lab.receipts RUNS… [--window 64000] [--runs 40]

Each run is played by a session, and a simulated provider answers it: the cache and the prices of a
replay (`ullage.tools.replay.cost`). What the receipts sum up to stands beside the replay's bill of
the same run. Sent is measured on both sides and has to agree to the cent over all runs; what would
have been sent is reckoned on one side and simulated on the other. The status is 1 where either
differs by more than it may. Beside it: which breaks of the prompt cache the sessions told of, and
how many of the tokens that the simulated cache lost these explain.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.fuzz.tally import be_quiet
from ullage.core.errors import OverLimitError
from ullage.core.values.receipts import ReceiptTotals, summed
from ullage.core.values.usage import Usage
from ullage.documents import preset
from ullage.session.receipts.writer import close
from ullage.stores import receipts_of
from ullage.tools.replay.calls import (
    OWN_WINDOW,
    answer_of,
    boundaries,
    request_of,
    session_for,
    window_of,
)
from ullage.tools.replay.cost.money import Clock, CostMeter
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import OWN, profiles_for
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run, read
from ullage.tools.replay.run import _tools_of
from ullage.wires import FORMATS

A_CENT = 0.01
MOST_APART = 0.01
"""What would have been sent may differ by this share over all runs."""


class Played(NamedTuple):
    """One run, by its receipts and by replay.

    Attributes:
        run: its name.
        calls: how many requests.
        receipts: what the receipts sum up to.
        sent_usd: what was sent, by replay; None: no price is known.
        raw_usd: what would have been sent, by replay.
        breaks: how often the session told of each cause.
        told_tokens: tokens that these say were billed again.
        lost_tokens: tokens that the simulated cache had and did not read.
    """

    run: str
    calls: int
    receipts: ReceiptTotals
    sent_usd: float | None
    raw_usd: float | None
    breaks: Counter[str]
    told_tokens: int
    lost_tokens: int


def play(run: Run, window_tokens: int) -> Played:
    """Play a run, and compare.

    Args:
        run: the run.
        window_tokens: the window that it has.
    """
    wire, judge, lengths = FORMATS[run.format], Judge(), boundaries(run)
    policy, head = preset("default"), head_of(run.request)
    heads = (head, head + _tools_of(policy.toolset))
    clocks: dict[Clock, list[float]] = {"warm": [0.0] * len(lengths)}
    meter = CostMeter(profiles_for((OWN,), run), heads, clocks, judge.text)
    session = session_for(run, policy, window_tokens)()
    breaks, told, lost, held, calls = Counter[str](), 0, 0, 0, 0
    for number, length in enumerate(lengths):
        try:
            view = session.fit(request_of(run, run.messages[:length]))
        except OverLimitError:
            continue
        calls += 1
        output_tokens = judge.tokens(answer_of(run, length))
        history = run.messages[:length]
        meter.take(number, history, wire.history(view), output_tokens)
        assert meter.newest is not None
        call = meter.newest.call
        usage = Usage(
            fresh_tokens=call.fresh_tokens,
            cache_read_tokens=call.cached_tokens,
            cache_write_tokens=call.written_tokens,
            output_tokens=output_tokens,
        )
        view.observe(usage)
        lost += max(min(held, call.prompt_tokens) - call.cached_tokens, 0)
        held = call.cached_tokens + call.written_tokens
        broken = view.sent.broken
        if broken is not None:
            breaks[broken.cause] += 1
            told += broken.tokens
    close(session.store)
    keeper = receipts_of(session.store)
    sums = summed(keeper.receipts()).get((), ReceiptTotals())
    (bill,) = meter.bills()
    return Played(
        run.id,
        calls,
        sums,
        bill.shown.cost_usd,
        bill.raw.cost_usd,
        breaks,
        told,
        lost,
    )


def runs_of(paths: list[Path], most: int | None) -> Iterator[Run]:
    """The runs of some files, so many of each.

    Args:
        paths: the files.
        most: how many; None: all.
    """
    for path in paths:
        for number, run in enumerate(read(path)):
            if number == most:
                break
            if len(boundaries(run)) > 1:
                yield run


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print the sums.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--window", type=int)
    parser.add_argument("--runs", type=int)
    options = parser.parse_args(arguments)
    be_quiet()
    total, sent_usd, raw_usd = ReceiptTotals(), 0.0, 0.0
    runs = calls = told = lost = unpriced = 0
    apart: list[tuple[float, str]] = []
    breaks = Counter[str]()
    for run in runs_of(options.paths, options.runs):
        if not run.model:  # each side would have prices of another one
            unpriced += 1
            continue
        window = options.window or window_of(run, OWN_WINDOW)
        played = play(run, window)
        is_priced = played.sent_usd is not None and played.raw_usd is not None
        if not is_priced or played.receipts.unpriced:
            unpriced += 1
            continue
        assert played.sent_usd is not None
        assert played.raw_usd is not None
        runs, calls = runs + 1, calls + played.calls
        total += played.receipts
        sent_usd, raw_usd = (
            sent_usd + played.sent_usd,
            raw_usd + played.raw_usd,
        )
        breaks += played.breaks
        told, lost = told + played.told_tokens, lost + played.lost_tokens
        difference = played.receipts.raw_usd - played.raw_usd
        apart.append((difference, played.run))
    sent_apart = total.sent_usd - sent_usd
    raw_apart = total.raw_usd - raw_usd
    print(
        f"{runs:,} runs, {calls:,} calls; {unpriced:,} runs without a model or price"
    )
    print(f"sent     receipts ${total.sent_usd:,.4f}  replay ${sent_usd:,.4f}")
    print(f"without  receipts ${total.raw_usd:,.4f}  replay ${raw_usd:,.4f}")
    apart.sort(key=lambda pair: abs(pair[0]), reverse=True)
    for difference, name in apart[:5]:
        print(f"  {difference:+.4f}  {name[:60]}")
    share = abs(raw_apart) / raw_usd if raw_usd else 0.0
    print(f"apart: sent ${sent_apart:+.4f}, without {share:.2%}")
    print(f"breaks told: {dict(breaks)}, {told:,} of {lost:,} tokens lost")
    return int(abs(sent_apart) >= A_CENT or share > MOST_APART)


if __name__ == "__main__":
    sys.exit(main())
