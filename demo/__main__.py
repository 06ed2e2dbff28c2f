"""``python -m demo``: the wiring, and what is printed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import toktok
from genai_prices import Usage, calc_price
from rich.console import Console
from rich.table import Table

import ullage
from demo import real, report
from demo.agenda import AGENDA, QUICK, Question, task
from demo.display import Display
from demo.investigator import Investigator
from demo.loop import run
from demo.tally import Cache, Memo, Tally, Unlimited, set_aside
from demo.tools import SPECS, Tools

__all__ = ["main"]

MODEL = "gpt-4.1"
WINDOW_TOKENS = 64_000
QUICK_WINDOW_TOKENS = 20_000
MAX_OUTPUT_TOKENS = 4_096


class Wiring:
    """What the demo is made of; the tests put other things in place.

    Args:
        console: where to print.
        session: makes the session, given the window in tokens.
        cache: makes the simulated prompt cache.
        agenda: the questions.
        window_tokens: the size of the window.
        tools: the agent's tools.
        record: where to write the whole history as a request, for ``ullage replay``.
    """

    def __init__(
        self,
        *,
        console: Console,
        session: Callable[[int], Any],
        cache: Callable[[], Cache],
        agenda: Sequence[Question] = AGENDA,
        window_tokens: int = WINDOW_TOKENS,
        tools: Tools | None = None,
        record: Path | None = None,
    ) -> None:
        self.console, self.session, self.cache = console, session, cache
        self.agenda, self.window_tokens = agenda, window_tokens
        self.tools, self.record = tools or Tools(), record
        self.count = Memo(_count)

    def request(self) -> dict[str, Any]:
        """The first request of a run."""
        return {
            "model": MODEL,
            "messages": [{"role": "user", "content": task(self.agenda)}],
            "tools": SPECS,
            "max_tokens": MAX_OUTPUT_TOKENS,
        }


def demonstrate(wiring: Wiring) -> bool:
    """Run the agent inside the window and without a limit, print both; True if all is proved."""
    console = wiring.console
    console.print(
        f"An agent answers {len(wiring.agenda)} questions about the Python code of this machine,\n"
        f"inside a window of {wiring.window_tokens:,} tokens. Its tools are real, its model is "
        "played.\n",
        highlight=False,
    )
    session = wiring.session(wiring.window_tokens)
    request, started = wiring.request(), time.perf_counter()
    view, limited = _inside(wiring, session, request)
    spent_s = time.perf_counter() - started
    full = wiring.request()
    unlimited = Tally(full, wiring.count, wiring.cache())
    client = Investigator(wiring.agenda, wiring.count)
    run(client, Unlimited(), wiring.tools, full, watch=unlimited.watch)
    if wiring.record is not None:
        wiring.record.write_text(json.dumps(full), encoding="utf-8")
    proof = report.prove(session, view["messages"], request["messages"][:-1])
    count, tokens = set_aside(session.events)
    costs_usd = (_cost_usd(unlimited), _cost_usd(limited))
    console.print(
        report.table(
            unlimited,
            limited,
            window_tokens=wiring.window_tokens,
            costs_usd=costs_usd,
        )
    )
    without, _ = report.evidence(full["messages"][-1]["content"])
    within, asked = report.evidence(request["messages"][-1]["content"])
    same = "the same" if within == without else "not the same"
    facts = {
        "set aside": f"{tokens:,} tokens, in {count} cuts",
        "evidence": f"{len(within)} of {asked} lines quoted, {same} as without a limit",
        "proof": str(proof),
        "time": f"{spent_s:.1f} s for {limited.calls} calls",
    }
    grid = Table.grid(padding=(0, 2))
    for name, fact in facts.items():
        grid.add_row(name, fact)
    console.print(grid)
    session.close()
    return within == without and not proof.lost


def _inside(
    wiring: Wiring, session: Any, request: dict[str, Any]
) -> tuple[dict[str, Any], Tally]:
    tally = Tally(request, wiring.count, wiring.cache())
    client = Investigator(wiring.agenda, wiring.count)
    with Display(
        wiring.console,
        wiring.agenda,
        wiring.window_tokens,
        tally,
        lambda: session.events,
    ) as display:

        def watch(view: dict[str, Any], reply: dict[str, Any]) -> None:
            tally.watch(view, reply)
            display.show(reply)

        view = run(client, session, wiring.tools, request, watch=watch)
    return view, tally


def _count(texts: Sequence[str]) -> list[int]:
    return list(toktok.batch_count(texts, "o200k_base"))


def _cost_usd(tally: Tally) -> float:
    usage = Usage(
        input_tokens=tally.sum_tokens,
        cache_read_tokens=tally.cached_tokens,
        output_tokens=tally.output_tokens,
    )
    return float(
        calc_price(usage, model_ref=MODEL, provider_id="openai").total_price
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description=__doc__
    )
    parser.add_argument(
        "--quick", action="store_true", help="two questions instead of twelve"
    )
    parser.add_argument(
        "--run", metavar="PATH", help="replay a recorded run of yours instead"
    )
    parser.add_argument(
        "--window", type=int, help="tokens (64,000; with --quick 20,000)"
    )
    parser.add_argument(
        "--record",
        metavar="PATH",
        type=Path,
        help="write the whole history, for ullage replay",
    )
    asked = parser.add_argument_group(
        "a real model, with a key of yours in the environment"
    )
    asked.add_argument(
        "--model", metavar="NAME", help="claude-…, gpt-…, gemini-…, or a URL"
    )
    asked.add_argument(
        "--url", help="of a server of your own, up to /v1, that has this model"
    )
    asked.add_argument(
        "--recording",
        metavar="PATH",
        type=Path,
        help="read, and gone on with (recordings/…)",
    )
    asked.add_argument(
        "--most",
        metavar="USD",
        type=float,
        default=real.MOST_USD,
        help="for each run (5.00)",
    )
    options = parser.parse_args(arguments)
    if options.run:
        return _replay(options.run)
    usual = QUICK_WINDOW_TOKENS if options.quick else WINDOW_TOKENS
    agenda, window_tokens = (
        QUICK if options.quick else AGENDA,
        options.window or usual,
    )
    if options.model or options.recording:
        return real.ask(
            options.model,
            url=options.url,
            recording=options.recording,
            agenda=agenda,
            window_tokens=window_tokens,
            most_usd=options.most,
            console=Console(),
            count_tokens=_count,
        )
    return _played(agenda, window_tokens, options.record)


def _played(
    agenda: Sequence[Question], window_tokens: int, record: Path | None
) -> int:
    from demo.cache import OpenAICache

    with tempfile.TemporaryDirectory(prefix="ullage-demo-") as folder:

        def session(window_tokens: int) -> Any:
            limits = ullage.Limits(window_tokens=window_tokens)
            return ullage.Session(
                model=MODEL, limits=limits, store=Path(folder) / "demo.db"
            )

        wiring = Wiring(
            console=Console(),
            session=session,
            cache=lambda: OpenAICache(_count),
            agenda=agenda,
            window_tokens=window_tokens,
            record=record,
        )
        return 0 if demonstrate(wiring) else 1


def _replay(path: str) -> int:
    from ullage.tools import cli

    return int(cli.main(["replay", path]) or 0)


if __name__ == "__main__":
    sys.exit(main())
